"""OS::Manila::ShareNetwork: a network for share servers."""

from collections.abc import Collection, Mapping

from engine.errors import Findings
from engine.types.contract import Call
from engine.types.openstack.cloud import Cloud, Session, object_in, segment
from engine.types.openstack.manila.listed_type import ListedType
from engine.types.openstack.manila.lookups import SECURITY_SERVICES
from engine.types.openstack.manila.schema import SHARE_NETWORK
from engine.types.openstack.neutron.lookups import NETWORKS, SUBNETS
from engine.types.openstack.object_type import ObjectRow
from engine.types.openstack.services import NETWORK, SHARED_FILE_SYSTEM
from engine.words import Json

NEUTRON_NETWORK, NEUTRON_SUBNET = "neutron_network", "neutron_subnet"
SERVICES = "security_services"


class ShareNetwork(ListedType):
    detailed_list = "/share-networks/detail"

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "share network", SHARED_FILE_SYSTEM, "/share-networks", "share_network",
            "share_networks",
            fields={NEUTRON_NETWORK: "neutron_net_id", NEUTRON_SUBNET: "neutron_subnet_id"},
            lookups={NEUTRON_NETWORK: NETWORKS, NEUTRON_SUBNET: SUBNETS},
            separate=frozenset({SERVICES}),
        )  # fmt: skip
        super().__init__(SHARE_NETWORK, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if properties.get(NEUTRON_NETWORK) and not properties.get(NEUTRON_SUBNET):
            reason = f"is missing: {NEUTRON_NETWORK} requires it"
            findings.add(f"{place}.{NEUTRON_SUBNET}", reason, "Name a subnet of the network.")

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        fields = await super().fields_for_create(call, session)
        return await _with_network(session, fields)

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        """Manila changes the network and the subnet together."""
        if {NEUTRON_NETWORK, NEUTRON_SUBNET} & set(names):
            names = {*names, NEUTRON_NETWORK, NEUTRON_SUBNET}
        fields = await super().fields_for_update(call, session, names)
        return await _with_network(session, fields)

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        if not self.touches(call, SERVICES):
            return found
        network, doing = self.id_of(found), "change the security services of the share network"
        query = {"share_network_id": network}
        listed = await session.list(
            SHARED_FILE_SYSTEM, SECURITY_SERVICES.path, SECURITY_SERVICES.key, query
        )
        now = {SECURITY_SERVICES.id_of(one) for one in listed}
        wanted = {
            await SECURITY_SERVICES.find_id(session, str(one), call.project)
            for one in call.properties.get(SERVICES) or ()
        }
        for action, services in (
            ("remove_security_service", now - wanted),
            ("add_security_service", wanted - now),
        ):
            for one in sorted(services):
                body = {action: {"security_service_id": one}}
                action_path = f"{path}/{segment(network)}/action"
                await session.request(SHARED_FILE_SYSTEM, "POST", action_path, doing, body)
        return await self.get(session, path, network)


async def _with_network(session: Session, fields: dict[str, Json]) -> dict[str, Json]:
    """The fields, with the network of the subnet."""
    subnet = fields.get("neutron_subnet_id")
    if not subnet or fields.get("neutron_net_id"):
        return fields
    path, doing = f"{SUBNETS.path}/{segment(subnet)}", "read the subnet"
    found = object_in(NETWORK, doing, await session.request(NETWORK, "GET", path, doing), "subnet")
    return {**fields, "neutron_net_id": found.get("network_id")}
