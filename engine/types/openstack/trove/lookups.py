"""The flavors of Trove, and the networks of its instances."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.types.openstack.cloud import Session, id_of
from engine.types.openstack.names import Lookup
from engine.types.openstack.neutron.lookups import NETWORKS, PORTS, SUBNETS
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import DATABASE, NETWORK
from engine.words import Json

NETWORK_NAME, PORT, FIXED_IP = "network", "port", "fixed_ip"


class _FlavorLookup(Lookup):
    """The field `id` is for numbers alone."""

    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(self.service, found, "str_id")


FLAVORS: Final = _FlavorLookup("flavor", DATABASE, "/flavors", "flavors", filters=False)


def check_interfaces(
    interfaces: Sequence[Mapping[str, Json]], place: str, findings: Findings
) -> None:
    """Report interfaces that name neither a network nor a port, or both."""
    for number, one in enumerate(interfaces):
        if (one.get(NETWORK_NAME) is None) == (one.get(PORT) is None):
            reason = "has neither network nor port, or both"
            findings.add(f"{place}.{number}", reason, "Set one of them.")


async def interface_of(
    session: Session, entry: Mapping[str, Json], project: str
) -> dict[str, Json]:
    """The request for an interface: an entry of the property `networks`, as Trove has it."""
    fields: dict[str, Json] = {}
    if entry.get(PORT):
        fields["port-id"] = await PORTS.find_id(session, str(entry[PORT]), project)
    if entry.get(NETWORK_NAME):
        network = await NETWORKS.find_id(session, str(entry[NETWORK_NAME]), project)
        fields["network_id"] = network
        if entry.get(FIXED_IP):
            address = str(entry[FIXED_IP])
            fields["subnet_id"] = await _subnet_with(session, network, address)
            fields["ip_address"] = address
    return fields


async def _subnet_with(session: Session, network: str, address: str) -> str:
    """The ID of the subnet that has an address."""
    wanted = ipaddress.ip_address(address)
    found = await session.list(NETWORK, SUBNETS.path, SUBNETS.key, {"network_id": network})
    for one in found:
        if wanted in ipaddress.ip_network(str(one.get("cidr")), strict=False):
            return SUBNETS.id_of(one)
    public = "no subnet of the network has the address"
    raise CloudError(f"{public} {address}", public=public)
