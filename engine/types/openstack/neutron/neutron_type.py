"""What all types of Neutron have in common: quota errors, and what uses an object."""

import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from engine.types.contract import Call, Outcome
from engine.types.openstack.cloud import Query, Session, segment
from engine.types.openstack.neutron.lookups import SUBNETS
from engine.types.openstack.object_type import Mark, ObjectType, is_alike
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import NETWORK
from engine.words import Json

OVER_QUOTA: Final = "OverQuota"
#: Objects in a message about what uses another one.
MAX_USERS: Final = 5
_QUOTA_NAMES: Final = re.compile(r"'([a-z_]+)'")
#: `device_owner` of ports, and what they belong to.
_OWNERS: Final[Mapping[str, str]] = {
    "network:router_interface": "router",
    "network:router_gateway": "router",
    "network:ha_router_replicated_interface": "router",
    "network:router_interface_distributed": "router",
    "network:floatingip": "floating IP",
    "network:dhcp": "DHCP agent",
    "compute:": "server",
    "Octavia": "load balancer",
    "trunk:subport": "trunk",
}


class NeutronType(ObjectType):
    """A type of Neutron. in_use_by: the list requests whose objects use one of this type."""

    async def guard(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        return await super().guard(call, self._with_quota(call, run))

    async def _with_quota(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        try:
            return await run
        except CloudError as error:
            if error.kind != OVER_QUOTA:
                raise
            session = self.cloud.session(call)
            raise await quota_error(session, call.project, error) from None

    async def ports_using(self, session: Session, query: Query) -> list[str]:
        """The ports that match a query, as `port web (ID) of server ID`."""
        found = await session.list(NETWORK, "/ports", "ports", query)
        return describe_ports(found)


class UniqueContentType(NeutronType):
    """A type whose objects have no name and no free description, and of which Neutron refuses a
    second one with the same content: an interrupted create finds its object by that."""

    #: Fields that do not distinguish two objects.
    ignored: frozenset[str] = frozenset({"description", "tenant_id", "project_id"})

    def mark(self, call: Call) -> Mark:
        return Mark({}, {})

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        fields = await self.fields_for_create(call, session)
        wanted = {name: one for name, one in fields.items() if name not in self.ignored}
        found = await session.list(
            self.row.service, path, self.row.list_key, self.narrow_query(fields)
        )
        return next((one for one in found if is_alike(wanted, one)), None)

    def narrow_query(self, fields: Mapping[str, Json]) -> Query:
        """A filter for the list that has an object with these fields."""
        return {}


def describe_ports(ports: Sequence[Mapping[str, Json]]) -> list[str]:
    shown = [_describe_port(one) for one in ports[:MAX_USERS]]
    more = len(ports) - len(shown)
    return [*shown, f"and {more} more"] if more > 0 else shown


def _describe_port(port: Mapping[str, Json]) -> str:
    owner = str(port.get("device_owner") or "")
    kind = next((what for prefix, what in _OWNERS.items() if owner.startswith(prefix)), owner)
    of = f" of {kind} {port.get('device_id') or ''}".rstrip() if kind else ""
    return f"{describe('port', port)}{of}"


def describe(what: str, found: Mapping[str, Json]) -> str:
    """An object for messages: `port web (ID)`."""
    return (
        f"{what} {found['name']} ({found.get('id')})"
        if found.get("name")
        else f"{what} {found.get('id')}"
    )


async def quota_error(session: Session, project: str, error: CloudError) -> CloudError:
    """The error about a quota with what is used and the limit, if Neutron tells them."""
    names = _QUOTA_NAMES.findall(error.message)
    try:
        path = f"/quotas/{segment(project)}/details.json"
        answer = await session.request(NETWORK, "GET", path, "read the quota")
        quotas = answer["quota"]
    except (CloudError, KeyError, TypeError):
        quotas = {}
    shown = [_quota(name, quotas.get(name) or {}) for name in names]
    public = f"the quota of the project is exceeded: {', '.join(names)}"
    reason = "; ".join(shown) or error.message
    remedy = "Delete what is not needed, or ask the operator of the cloud for a higher quota."
    return CloudError(
        f"Quota exceeded for {reason}. {remedy}",
        status=error.status,
        public=public,
        kind=error.kind,
        message=error.message,
    )


def _quota(name: str, quota: Mapping[str, Json]) -> str:
    if not {"used", "limit"} <= quota.keys():
        return name
    reserved = f", {quota['reserved']} reserved" if quota.get("reserved") else ""
    return f"{name}: {quota['used']} of {quota['limit']} used{reserved}"


def without_nulls(value: Mapping[str, Json]) -> dict[str, Json]:
    return {name: one for name, one in value.items() if one is not None}


async def fixed_ip(call: Call, session: Session, given: Mapping[str, Json]) -> dict[str, Json]:
    """The fixed IP in a request, with the ID of its subnet."""
    address = without_nulls(given)
    if subnet := address.pop("subnet", None):
        address["subnet_id"] = await SUBNETS.find_id(session, str(subnet), call.project)
    return address
