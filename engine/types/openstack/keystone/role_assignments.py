"""OS::Keystone::UserRoleAssignment, GroupRoleAssignment: roles of users and groups that may belong
to others.

A role assignment has no mark. An operation first saves that those it adds do not exist, so that it
takes and removes none that it has not made. The data has those that it has made, or may have made.
"""

from collections.abc import Collection, Mapping, Sequence

from engine.errors import Findings
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType, Wait
from engine.types.observation import PRESENT, Difference, Observation, admit_requests
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.cloud_operation import CloudType, run_guarded, unknown_state
from engine.types.openstack.keystone import schemas
from engine.types.openstack.keystone.grants import (
    Actor,
    Grant,
    change_grants,
    check_roles,
    exists,
    list_grants,
    wanted_grants,
)
from engine.types.openstack.keystone.lookups import GROUPS, USERS
from engine.types.openstack.object_type import existing_error
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import IDENTITY
from engine.words import Json, ObservedState, ResourceId

#: In the data and the progress: role assignments; in the progress: those that did not exist.
_GRANTS, _ABSENT = "grants", "absent"
_GONE = "the role assignments do not exist"


class RoleAssignment(CloudType):
    """A failed one is repaired by an update: a replacement would find its role assignments."""

    replaces_tainted = False
    repairs = True

    def __init__(self, schema: TypeSchema, actor: Actor, cloud: Cloud) -> None:
        super().__init__(cloud)
        self.schema = schema
        self._actor = actor
        self._lookup = USERS if actor is Actor.USER else GROUPS

    async def create(self, call: Call) -> Outcome:
        return await self._write(call)

    async def update(self, call: Call) -> Outcome:
        return await self._write(call)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_roles(properties, place, findings)

    async def _write(self, call: Call) -> Outcome:
        """A failure keeps those that exist, and those that may have been made."""
        own = _own(call) | _grants((call.progress or {}).get(_ABSENT))
        physical_id = call.physical_id or (call.own_name if own else None)
        return await run_guarded(call, lambda: self._change(call), physical_id, _data(own))

    async def _change(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        actor_id = await self._lookup.find_id(session, str(call.properties[self._actor.value]))
        wanted = await wanted_grants(session, self._actor, actor_id, call.properties)
        own, absent = _own(call), _grants((call.progress or {}).get(_ABSENT))
        unknown = sorted(wanted - own - absent)
        for one in unknown:
            if await exists(session, one):
                raise existing_error("role assignment", _describe(one))
        if unknown:
            made = [one.as_json() for one in sorted(absent.union(unknown))]
            return Wait(call.now, {_ABSENT: made})
        await change_grants(session, add=wanted, remove=(own | absent) - wanted)
        return Done(call.physical_id or call.own_name, {}, _data(wanted))

    async def _delete(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        await change_grants(session, add=(), remove=_own(call))
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        for one in sorted(_own(call)):
            if not await exists(session, one):
                reason = f"there is no role assignment {_describe(one)}"
                public = "a role assignment does not exist"
                return Failed(reason, call.physical_id, call.data, public_reason=public)
        return Done(call.physical_id, {}, call.data)

    def observation_key(self, call: Call) -> str | None:
        return f"roles of {self._actor}s" if self._cloud.has_reader else None

    def observation_endpoint(self, call: Call) -> str:
        return IDENTITY.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Sequence[str]:
        return ("roles",)

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        """One request for each user or group."""
        session = self._cloud.reader_session(calls[0].region)
        actors = sorted({one.actor_id for call in calls for one in _own(call)})
        later = set(actors[await admit_requests(len(actors)) :])
        now = [call for call in calls if later.isdisjoint(one.actor_id for one in _own(call))]
        present: set[Grant] = set()
        try:
            for actor_id in actors:
                if actor_id not in later:
                    present |= await list_grants(session, self._actor, actor_id)
        except CloudError as error:
            return {call.resource_id: unknown_state(error) for call in now}
        return {call.resource_id: _compare(_own(call), present) for call in now}


def _compare(own: set[Grant], present: set[Grant]) -> Observation:
    left = own & present
    if left == own:
        return PRESENT
    if not left:
        return Observation(ObservedState.MISSING, (), _GONE, _GONE)
    shown = Difference("roles", _describe_all(own), _describe_all(left))
    return Observation(ObservedState.CHANGED, [shown])


def _own(call: Call) -> set[Grant]:
    return _grants(call.data.get(_GRANTS))


def _grants(value: Json) -> set[Grant]:
    return {Grant.from_json(one) for one in value or ()}


def _data(grants: Collection[Grant]) -> dict[str, Json]:
    return {_GRANTS: [one.as_json() for one in sorted(grants)]}


def _describe_all(grants: Collection[Grant]) -> Json:
    return [_describe(one) for one in sorted(grants)]


def _describe(one: Grant) -> str:
    return f"{one.role_id} of {one.actor} {one.actor_id} in {one.scope} {one.scope_id}"


def role_assignment_types(cloud: Cloud) -> list[ResourceType]:
    return [
        RoleAssignment(schemas.USER_ROLE_ASSIGNMENT, Actor.USER, cloud),
        RoleAssignment(schemas.GROUP_ROLE_ASSIGNMENT, Actor.GROUP, cloud),
    ]
