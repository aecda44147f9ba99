"""OS::Nova::Flavor: the size of servers. Nova allows it to administrators.

The name of a flavor is unique: the progress records that there was none of this name before, so
that a repeated create takes only its own.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.types.contract import Call, Done, Failed, Outcome, Replace
from engine.types.custom_constraints import ValidationContext
from engine.types.observation import Difference, Observation
from engine.types.observed_list import ObservedList
from engine.types.openstack.cloud import Session, id_of, segment
from engine.types.openstack.cloud_operation import (
    CloudType,
    observed_list,
    proceed,
    run_guarded,
)
from engine.types.openstack.neutron.lookups import PROJECTS
from engine.types.openstack.nova.schema import FLAVOR
from engine.types.openstack.object_type import is_alike
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import COMPUTE
from engine.types.text_cleaning import as_text
from engine.words import Json

_GONE: Final = "the flavor does not exist"
_PUBLIC: Final = "os-flavor-access:is_public"
_SPECS: Final = "extra_specs"
#: Of the list, which leaves out private flavors without it. Nova ignores it unless the user is an
#: administrator.
_ALL: Final = {"is_public": "None"}
#: In templates, this ID means that Nova chooses one. Nova's API does not know it.
_ANY_ID: Final = "auto"
#: The fields of the properties whose differences are observed.
_FIELDS: Final = {
    "disk": "disk",
    "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
    _SPECS: _SPECS,
    "is_public": _PUBLIC,
    "name": "name",
    "ram": "ram",
    "rxtx_factor": "rxtx_factor",
    "swap": "swap",
    "vcpus": "vcpus",
}


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
        found = await _find(self._cloud.session(context), physical_id)
        return None if found is not None else f"there is no flavor {physical_id}"

    async def _create(self, call: Call) -> Outcome:
        session, progress = self._cloud.session(call), dict(call.progress or {})
        if "id" in progress:
            return await self._write(session, call, progress["id"])
        name = str(call.properties.get("name") or call.own_name)
        flavors = await session.list(COMPUTE, "/flavors/detail", "flavors", _ALL)
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
        return await self._write(self._cloud.session(call), call, call.physical_id or "")

    async def _write(self, session: Session, call: Call, flavor_id: str) -> Outcome:
        """Write the extra specs and the projects."""
        flavor = await _find(session, flavor_id)
        if flavor is None:
            return Failed(_GONE, None, call.data)
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
        if not flavor.get(_PUBLIC, True):
            await _write_access(session, call, path)
        return _done(await _find(session, flavor_id) or flavor)

    async def _delete(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Done(None)
        session = self._cloud.session(call)
        path = f"/flavors/{segment(call.physical_id)}"
        await session.delete(COMPUTE, path, "delete the flavor")
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        found = await _find(self._cloud.session(call), call.physical_id or "")
        if found is None:
            return Failed(_GONE, None, call.data, public_reason=_GONE)
        return _done(found)

    def observation_key(self, call: Call) -> str | None:
        """Without a reader, flavors that everybody can see are observed."""
        public = self._cloud.has_observer(call) and call.attributes.get("is_public") is True
        known = call.physical_id is not None and (self._cloud.has_reader or public)
        return "flavors" if known else None

    def observation_endpoint(self, call: Call) -> str:
        return COMPUTE.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Sequence[str]:
        return [name for name in properties if name in _FIELDS]

    def observed_list(self, call: Call) -> ObservedList:
        session = self._cloud.observer_session(call)
        query = _ALL if session.reads_all_projects else None
        return observed_list(
            lambda: session.pages(COMPUTE, "/flavors/detail", "flavors", query), _compare, _GONE,
            find=lambda one: _find_unlisted(session, one),
        )  # fmt: skip


def _request(name: str, properties: Mapping[str, Json]) -> dict[str, Json]:
    flavor = {
        "name": name,
        "id": None if properties.get("flavorid") == _ANY_ID else properties.get("flavorid"),
        "ram": properties["ram"],
        "vcpus": properties["vcpus"],
        "disk": properties.get("disk") or 0,
        "swap": properties.get("swap") or 0,
        "OS-FLV-EXT-DATA:ephemeral": properties.get("ephemeral") or 0,
        "rxtx_factor": properties.get("rxtx_factor"),
        _PUBLIC: properties.get("is_public"),
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
        "is_public": flavor.get(_PUBLIC),
    }
    return Done(id_of(COMPUTE, flavor), attributes)


async def _find(session: Session, flavor_id: str) -> Mapping[str, Json] | None:
    return await session.find(
        COMPUTE, f"/flavors/{segment(flavor_id)}", "flavor", "read the flavor"
    )


async def _find_unlisted(session: Session, call: Call) -> Mapping[str, Json] | None:
    """A flavor that the list lacks; None if it does not exist.

    Nova shows private flavors to administrators only: to others, they look like missing ones. The
    list of the projects of a flavor is refused to others also then.
    """
    flavor_id = str(call.physical_id)
    if call.attributes.get("is_public") is not True:
        path = f"/flavors/{segment(flavor_id)}/os-flavor-access"
        try:
            await session.request(COMPUTE, "GET", path, "list the projects of the flavor")
        except CloudError as error:
            if not error.is_missing:
                raise
    return await _find(session, flavor_id)


def _compare(call: Call, flavor: Mapping[str, Json]) -> Observation:
    """Only fields that an operation has read with the requester's token are compared."""
    recorded = call.attributes.get("show")
    readable = recorded if isinstance(recorded, Mapping) else {}
    compared = {
        name: (field, value)
        for name, field in _FIELDS.items()
        if (value := call.properties.get(name)) is not None and field in readable
    }
    differences = [
        Difference(name, value, flavor[field])
        for name, (field, value) in compared.items()
        if field in flavor and not _is_same(name, value, flavor[field])
    ]
    absent = [
        name for name, (field, value) in compared.items() if value != {} and field not in flavor
    ]
    return Observation.from_comparison("the flavor", differences, absent)


def _is_same(name: str, desired: Json, observed: Json) -> bool:
    if name == _SPECS:
        return {str(key): as_text(one) for key, one in desired.items()} == (observed or {})
    if name == "rxtx_factor":  # Nova shows 0 as an empty string
        return is_alike(float(desired), observed or 0)
    return is_alike(desired, observed)
