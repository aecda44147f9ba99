"""The network interfaces of a server: what Nova gets at its creation, and the difference to what a
server has. Pure.

An entry is an item of the property `networks` with IDs in place of names. Neutron ports that
Headgate makes for an entry (with a subnet or `port_extra_properties`) become its `port`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.types.openstack.addresses import canonical
from engine.words import Json

AUTO, NONE = "auto", "none"
#: The message for a server without `networks`.
MISSING: Final = (
    "networks is missing: Nova does not choose the interfaces of a server. Name a network or port,"
    " or write `networks: [{allocate_network: auto}]` for a network that Nova chooses, or"
    " `networks: [{allocate_network: none}]` for a server without interfaces."
)
#: The defaults of `port_extra_properties`, as Nova makes its ports.
_PORT_DEFAULTS: Final[Mapping[str, Json]] = {
    "admin_state_up": True, "binding:vnic_type": "normal", "no_fixed_ips": False
}  # fmt: skip
_NAMES = ("port", "network", "uuid", "subnet")


def networks_error(networks: Sequence[Mapping[str, Json]] | None) -> str | None:
    """The reason why the property is not valid, or None. networks: all known."""
    if not networks:
        return MISSING
    for number, one in enumerate(networks):
        named = [name for name in _NAMES if one.get(name)]
        if one.get("allocate_network"):
            if len(networks) > 1 or named:
                return combined_error(number)
        elif not named:
            return f"networks[{number}] names no port, network or subnet"
        elif one.get("port") and one.get("fixed_ip"):
            return f"networks[{number}] has a port and fixed_ip: the port has its own addresses"
    return None


def named_ports(networks: Sequence[Json]) -> list[int]:
    """The entries whose `value_specs` set the name of the port."""
    found = []
    for number, one in enumerate(networks):
        extra = one.get("port_extra_properties") if isinstance(one, Mapping) else None
        specs = extra.get("value_specs") if isinstance(extra, Mapping) else None
        if isinstance(specs, Mapping) and "name" in specs:
            found.append(number)
    return found


def combined_error(number: int) -> str:
    return f"networks[{number}] has allocate_network, which must be the only entry and setting"


def allocation_of(networks: Sequence[Mapping[str, Json]]) -> str:
    """auto or none; "" if the property names interfaces."""
    return str(networks[0].get("allocate_network") or "") if networks else ""


def network_of(entry: Mapping[str, Json]) -> str:
    """The name or ID of an entry's network; "" for none."""
    return str(entry.get("network") or entry.get("uuid") or "")


def needs_port(entry: Mapping[str, Json]) -> bool:
    """Whether Headgate creates a port for the entry, because Nova cannot make it as required."""
    extra = entry.get("port_extra_properties") or {}
    unusual = any(
        one not in (None, [], {}) and one != _PORT_DEFAULTS.get(name) for name, one in extra.items()
    )
    return not entry.get("port") and bool(entry.get("subnet") or unusual)


def requested_interfaces(entries: Sequence[Mapping[str, Json]]) -> Json:
    """The interfaces in the request that creates a server."""
    return allocation_of(entries) or [_requested_interface(one) for one in entries]


def _requested_interface(entry: Mapping[str, Json]) -> dict[str, Json]:
    tag = {"tag": entry["tag"]} if entry.get("tag") else {}
    if entry.get("port"):
        return {"port": entry["port"], **tag}
    fixed = {"fixed_ip": entry["fixed_ip"]} if entry.get("fixed_ip") else {}
    return {"uuid": network_of(entry), **fixed, **tag}


@dataclass(frozen=True, slots=True)
class InterfaceChanges:
    """detach: IDs of ports. attach: documents of ``POST /servers/ID/os-interface``."""

    detach: Sequence[str] = ()
    attach: Sequence[Mapping[str, Json]] = field(default=(), repr=False)


def interface_changes(
    entries: Sequence[Mapping[str, Json]], found: Sequence[Mapping[str, Json]]
) -> InterfaceChanges:
    """What to detach and attach. found: ``interfaceAttachments`` of the server.

    An interface that fits an entry stays. An entry with a port fits this port only.
    """
    allocation = allocation_of(entries)
    if allocation == NONE:
        return InterfaceChanges([str(one["port_id"]) for one in found])
    if allocation == AUTO:
        return InterfaceChanges((), () if found else [{"interfaceAttachment": {}}])
    free = {str(one["port_id"]): one for one in found}
    attach: list[Mapping[str, Json]] = []
    for entry in sorted(entries, key=_exactness):
        kept = next((port for port, one in free.items() if _fits(entry, one)), None)
        if kept is None:
            attach.append({"interfaceAttachment": _attachment(entry)})
        else:
            del free[kept]
    return InterfaceChanges(list(free), attach)


def _exactness(entry: Mapping[str, Json]) -> int:
    """The order in which entries choose their interfaces: the most exact ones first."""
    return 0 if entry.get("port") else 1 if entry.get("fixed_ip") else 2


def _fits(entry: Mapping[str, Json], interface: Mapping[str, Json]) -> bool:
    if entry.get("port"):
        return bool(entry["port"] == interface["port_id"])
    in_network = interface.get("net_id") == network_of(entry)
    return in_network and has_fixed_ip(entry, addresses_of(interface))


def addresses_of(interface: Mapping[str, Json]) -> list[str]:
    """The addresses of an interface or port, as its service writes them."""
    return [str(one.get("ip_address")) for one in interface.get("fixed_ips") or []]


def has_fixed_ip(entry: Mapping[str, Json], addresses: Iterable[str]) -> bool:
    """Whether the address that an entry requires, if any, is one of these addresses."""
    wanted = entry.get("fixed_ip")
    return not wanted or canonical(str(wanted)) in {canonical(one) for one in addresses}


def _attachment(entry: Mapping[str, Json]) -> dict[str, Json]:
    tag = {"tag": entry["tag"]} if entry.get("tag") else {}
    if entry.get("port"):
        return {"port_id": entry["port"], **tag}
    fixed = [{"ip_address": entry["fixed_ip"]}] if entry.get("fixed_ip") else []
    return {"net_id": network_of(entry), **({"fixed_ips": fixed} if fixed else {}), **tag}


def port_request(
    name: str, entry: Mapping[str, Json], network_id: str, security_groups: Sequence[str]
) -> dict[str, Json]:
    """The document of ``POST /ports`` for an entry. security_groups: IDs. subnet: an ID.

    A repeated operation and the delete find the port by its name, which `value_specs` cannot
    change.
    """
    extra = {
        key: one
        for key, one in (entry.get("port_extra_properties") or {}).items()
        if one is not None and key not in ("no_fixed_ips", "value_specs", "qos_policy")
    }
    given = entry.get("port_extra_properties") or {}
    port: dict[str, Json] = {"name": name, "network_id": network_id, **extra}
    if given.get("qos_policy"):
        port["qos_policy_id"] = given["qos_policy"]
    if security_groups:
        port["security_groups"] = list(security_groups)
    if given.get("no_fixed_ips"):
        port["fixed_ips"] = []
    elif entry.get("subnet") or entry.get("fixed_ip"):
        subnet = {"subnet_id": entry["subnet"]} if entry.get("subnet") else {}
        fixed = {"ip_address": entry["fixed_ip"]} if entry.get("fixed_ip") else {}
        port["fixed_ips"] = [{**subnet, **fixed}]
    return {"port": {**port, **(given.get("value_specs") or {}), "name": name}}
