"""The interfaces of servers: names become IDs, ports are made where Nova cannot make them, and an
update attaches and detaches.

A port that Headgate makes is named after the operation and its place in `networks`, so that a
repeated operation finds it. The data of the server has the IDs of its ports, and the names of those
that an operation without a result may have made; the delete removes both.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from engine.types.contract import Call, Failed, Wait
from engine.types.openstack.cloud import Session, id_of, object_in, segment
from engine.types.openstack.cloud_operation import poll
from engine.types.openstack.neutron.lookups import NETWORKS, PORTS, SECURITY_GROUPS, SUBNETS
from engine.types.openstack.nova.interfaces import (
    InterfaceChanges,
    addresses_of,
    allocation_of,
    has_fixed_ip,
    interface_changes,
    needs_port,
    network_of,
    port_request,
)
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import COMPUTE, NETWORK
from engine.words import Json

#: The properties of an entry that name objects of Neutron.
_NAMED = {"port": PORTS, "network": NETWORKS, "subnet": SUBNETS}
#: In the data of a server: the names of the ports that its operations may have made.
PORT_NAMES: Final = "port_names"
#: Names in one request that lists ports: the URL stays below 4 KB.
_NAMES_AT_ONCE: Final = 10
#: The length limit of names.
_MAX_NAME: Final = 255
#: How often an operation attaches interfaces before it fails because they fit no entry.
MAX_ROUNDS: Final = 3


class ServerPorts:
    """All methods raise CloudError."""

    def with_names(self, call: Call) -> Call:
        """The call of an update, whose data also has the names of the ports that it may make."""
        if not call.touches("networks"):
            return call
        names = dict.fromkeys([*(call.data.get(PORT_NAMES) or []), *port_names(call)])
        return replace(call, data={**call.data, PORT_NAMES: list(names)}) if names else call

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
        return [id_of(NETWORK, one) for one in await _find_named(session, port_names(call))]

    @asynccontextmanager
    async def remove_on_failure(self, session: Session, call: Call) -> AsyncIterator[None]:
        """If an error is final, delete the ports that the operation has made and that no server
        uses; the delete of the server tries again."""
        try:
            yield
        except CloudError as error:
            if not error.retry:
                with suppress(CloudError):
                    made = await _find_named(session, port_names(call))
                    unused = [id_of(NETWORK, one) for one in made if not one.get("device_id")]
                    await self.delete(session, unused)
            raise

    async def find_own(self, session: Session, data: Mapping[str, Json]) -> list[str]:
        """The ports that the operations on a server have made. data: of the server."""
        named = await _find_named(session, data.get(PORT_NAMES) or [])
        return list(
            dict.fromkeys([*(data.get("ports") or []), *(id_of(NETWORK, one) for one in named)])
        )

    async def delete(self, session: Session, ports: Sequence[str]) -> None:
        for port_id in ports:
            await session.delete(NETWORK, f"/ports/{segment(port_id)}", "delete the port")

    async def change(
        self, session: Session, call: Call, progress: Mapping[str, Json]
    ) -> Wait | Failed | list[str]:
        """Detach and attach interfaces; the IDs of the server's own ports when that is done."""
        path = f"/servers/{segment(call.physical_id)}/os-interface"
        entries, made = await self.prepare(session, call)
        found = await session.list(COMPUTE, path, "interfaceAttachments")
        found = [{**one, "port_id": id_of(COMPUTE, one, "port_id")} for one in found]
        changes = interface_changes(entries, found)
        rounds = progress.get("rounds", 0)
        if changes.attach and rounds >= MAX_ROUNDS:
            return _misfit(call, changes, found)
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
            kept = {**progress, "rounds": rounds + 1}
            return poll(call, kept, "interfaces are being attached to the server")
        await self.associate_floating_ips(session, call, str(call.physical_id))
        data = {**call.data, "ports": [*progress["ports"], *made]}
        own, attached = await self.find_own(session, data), {one["port_id"] for one in found}
        await self.delete(session, [one for one in own if one not in attached])
        return [one for one in own if one in attached]

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
                body = {"floatingip": {"port_id": id_of(NETWORK, fits[0])}}
                path = f"/floatingips/{segment(one['floating_ip'])}"
                await session.request(NETWORK, "PUT", path, "associate the floating IP", body)


def _is_port_of(entry: Mapping[str, Json], port: Mapping[str, Json]) -> bool:
    if entry.get("port"):
        return bool(entry["port"] == port.get("id"))
    subnets = [one.get("subnet_id") for one in port.get("fixed_ips") or []]
    in_network = network_of(entry) in ("", port.get("network_id"))
    in_subnet = not entry.get("subnet") or entry["subnet"] in subnets
    return in_network and in_subnet and has_fixed_ip(entry, addresses_of(port))


def _misfit(call: Call, changes: InterfaceChanges, found: Sequence[Mapping[str, Json]]) -> Failed:
    """The failure of an update whose attached interfaces do not become those of `networks`."""
    public = f"the server does not have the interfaces of `networks` after {MAX_ROUNDS} attempts"
    wanted = "; ".join(_words(one["interfaceAttachment"]) for one in changes.attach)
    present = "; ".join(
        f"port {one['port_id']} ({', '.join(addresses_of(one)) or 'no address'})" for one in found
    )
    reason = (
        f"{public}: no interface fits {wanted}; it has {present or 'none'}. Correct networks, or"
        " attach the interface with a port of your own"
    )
    return Failed(reason, call.physical_id, call.data, public_reason=public)


def _words(attachment: Mapping[str, Json]) -> str:
    if attachment.get("port_id"):
        return f"port {attachment['port_id']}"
    if not attachment.get("net_id"):
        return "any network"
    addresses = ", ".join(addresses_of(attachment))
    return f"network {attachment['net_id']}{f' with {addresses}' if addresses else ''}"


async def _with_ids(session: Session, one: Mapping[str, Json], project: str) -> dict[str, Json]:
    entry = {**one, "network": network_of(one) or None, "uuid": None}
    for name, lookup in _NAMED.items():
        if entry.get(name):
            entry[name] = await lookup.find_id(session, str(entry[name]), project)
    return entry


async def _make_port(session: Session, call: Call, number: int, entry: Mapping[str, Json]) -> str:
    found = await _find_port(session, call, number)
    if found is not None:
        return id_of(NETWORK, found)
    network_id = network_of(entry)
    if not network_id:
        path, doing = f"/subnets/{segment(entry['subnet'])}", "read the subnet"
        document = await session.request(NETWORK, "GET", path, doing)
        subnet = object_in(NETWORK, doing, document, "subnet")
        network_id = id_of(NETWORK, subnet, "network_id")
    groups = await _security_group_ids(session, call)
    body = port_request(_port_name(call, number), entry, network_id, groups)
    created = await session.create(NETWORK, "/ports", "port", "create a port of the server", body)
    return id_of(NETWORK, created)


async def _find_port(session: Session, call: Call, number: int) -> Mapping[str, Json] | None:
    found = await _find_named(session, [_port_name(call, number)])
    return found[0] if found else None


async def _find_named(session: Session, names: Sequence[str]) -> list[Mapping[str, Json]]:
    found: list[Mapping[str, Json]] = []
    for start in range(0, len(names), _NAMES_AT_ONCE):
        query = {"name": names[start : start + _NAMES_AT_ONCE]}
        found += await session.list(NETWORK, "/ports", "ports", query)
    return [one for one in found if one.get("name") in names]


def port_names(call: Call) -> list[str]:
    """The names of the ports that Headgate makes in an operation."""
    networks = call.properties.get("networks") or []
    return [_port_name(call, number) for number, one in enumerate(networks) if needs_port(one)]


def _port_name(call: Call, number: int) -> str:
    return f"{call.own_name}-port-{number}"[-_MAX_NAME:]


async def _security_group_ids(session: Session, call: Call) -> list[str]:
    groups = call.properties.get("security_groups") or []
    return [await SECURITY_GROUPS.find_id(session, str(one), call.project) for one in groups]
