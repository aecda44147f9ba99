"""Who can do what: OS::Keystone::Project, User, Group, Role, Domain."""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from engine.errors import Findings
from engine.types.contract import Call, Outcome, ResourceType, Wait
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.keystone import schemas
from engine.types.openstack.keystone.grants import (
    Actor,
    Grant,
    change_grants,
    check_roles,
    known_grants,
    list_grants,
    wanted_grants,
)
from engine.types.openstack.keystone.keystone_type import DOMAIN, KeystoneType
from engine.types.openstack.keystone.lookups import DOMAINS, GROUPS, PROJECTS
from engine.types.openstack.live_values import LiveProperties
from engine.types.openstack.names import UnknownObject
from engine.types.openstack.object_type import ObjectRow
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import IDENTITY
from engine.words import Json

ROLES, MEMBERSHIPS = "roles", "groups"
#: In the progress: the role assignments and the IDs of the groups that the operation makes. In the
#: data of a failure: those that exist, or may have been made.
_GRANTS, _GROUPS = "grants", "group_ids"
#: A field of a domain; in the progress of its delete: the value before.
_ENABLED = "enabled"


class GroupType(KeystoneType):
    """An object that has roles: a group. Its role assignments end with it.

    An operation saves the role assignments before it makes them, so that the update after a failure
    removes those that the template does not have.
    """

    actor = Actor.GROUP

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_roles(properties, place, findings)

    async def guard(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        progress = call.progress or {}
        made = {
            key: [*known, *(one for one in progress[key] if one not in known)]
            for key in (_GRANTS, _GROUPS)
            if key in progress
            for known in [call.data.get(key) or []]
        }
        return await super().guard(replace(call, data={**call.data, **made}), run)

    async def _finish(
        self, call: Call, session: Session, found: Mapping[str, Json], path: str = ""
    ) -> Outcome:
        progress = call.progress or {}
        if not progress.keys() & {_GRANTS, _GROUPS}:
            object_id = self.id_of(found)
            if any((intended := await self.read_intended(call, session, object_id)).values()):
                path = path or progress.get("path") or await self._path(call, session)
                return Wait(call.now, {**progress, "id": object_id, "path": path, **intended})
        return await super()._finish(call, session, found, path)

    async def read_intended(
        self, call: Call, session: Session, object_id: str
    ) -> dict[str, Sequence[Json]]:
        """What the operation makes besides the object, for its progress."""
        if not self.touches(call, ROLES):
            return {}
        wanted = await wanted_grants(session, self.actor, object_id, call.properties)
        return {_GRANTS: [one.as_json() for one in sorted(wanted)]}

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        if self.touches(call, ROLES):
            object_id = self.id_of(found)
            wanted = _grants((call.progress or {}).get(_GRANTS))
            before = await known_grants(session, self.actor, object_id, call.previous or {})
            before |= _grants(call.data.get(_GRANTS))
            await change_grants(session, add=wanted, remove=before - wanted)
        return found

    async def live_properties(
        self, session: Session, found: Mapping[str, Json], imported: Collection[str]
    ) -> LiveProperties:
        live = await super().live_properties(session, found, imported)
        try:
            grants = await list_grants(session, self.actor, self.id_of(found))
        except CloudError as error:
            live.unread(ROLES, str(error))
        else:
            roles = [{"role": one.role_id, one.scope: one.scope_id} for one in sorted(grants)]
            live.values[ROLES] = roles
        return live


def _grants(value: Json) -> set[Grant]:
    return {Grant.from_json(one) for one in value or ()}


class UserType(GroupType):
    """A user, who may belong to groups."""

    actor = Actor.USER

    async def read_intended(
        self, call: Call, session: Session, object_id: str
    ) -> dict[str, Sequence[Json]]:
        found = await super().read_intended(call, session, object_id)
        if self.touches(call, MEMBERSHIPS):
            names = call.properties.get(MEMBERSHIPS) or []
            found[_GROUPS] = [await GROUPS.find_id(session, str(one)) for one in names]
        return found

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        if self.touches(call, MEMBERSHIPS):
            await self._change_groups(call, session, self.id_of(found))
        return await super().follow_up(call, session, path, found)

    async def live_properties(
        self, session: Session, found: Mapping[str, Json], imported: Collection[str]
    ) -> LiveProperties:
        live = await super().live_properties(session, found, imported)
        path = f"/users/{segment(self.id_of(found))}/groups"
        try:
            groups = await session.list(IDENTITY, path, "groups")
        except CloudError as error:
            live.unread(MEMBERSHIPS, str(error))
        else:
            live.values[MEMBERSHIPS] = sorted(str(one["id"]) for one in groups)
        return live

    async def _change_groups(self, call: Call, session: Session, user: str) -> None:
        wanted = (call.progress or {}).get(_GROUPS) or []
        for group in wanted:
            path = f"/groups/{segment(group)}/users/{segment(user)}"
            await session.send(IDENTITY, "PUT", path, "add the user to a group")
        before = set(call.data.get(_GROUPS) or [])
        for name in (call.previous or {}).get(MEMBERSHIPS) or []:
            with suppress(UnknownObject):
                before.add(await GROUPS.find_id(session, str(name)))
        for group in sorted(before.difference(wanted)):
            path = f"/groups/{segment(group)}/users/{segment(user)}"
            await session.delete(IDENTITY, path, "remove the user from a group")


class DomainType(KeystoneType):
    """A domain, which Keystone deletes only when it is disabled.

    A delete first saves that the domain is enabled, and enables it again if the request fails: the
    users of a disabled domain cannot log in.
    """

    async def _delete(self, call: Call, session: Session) -> Outcome:
        if call.physical_id is not None and _ENABLED not in (call.progress or {}):
            found = await self.find(session, self.row.path, call.physical_id) or {}
            return Wait(call.now, {**(call.progress or {}), _ENABLED: found.get(_ENABLED)})
        return await super()._delete(call, session)

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        try:
            await self.put(session, path, object_id, {_ENABLED: False})
            await super().remove(call, session, path, object_id)
        except CloudError as error:
            if (call.progress or {}).get(_ENABLED) and not error.is_missing:
                with suppress(CloudError):
                    await self.put(session, path, object_id, {_ENABLED: True})
            raise


def identity_types(cloud: Cloud) -> list[ResourceType]:
    def row(what: str, separate: Sequence[str] = ()) -> ObjectRow:
        lookups = {DOMAIN: DOMAINS, "parent": PROJECTS, "default_project": PROJECTS}
        fields = {
            DOMAIN: "domain_id", "parent": "parent_id", "default_project": "default_project_id",
        }  # fmt: skip
        return ObjectRow(
            what, IDENTITY, f"/{what}s", what, f"{what}s", fields=fields, lookups=lookups,
            separate=frozenset(separate), marked=False, update_method="PATCH",
        )  # fmt: skip

    return [
        KeystoneType(schemas.PROJECT, row("project"), cloud),
        UserType(schemas.USER, row("user", (ROLES, MEMBERSHIPS)), cloud),
        GroupType(schemas.GROUP, row("group", (ROLES,)), cloud),
        KeystoneType(schemas.ROLE, row("role"), cloud),
        DomainType(schemas.DOMAIN, row("domain"), cloud),
    ]
