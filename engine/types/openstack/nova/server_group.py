"""OS::Nova::ServerGroup: servers that Nova places together or apart.

Nova allows several groups of one name, and a group has nothing else to carry the operation key. The
progress records the groups of this name that existed before, so that a repeated create finds its
own; the default name has the operation key in it.
"""

from collections.abc import Mapping

from engine.errors import Findings
from engine.types.contract import Call, Done, Failed, Outcome
from engine.types.custom_constraints import ValidationContext
from engine.types.openstack.cloud import Session, id_of, segment
from engine.types.openstack.cloud_operation import CloudType, proceed, run_guarded
from engine.types.openstack.nova.schema import SERVER_GROUP
from engine.types.openstack.services import COMPUTE
from engine.words import Json

_RULE = "max_server_per_host"


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
        found = await _find(self._cloud.session(context.credential), physical_id)
        return None if found is not None else f"there is no server group {physical_id}"

    async def _create(self, call: Call) -> Outcome:
        session = self._cloud.session(call.credential)
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
        session = self._cloud.session(call.credential)
        path = f"/os-server-groups/{segment(call.physical_id)}"
        await session.delete(COMPUTE, path, "delete the server group")
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        found = await _find(self._cloud.session(call.credential), call.physical_id or "")
        if found is None:
            reason = "the server group does not exist"
            return Failed(reason, None, call.data, public_reason=reason)
        return _done(found)


def _done(group: Mapping[str, Json]) -> Done:
    return Done(id_of(COMPUTE, group), {"show": dict(group)})


async def _find(session: Session, group_id: str) -> Mapping[str, Json] | None:
    path = f"/os-server-groups/{segment(group_id)}"
    return await session.find(COMPUTE, path, "server_group", "read the server group")
