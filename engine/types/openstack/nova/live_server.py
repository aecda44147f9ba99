"""The properties of an existing server, for a template that imports it. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from engine.types.live_object import NOT_RETURNED
from engine.types.openstack.live_values import LiveProperties
from engine.types.openstack.nova import server_state
from engine.types.openstack.nova.server_request import own_metadata
from engine.words import Json

_VOLUMES: Final = "os-extended-volumes:volumes_attached"
#: Properties that Nova does not show as they were requested.
_UNREAD: Final[Mapping[str, str]] = {
    "availability_zone": "Nova shows where the server is, not what was requested",
    "scheduler_hints": NOT_RETURNED,
    "security_groups": "ports have them: import the ports",
    "user_data": "it may have secrets",
}


def live_server(
    server: Mapping[str, Json], ports: Sequence[Mapping[str, Json]], imported: Collection[str]
) -> LiveProperties:
    """ports: of the server, in their order. imported: the IDs of objects that the template imports:
    such a port is referred to; others belong to the server."""
    live = LiveProperties(reasons=dict(_UNREAD))
    live.values |= {
        "name": server.get("name"),
        "flavor": server_state.flavor_name(server),
        "image": server_state.image_id(server),
        "key_name": server.get("key_name"),
        "metadata": own_metadata(server),
        "tags": sorted(server.get("tags") or []),
        "networks": [_interface(one, imported) for one in ports],
    }
    if server.get("config_drive"):
        live.values["config_drive"] = True
    if not live.values["image"]:
        live.values["block_device_mapping_v2"] = _boot_volume(server)
    return live


def _interface(port: Mapping[str, Json], imported: Collection[str]) -> dict[str, Json]:
    if port.get("id") in imported:
        return {"port": port["id"]}
    addresses = [one["ip_address"] for one in port.get("fixed_ips") or []]
    return {"network": port.get("network_id"), **({"fixed_ip": addresses[0]} if addresses else {})}


def _boot_volume(server: Mapping[str, Json]) -> list[Json]:
    volumes = server.get(_VOLUMES) or []
    return [
        {
            "volume_id": one["id"],
            "boot_index": 0,
            "delete_on_termination": bool(one.get("delete_on_termination")),
        }
        for one in volumes[:1]
    ]
