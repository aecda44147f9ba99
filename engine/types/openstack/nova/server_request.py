"""The request that creates a server, from its properties. Pure.

The names of fields are those of Nova's API.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Final

from engine.types.openstack.nova.user_data import encode
from engine.types.openstack.operation_marker import MARKER, metadata_of
from engine.types.text_cleaning import as_text
from engine.words import Json

#: The newest version of Nova's API that writes files into servers.
PERSONALITY_VERSION: Final = "compute 2.56"
#: Names of the first disk of a server.
_FIRST_DEVICES = frozenset({"vda", "sda", "hda", "xvda"})


def create_request(
    name: str,
    properties: Mapping[str, Json],
    *,
    flavor_id: str,
    image_id: str | None,
    networks: Json,
    user_data: str,
    marker: str,
) -> dict[str, Json]:
    """The document of ``POST /servers``. networks: "auto", "none" or entries as Nova expects them.
    images in block devices must be IDs."""
    devices = block_devices(properties, image_id)
    server: dict[str, Json] = {
        "name": name,
        "flavorRef": flavor_id,
        "imageRef": image_id or "",
        "networks": networks,
        "metadata": {**metadata_of(properties), MARKER: marker},
        "availability_zone": properties.get("availability_zone"),
        "key_name": properties.get("key_name"),
        "config_drive": properties.get("config_drive"),
        "tags": properties.get("tags") or None,
        "security_groups": [{"name": one} for one in properties.get("security_groups") or []],
        "user_data": encode(user_data) if user_data else None,
        "block_device_mapping_v2": devices or None,
        "adminPass": properties.get("admin_pass"),
        "OS-DCF:diskConfig": properties.get("diskConfig"),
        "personality": _personality(properties) or None,
    }
    document: dict[str, Json] = {"server": _without_nulls(server)}
    if hints := _without_nulls(properties.get("scheduler_hints") or {}):
        document["os:scheduler_hints"] = hints
    return document


def microversion_of(properties: Mapping[str, Json]) -> str:
    """The version of Nova's API that the create needs; "" for the usual one."""
    return PERSONALITY_VERSION if properties.get("personality") else ""


def own_metadata(server: Mapping[str, Json]) -> dict[str, Json]:
    """The metadata of a server without Headgate's marker."""
    return {name: one for name, one in (server.get("metadata") or {}).items() if name != MARKER}


def block_devices(properties: Mapping[str, Json], image_id: str | None) -> list[dict[str, Json]]:
    """The block devices, with the image as the first one if there are others."""
    devices = [_old_device(one) for one in properties.get("block_device_mapping") or []]
    devices += [_device(one) for one in properties.get("block_device_mapping_v2") or []]
    if not devices:
        return []
    if image_id:
        return [
            {
                "source_type": "image",
                "destination_type": "local",
                "uuid": image_id,
                "boot_index": 0,
                "delete_on_termination": True,
            },
            *devices,
        ]
    if not any(one.get("boot_index") == 0 for one in devices):
        for one in devices:
            if one["source_type"] != "blank" and one.get("boot_index") is None:
                one["boot_index"] = 0
                break
    return devices


def is_bootable(properties: Mapping[str, Json]) -> bool:
    """Whether the properties name an image or a volume to boot from."""
    if properties.get("image"):
        return True
    return any(one.get("boot_index") == 0 for one in block_devices(properties, None))


def device_error(properties: Mapping[str, Json]) -> tuple[str, str] | None:
    """The place below the properties and the reason if a block device has not exactly one source.

    Only for properties that are all known.
    """
    sources = ("volume_id", "snapshot_id", "image", "image_id", "swap_size", "ephemeral_size")
    for name in ("block_device_mapping", "block_device_mapping_v2"):
        for number, one in enumerate(properties.get(name) or []):
            named = [source for source in sources if one.get(source) not in (None, "")]
            if len(named) != 1:
                known = ", ".join(sources if name.endswith("v2") else sources[:2])
                found = f"has {' and '.join(named)}" if named else "has no source"
                return f"{name}[{number}]", f"{found}: it needs exactly one of {known}"
    return None


def _old_device(one: Mapping[str, Json]) -> dict[str, Json]:
    kind = "snapshot" if one.get("snapshot_id") else "volume"
    name = str(one.get("device_name") or "").rpartition("/")[2]
    return _without_nulls(
        {
            "source_type": kind,
            "destination_type": "volume",
            "uuid": one.get(f"{kind}_id"),
            "device_name": one.get("device_name"),
            "volume_size": one.get("volume_size"),
            "delete_on_termination": one.get("delete_on_termination"),
            "boot_index": 0 if name in _FIRST_DEVICES else None,
        }
    )


def _device(one: Mapping[str, Json]) -> dict[str, Json]:
    common = {
        "device_name": one.get("device_name"),
        "device_type": one.get("device_type"),
        "disk_bus": one.get("disk_bus"),
        "boot_index": one.get("boot_index"),
        "delete_on_termination": one.get("delete_on_termination"),
        "volume_size": one.get("volume_size"),
        "volume_type": one.get("volume_type"),
    }
    return _without_nulls({**common, **_source_of(one)})


def _source_of(one: Mapping[str, Json]) -> dict[str, Json]:
    image = one.get("image") or one.get("image_id")
    for kind, found in (
        ("volume", one.get("volume_id")),
        ("snapshot", one.get("snapshot_id")),
        ("image", image),
    ):
        if found:
            return {"source_type": kind, "destination_type": "volume", "uuid": found}
    swap = one.get("swap_size")
    return {
        "source_type": "blank",
        "destination_type": "local",
        "boot_index": -1,
        "delete_on_termination": True,
        "guest_format": "swap" if swap else one.get("ephemeral_format"),
        "volume_size": swap or one.get("ephemeral_size"),
    }


def _personality(properties: Mapping[str, Json]) -> Sequence[Mapping[str, str]]:
    return [
        {"path": path, "contents": base64.b64encode(as_text(content).encode()).decode()}
        for path, content in (properties.get("personality") or {}).items()
    ]


def _without_nulls(document: Mapping[str, Json]) -> dict[str, Json]:
    """Without nulls and empty lists, which Nova does not accept everywhere."""
    return {name: one for name, one in document.items() if one is not None and one != []}
