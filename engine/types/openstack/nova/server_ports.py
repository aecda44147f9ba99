"""The interfaces of servers: names become IDs, ports are made where Nova cannot make them, and an
update attaches and detaches.

A port that Headgate makes is named after the operation and its place in `networks`, so that a
repeated operation finds it; the IDs are in the data of the server, which deletes them.
"""

from collections.abc import Mapping, Sequence

from engine.types.contract import Call, Wait
from engine.types.openstack.cloud import Session, segment
from engine.types.openstack.cloud_operation import poll
from engine.types.openstack.neutron.lookups import NETWORKS, PORTS, SECURITY_GROUPS, SUBNETS
from engine.types.openstack.nova.interfaces import (
    allocation_of,
    interface_changes,
    needs_port,
    network_of,
    port_request,
)
from engine.types.openstack.services import COMPUTE, NETWORK
from engine.words import Json

#: The properties of an entry that name objects of Neutron.
_NAMED = {"port": PORTS, "network": NETWORKS, "subnet": SUBNETS}


class ServerPorts:
    """All methods raise CloudError."""

    async def prepare(
        self, session: Session, call: Call
    ) -> tuple[Sequence[Mapping[str, Json]], list[str]]:
        """The entries of `networks` with IDs, and the IDs of the ports that were made for them."""
        given = call.properties.get("networks") or []
        if allocation_of(given):
            return given, []
        entries, made = [], []
        for number, one in enumerate(given):
            entry = await _with_ids(session, one, call.project)
            if needs_port(entry):
                port_id = await _make_port(session, call, number, entry)
                made.append(port_id)
                entry = {"port": port_id, "tag": entry.get("tag")}
            entries.append(entry)
        return entries, made

    async def of_operation(self, session: Session, call: Call) -> list[str]:
        """The ports that a lost call of the operation made."""
        made = []
        for number, one in enumerate(call.properties.get("networks") or []):
            if needs_port(one) and (found := await _find_port(session, call, number)) is not None:
                made.append(str(found["id"]))
        return made

    async def delete(self, session: Session, ports: Sequence[str]) -> None:
        for port_id in ports:
            await session.delete(NETWORK, f"/ports/{segment(port_id)}", "delete the port")

    async def change(
        self, session: Session, call: Call, progress: Mapping[str, Json]
    ) -> Wait | list[str]:
        """Detach and attach interfaces; the IDs of the server's own ports when that is done."""
        path = f"/servers/{segment(call.physical_id)}/os-interface"
        entries, made = await self.prepare(session, call)
        found = await session.list(COMPUTE, path, "interfaceAttachments")
        changes = interface_changes(entries, found)
        asked = set(progress.get("detached") or [])
        if changes.detach:
            for port_id in changes.detach:
                if port_id not in asked:
                    await session.delete(COMPUTE, f"{path}/{port_id}", "detach an interface")
            kept = {**progress, "detached": sorted(asked | set(changes.detach))}
            return poll(call, kept, "interfaces are being detached from the server")
        for body in changes.attach:
            await session.request(COMPUTE, "POST", path, "attach an interface", body)
        if changes.attach:
            return poll(call, progress, "interfaces are being attached to the server")
        await self.associate_floating_ips(session, call, str(call.physical_id))
        kept_ports = [one for one in progress["ports"] if one in {i["port_id"] for i in found}]
        await self.delete(session, [one for one in progress["ports"] if one not in kept_ports])
        return [*kept_ports, *(one for one in made if one not in kept_ports)]

    async def associate_floating_ips(self, session: Session, call: Call, server_id: str) -> None:
        """Associate the floating IPs that entries name with the interfaces of these entries."""
        given = call.properties.get("networks") or []
        if not any(one.get("floating_ip") for one in given):
            return
        ports = await session.list(NETWORK, "/ports", "ports", {"device_id": server_id})
        for one in given:
            if not one.get("floating_ip"):
                continue
            entry = await _with_ids(session, one, call.project)
            fits = [port for port in ports if _is_port_of(entry, port)]
            if fits:
                body = {"floatingip": {"port_id": fits[0]["id"]}}
                path = f"/floatingips/{segment(one['floating_ip'])}"
                await session.request(NETWORK, "PUT", path, "associate the floating IP", body)


def _is_port_of(entry: Mapping[str, Json], port: Mapping[str, Json]) -> bool:
    if entry.get("port"):
        return bool(entry["port"] == port["id"])
    fixed = entry.get("fixed_ip")
    addresses = [one.get("ip_address") for one in port.get("fixed_ips") or []]
    subnets = [one.get("subnet_id") for one in port.get("fixed_ips") or []]
    in_network = network_of(entry) in ("", port.get("network_id"))
    in_subnet = not entry.get("subnet") or entry["subnet"] in subnets
    return in_network and in_subnet and (not fixed or fixed in addresses)


async def _with_ids(session: Session, one: Mapping[str, Json], project: str) -> dict[str, Json]:
    entry = {**one, "network": network_of(one) or None, "uuid": None}
    for name, lookup in _NAMED.items():
        if entry.get(name):
            entry[name] = await lookup.find_id(session, str(entry[name]), project)
    return entry


async def _make_port(session: Session, call: Call, number: int, entry: Mapping[str, Json]) -> str:
    found = await _find_port(session, call, number)
    if found is not None:
        return str(found["id"])
    network_id = network_of(entry)
    if not network_id:
        subnet = await session.request(
            NETWORK, "GET", f"/subnets/{segment(entry['subnet'])}", "read the subnet"
        )
        network_id = str(subnet["subnet"]["network_id"])
    groups = await _security_group_ids(session, call)
    body = port_request(_port_name(call, number), entry, network_id, groups)
    created = await session.create(NETWORK, "/ports", "port", "create a port of the server", body)
    return str(created["id"])


async def _find_port(session: Session, call: Call, number: int) -> Mapping[str, Json] | None:
    found = await session.list(NETWORK, "/ports", "ports", {"name": _port_name(call, number)})
    return found[0] if found else None


def _port_name(call: Call, number: int) -> str:
    return f"{call.own_name}-port-{number}"


async def _security_group_ids(session: Session, call: Call) -> list[str]:
    groups = call.properties.get("security_groups") or []
    return [await SECURITY_GROUPS.find_id(session, str(one), call.project) for one in groups]
