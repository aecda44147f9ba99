"""OS::Nova::Flavor: the size of servers. Nova allows it to administrators.

The name of a flavor is unique: the progress records that there was none of this name before, so
that a repeated create takes only its own.
"""

from collections.abc import Mapping

from engine.types.contract import Call, Done, Failed, Outcome, Replace
from engine.types.custom_constraints import ValidationContext
from engine.types.openstack.cloud import Session, id_of, segment
from engine.types.openstack.cloud_operation import CloudType, proceed, run_guarded
from engine.types.openstack.neutron.lookups import PROJECTS
from engine.types.openstack.nova.schema import FLAVOR
from engine.types.openstack.services import COMPUTE
from engine.types.text_cleaning import as_text
from engine.words import Json


class Flavor(CloudType):
    replaces_tainted = False
    template_ids = True
    schema = FLAVOR

    async def create(self, call: Call) -> Outcome:
        made = (call.progress or {}).get("id")
        return await run_guarded(call, lambda: self._create(call), made)

    async def update(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Replace()
        return await run_guarded(call, lambda: self._update(call), call.physical_id)

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        found = await _find(self._cloud.session(context.credential), physical_id)
        return None if found is not None else f"there is no flavor {physical_id}"

    async def _create(self, call: Call) -> Outcome:
        session, progress = self._cloud.session(call.credential), dict(call.progress or {})
        if "id" in progress:
            return await self._write(session, call, progress["id"])
        name = str(call.properties.get("name") or call.own_name)
        query = {"is_public": "None"}
        flavors = await session.list(COMPUTE, "/flavors/detail", "flavors", query)
        named = [one for one in flavors if one.get("name") == name]
        if named and not progress:
            reason = f'there is a flavor "{name}" already: use another name'
            return Failed(reason, public_reason="there is a flavor of this name already")
        if named:
            return proceed(call, {"id": id_of(COMPUTE, named[0])})
        if not progress:
            return proceed(call, {"absent": True})
        body = {"flavor": _request(name, call.properties)}
        created = await session.create(COMPUTE, "/flavors", "flavor", "create the flavor", body)
        return proceed(call, {"id": id_of(COMPUTE, created)})

    async def _update(self, call: Call) -> Outcome:
        return await self._write(self._cloud.session(call.credential), call, call.physical_id or "")

    async def _write(self, session: Session, call: Call, flavor_id: str) -> Outcome:
        """Write the extra specs and the projects."""
        flavor = await _find(session, flavor_id)
        if flavor is None:
            return Failed("the flavor does not exist", None, call.data)
        path = f"/flavors/{segment(flavor_id)}"
        given = call.properties.get("extra_specs") or {}
        wanted = {str(name): as_text(one) for name, one in given.items()}
        now = flavor.get("extra_specs") or {}
        for name in sorted(set(now) - set(wanted)):
            doing = "remove an extra spec of the flavor"
            spec = f"{path}/os-extra_specs/{segment(name)}"
            await session.request(COMPUTE, "DELETE", spec, doing)
        if any(now.get(name) != one for name, one in wanted.items()):
            body: Json = {"extra_specs": wanted}
            doing = "write the extra specs of the flavor"
            await session.request(COMPUTE, "POST", f"{path}/os-extra_specs", doing, body)
        if not flavor.get("os-flavor-access:is_public", True):
            await _write_access(session, call, path)
        return _done(await _find(session, flavor_id) or flavor)

    async def _delete(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Done(None)
        session = self._cloud.session(call.credential)
        path = f"/flavors/{segment(call.physical_id)}"
        await session.delete(COMPUTE, path, "delete the flavor")
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        found = await _find(self._cloud.session(call.credential), call.physical_id or "")
        if found is None:
            reason = "the flavor does not exist"
            return Failed(reason, None, call.data, public_reason=reason)
        return _done(found)


def _request(name: str, properties: Mapping[str, Json]) -> dict[str, Json]:
    flavor = {
        "name": name,
        "id": properties.get("flavorid") or "auto",
        "ram": properties["ram"],
        "vcpus": properties["vcpus"],
        "disk": properties.get("disk") or 0,
        "swap": properties.get("swap") or 0,
        "OS-FLV-EXT-DATA:ephemeral": properties.get("ephemeral") or 0,
        "rxtx_factor": properties.get("rxtx_factor"),
        "os-flavor-access:is_public": properties.get("is_public"),
    }
    return {key: one for key, one in flavor.items() if one is not None}


async def _write_access(session: Session, call: Call, path: str) -> None:
    """Allow the flavor to the projects, and to no others."""
    access = await session.list(COMPUTE, f"{path}/os-flavor-access", "flavor_access")
    now = {id_of(COMPUTE, one, "tenant_id") for one in access}
    wanted = set()
    for one in call.properties.get("tenants") or []:
        wanted.add(await PROJECTS.verify(session, str(one)))
    for action, projects in (
        ("addTenantAccess", wanted - now),
        ("removeTenantAccess", now - wanted),
    ):
        for project in sorted(projects):
            body = {action: {"tenant": project}}
            doing = "change the projects of the flavor"
            await session.request(COMPUTE, "POST", f"{path}/action", doing, body)


def _done(flavor: Mapping[str, Json]) -> Done:
    attributes = {
        "show": dict(flavor),
        "extra_specs": flavor.get("extra_specs") or {},
        "is_public": flavor.get("os-flavor-access:is_public"),
    }
    return Done(id_of(COMPUTE, flavor), attributes)


async def _find(session: Session, flavor_id: str) -> Mapping[str, Json] | None:
    return await session.find(
        COMPUTE, f"/flavors/{segment(flavor_id)}", "flavor", "read the flavor"
    )
