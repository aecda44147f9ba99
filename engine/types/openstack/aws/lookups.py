"""What the types AWS::EC2::* read from Neutron. All functions raise CloudError."""

from collections.abc import Mapping

from engine.types.openstack.cloud import Session, id_of, object_in, segment
from engine.types.openstack.neutron.lookups import SUBNETS
from engine.types.openstack.neutron.routers import change_interface, find_interface_port
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import NETWORK
from engine.words import Json


async def read(session: Session, collection: str, key: str, object_id: str) -> Mapping[str, Json]:
    """An object of Neutron."""
    doing = f"read the {key}"
    path = f"/{collection}/{segment(object_id)}"
    return object_in(NETWORK, doing, await session.request(NETWORK, "GET", path, doing), key)


async def network_of_subnet(session: Session, subnet: str, project: str) -> str:
    """The ID of the network of a subnet. subnet: its name or ID."""
    subnet_id = await SUBNETS.find_id(session, subnet, project)
    return id_of(NETWORK, await read(session, "subnets", "subnet", subnet_id), "network_id")


async def external_network(session: Session, preferred: str | None = None) -> str:
    """The ID of the only external network; if there are several, of the preferred or the default
    one."""
    found = await session.list(NETWORK, "/networks", "networks", {"router:external": "True"})
    if preferred is not None and any(id_of(NETWORK, one) == preferred for one in found):
        return preferred
    chosen = [one for one in found if one.get("is_default")] or found
    if len(chosen) == 1:
        return id_of(NETWORK, chosen[0])
    public = f"Expected 1 external network, found {len(found)}"
    remedy = "Use OS::Neutron::FloatingIP and OS::Neutron::Router, which name their network."
    if found:
        remedy = f"{remedy} Or let the operator of the cloud make one of them the default."
    raise CloudError(f"{public}. {remedy}", public=public)


async def port_of_server(session: Session, server: str) -> tuple[str, str | None]:
    """The ID of the first port of a server, and its first address of IPv4."""
    ports = await session.list(NETWORK, "/ports", "ports", {"device_id": server})
    if not ports:
        public = "the server has no network interface"
        raise CloudError(f"{public}: {server}. Give it one, or name a port.", public=public)
    first = min(ports, key=lambda one: (str(one.get("created_at")), str(one.get("id"))))
    addresses = [str(one.get("ip_address")) for one in first.get("fixed_ips") or []]
    return id_of(NETWORK, first), next((one for one in addresses if ":" not in one), None)


async def router_of_vpc(session: Session, network: str) -> Mapping[str, Json] | None:
    """The router that has the name of a network; None if there is none."""
    name = str((await read(session, "networks", "network", network)).get("name") or "")
    if not name:
        return None
    found = await session.list(NETWORK, "/routers", "routers", {"name": name})
    if len(found) > 1:
        ids = ", ".join(id_of(NETWORK, one) for one in found)
        public = f"Multiple routers found with name {name}"
        raise CloudError(f"{public}: {ids}. Rename the others.", public=public)
    return found[0] if found else None


async def set_gateway(session: Session, router: str, network: str | None) -> None:
    """Connect a router with an external network; None: with none."""
    gateway = {"network_id": network} if network else {}
    body = {"router": {"external_gateway_info": gateway}}
    path = f"/routers/{segment(router)}"
    await session.request(NETWORK, "PUT", path, "change the gateway of the router", body)


def gateway_of(router: Mapping[str, Json]) -> str | None:
    """The ID of the external network of a router; None if it has no gateway."""
    found = router.get("external_gateway_info")
    network = found.get("network_id") if isinstance(found, Mapping) else None
    return str(network) if network else None


async def connect(session: Session, router: str, subnet: str) -> None:
    """Give a router an interface in a subnet, unless it has one."""
    interface = (router, "subnet_id", subnet)
    if await find_interface_port(session, interface) is None:
        await change_interface(session, interface, "add")


async def disconnect(session: Session, router: str, subnet: str) -> None:
    """Remove the interface of a router in a subnet, if it has one."""
    interface = (router, "subnet_id", subnet)
    if await find_interface_port(session, interface) is not None:
        await change_interface(session, interface, "remove")
