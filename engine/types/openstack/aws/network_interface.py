"""AWS::EC2::NetworkInterface, a port of Neutron."""

from collections.abc import Mapping
from typing import ClassVar

from engine.types.contract import Call
from engine.types.openstack.aws.lookups import network_of_subnet
from engine.types.openstack.aws.mapped_type import MappedType
from engine.types.openstack.cloud import Session
from engine.words import Json


class NetworkInterface(MappedType):
    names: ClassVar = {
        "SubnetId": ("fixed_ips", "network"),
        "PrivateIpAddress": ("fixed_ips",),
        "GroupSet": ("security_groups",),
    }
    not_implemented: ClassVar = ("Tags",)

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        address = {"subnet": properties.get("SubnetId")}
        if wanted := properties.get("PrivateIpAddress"):
            address["ip_address"] = wanted
        return {"fixed_ips": [address], "security_groups": properties.get("GroupSet")}

    async def resolve(self, call: Call, session: Session) -> Mapping[str, Json]:
        if call.previous is not None:
            return {}
        subnet = str(call.properties["SubnetId"])
        return {"network": await network_of_subnet(session, subnet, call.project)}

    def own_attributes(self, call: Call, attributes: Mapping[str, Json]) -> dict[str, Json]:
        addresses = attributes.get("fixed_ips") or [{}]
        return {"PrivateIpAddress": addresses[0].get("ip_address")}
