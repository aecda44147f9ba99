"""OS::Nova::ServerGroup: servers that Nova places together or apart.

Nova allows several groups of one name, and a group has nothing else to carry the operation key. The
progress records the groups of this name that existed before, so that a repeated create finds its
own; the default name has the operation key in it.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.types.contract import Call, Done, Failed, Outcome
from engine.types.custom_constraints import ValidationContext
from engine.types.observation import Observation, observe_fields
from engine.types.observed_list import ObservedList
from engine.types.openstack.cloud import MAX_PAGES, Session, id_of, segment
from engine.types.openstack.cloud_operation import (
    CloudType,
    observed_list,
    proceed,
    run_guarded,
)
from engine.types.openstack.nova.schema import SERVER_GROUP
from engine.types.openstack.services import COMPUTE
from engine.words import Json

_RULE = "max_server_per_host"
_GONE: Final = "the server group does not exist"
#: The properties whose differences are observed.
_OBSERVED: Final = ("name", "policies", "rules")


class ServerGroup(CloudType):
    schema = SERVER_GROUP

    async def create(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._create(call), None)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        policies = properties.get("policies")
        if policies is not None and len(policies) != 1:
            findings.add(f"{place}.policies", "must have one policy", "Remove the others.")
        rules = properties.get("rules") or {}
        if rules.get(_RULE) is not None and policies and policies != ["anti-affinity"]:
            remedy = "Remove it, or use anti-affinity."
            findings.add(f"{place}.rules", f"{_RULE} is for anti-affinity only", remedy)

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        found = await _find(self._cloud.session(context), physical_id)
        return None if found is not None else f"there is no server group {physical_id}"

    async def _create(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        name = str(call.properties.get("name") or call.own_name)
        groups = await session.list(COMPUTE, "/os-server-groups", "server_groups")
        named = [one for one in groups if one.get("name") == name]
        if call.progress is None:
            return proceed(call, {"before": [id_of(COMPUTE, one) for one in named]})
        own = [one for one in named if id_of(COMPUTE, one) not in call.progress["before"]]
        if own:
            return _done(own[0])
        policy = (call.properties.get("policies") or ["anti-affinity"])[0]
        group: dict[str, Json] = {"name": name, "policy": policy}
        rules = call.properties.get("rules") or {}
        if rules.get(_RULE) is not None:
            group["rules"] = {_RULE: int(rules[_RULE])}
        path, doing = "/os-server-groups", "create the server group"
        return _done(
            await session.create(COMPUTE, path, "server_group", doing, {"server_group": group})
        )

    async def _delete(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Done(None)
        session = self._cloud.session(call)
        path = f"/os-server-groups/{segment(call.physical_id)}"
        await session.delete(COMPUTE, path, "delete the server group")
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        found = await _find(self._cloud.session(call), call.physical_id or "")
        if found is None:
            return Failed(_GONE, None, call.data, public_reason=_GONE)
        return _done(found)

    def observation_key(self, call: Call) -> str | None:
        known = call.physical_id is not None and self._cloud.can_observe(call)
        return "server groups" if known else None

    def observation_endpoint(self, call: Call) -> str:
        return COMPUTE.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Sequence[str]:
        return _OBSERVED

    def observed_list(self, call: Call) -> ObservedList:
        """Nova ignores the query for all projects if the reader is no administrator, so a group
        that the list lacks is read by itself."""
        session = self._cloud.observer_session(call)
        return observed_list(
            lambda: _pages(session), _compare, _GONE,
            find=lambda one: _find(session, str(one.physical_id)),
        )  # fmt: skip


def _done(group: Mapping[str, Json]) -> Done:
    return Done(id_of(COMPUTE, group), {"show": dict(group)})


async def _find(session: Session, group_id: str) -> Mapping[str, Json] | None:
    path = f"/os-server-groups/{segment(group_id)}"
    return await session.find(COMPUTE, path, "server_group", "read the server group")


async def _pages(session: Session) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
    """The list has no links to further pages, and Nova cuts it off at its own limit. A service that
    ignores the offset answers with the first page again."""
    query = {"all_projects": "True"} if session.reads_all_projects else {}
    offset, first = 0, None
    for _ in range(MAX_PAGES):
        found = await session.list(
            COMPUTE, "/os-server-groups", "server_groups", {**query, "offset": str(offset)}
        )
        if not found or found[0].get("id") == first:
            return
        yield found
        offset, first = offset + len(found), found[0].get("id")


def _compare(call: Call, group: Mapping[str, Json]) -> Observation:
    properties = call.properties
    name, rules = properties.get("name"), properties.get("rules") or {}
    pairs: list[tuple[str, Json, Json]] = [
        ("name", name, group.get("name")),
        ("policies", properties.get("policies"), [group.get("policy")]),
    ]
    fields = {"name": "name", "policies": "policy", "rules": "rules"}
    if rules.get(_RULE) is not None:
        found = group.get("rules")
        limit = found.get(_RULE) if isinstance(found, Mapping) else None
        pairs.append(("rules", {_RULE: int(rules[_RULE])}, {_RULE: limit}))
    absent = [path for path, field in fields.items() if field not in group]
    return observe_fields("the server group", pairs, absent)
