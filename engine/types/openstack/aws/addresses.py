"""AWS::EC2::EIP and EIPAssociation, floating IPs of Neutron."""

from collections.abc import Mapping
from typing import ClassVar

from engine.errors import Findings
from engine.types.contract import Call, Done
from engine.types.openstack.aws.lookups import (
    external_network,
    gateway_of,
    port_of_server,
    read,
    router_of_vpc,
    set_gateway,
)
from engine.types.openstack.aws.mapped_type import MappedType
from engine.types.openstack.cloud import Session, id_of
from engine.types.openstack.neutron.lookups import PORTS
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import NETWORK
from engine.words import Json


class ElasticIp(MappedType):
    """get_resource returns the address."""

    names: ClassVar = {"InstanceId": ("port_id", "fixed_ip_address")}

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {}

    async def resolve(self, call: Call, session: Session) -> Mapping[str, Json]:
        found: dict[str, Json] = {}
        if call.previous is None:
            found["floating_network"] = await external_network(session)
        if server := call.properties.get("InstanceId"):
            port, address = await port_of_server(session, str(server))
            found |= {"port_id": port, "fixed_ip_address": address}
        return found

    def own_attributes(self, call: Call, attributes: Mapping[str, Json]) -> dict[str, Json]:
        return {"AllocationId": (attributes.get("show") or {}).get("id")}

    def own_data(self, call: Call, done: Done) -> dict[str, Json]:
        shown = done.attributes.get("show") or {}
        return {"address": shown.get("floating_ip_address")}

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("address") or resource_name)


class ElasticIpAssociation(MappedType):
    """Its physical ID is that of the floating IP; get_resource returns a name, as in Heat.

    An update is always in place: other properties can mean the same floating IP and port, and the
    delete of a replaced association would disconnect its replacement.
    """

    names: ClassVar = {
        "EIP": ("floatingip_id",),
        "AllocationId": ("floatingip_id",),
        "InstanceId": ("port_id", "fixed_ip_address"),
        "NetworkInterfaceId": ("port_id", "fixed_ip_address"),
    }

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        floating = properties.get("EIP") or properties.get("AllocationId")
        return {"floatingip_id": floating, "port_id": properties.get("NetworkInterfaceId")}

    async def resolve(self, call: Call, session: Session) -> Mapping[str, Json]:
        given = call.properties
        _check_given(given)
        port, address = given.get("NetworkInterfaceId"), None
        if given.get("EIP") or not port:
            port, address = await port_of_server(session, str(given["InstanceId"]))
        if allocation := given.get("AllocationId"):
            await _give_gateway(session, str(allocation), str(port), call.project)
        return {"port_id": port, "fixed_ip_address": address}

    def own_data(self, call: Call, done: Done) -> dict[str, Json]:
        return {"name": call.data.get("name") or call.own_name}

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("name") or resource_name)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        """What is missing may be a reference that is unknown yet: a create reports that."""
        super().check_properties(properties, place, findings)
        if properties.get("EIP") and properties.get("AllocationId"):
            findings.add(place, _NO_ADDRESS, "Remove one of them.")


_NO_ADDRESS = "Either 'EIP' or 'AllocationId' must be provided."


def _check_given(given: Mapping[str, Json]) -> None:
    """Raises CloudError."""
    reason = ""
    if bool(given.get("EIP")) == bool(given.get("AllocationId")):
        reason = _NO_ADDRESS
    elif given.get("EIP") and not given.get("InstanceId"):
        reason = "Must specify 'InstanceId' if you specify 'EIP'."
    elif not given.get("InstanceId") and not given.get("NetworkInterfaceId"):
        reason = "At least one of the following properties must be specified: "
        reason += "InstanceId, NetworkInterfaceId."
    if reason:
        raise CloudError(reason, public=reason)


async def _give_gateway(session: Session, floating: str, port: str, project: str) -> None:
    """Connect the router of the port's VPC, if it has one, with the network of a floating IP."""
    port_id = await PORTS.find_id(session, port, project)
    network = id_of(NETWORK, await read(session, "ports", "port", port_id), "network_id")
    router = await router_of_vpc(session, network)
    if router is None:
        return
    found = await read(session, "floatingips", "floatingip", floating)
    external = id_of(NETWORK, found, "floating_network_id")
    if gateway_of(router) != external:
        await set_gateway(session, id_of(NETWORK, router), external)
