"""What the document of a volume says about an operation on it. Pure functions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from engine.types.contract import Call
from engine.types.observation import Observation, observe_fields
from engine.types.openstack.cloud_operation import ObjectProgress
from engine.types.openstack.operation_marker import MARKER, metadata_of
from engine.types.text_cleaning import as_text
from engine.words import Json, ObservedState

AVAILABLE, IN_USE = "available", "in-use"
USABLE: Final = frozenset({AVAILABLE, IN_USE})
#: Entries that Cinder itself writes into the metadata of volumes.
_OF_CINDER = frozenset({"readonly", "attached_mode"})


def judge(volume: Mapping[str, Json], wanted: Collection[str]) -> ObjectProgress:
    """Whether a volume has reached one of the wanted statuses."""
    status = status_of(volume)
    if status in wanted:
        return ObjectProgress.READY
    broken = status.startswith("error") or status in USABLE
    return ObjectProgress.BROKEN if broken else ObjectProgress.PENDING


def status_of(volume: Mapping[str, Json]) -> str:
    return str(volume.get("status") or "")


def message_of(messages: Sequence[Mapping[str, Json]]) -> str:
    """The text of the first message. messages: of a volume, the newest first."""
    texts = [str(one["user_message"]) for one in messages if one.get("user_message")]
    return texts[0].rstrip(".") if texts else "Unknown"


def create_request(
    name: str,
    properties: Mapping[str, Json],
    *,
    image_id: str | None,
    size: int | None,
    marker: str,
) -> dict[str, Json]:
    """The document of ``POST /volumes``."""
    volume = {
        "name": name,
        "size": size,
        "description": properties.get("description"),
        "availability_zone": properties.get("availability_zone"),
        "volume_type": properties.get("volume_type"),
        "imageRef": image_id,
        "snapshot_id": properties.get("snapshot_id"),
        "source_volid": properties.get("source_volid"),
        "metadata": {**metadata_of(properties), MARKER: marker},
    }
    document: dict[str, Json] = {
        "volume": {key: one for key, one in volume.items() if one is not None}
    }
    if hints := properties.get("scheduler_hints"):
        document["OS-SCH-HNT:scheduler_hints"] = hints
    return document


def own_metadata(volume: Mapping[str, Json]) -> dict[str, Json]:
    """The metadata of a volume without entries of Headgate and Cinder."""
    found = volume.get("metadata") or {}
    return {name: one for name, one in found.items() if name != MARKER and name not in _OF_CINDER}


def kept_metadata(volume: Mapping[str, Json]) -> dict[str, Json]:
    """The entries of Headgate and Cinder, which an update keeps."""
    found = volume.get("metadata") or {}
    return {name: one for name, one in found.items() if name == MARKER or name in _OF_CINDER}


def attributes_of(volume: Mapping[str, Json]) -> dict[str, Json]:
    metadata = own_metadata(volume)
    attachments = volume.get("attachments") or []
    return {
        "show": {**volume, "metadata": metadata},
        "attachments": as_text(attachments),
        "attachments_list": attachments,
        "availability_zone": volume.get("availability_zone"),
        "bootable": volume.get("bootable"),
        "created_at": volume.get("created_at"),
        "display_description": volume.get("description"),
        "display_name": volume.get("name"),
        "encrypted": str(volume.get("encrypted")),
        "metadata": as_text(metadata),
        "metadata_values": metadata,
        "multiattach": volume.get("multiattach"),
        "size": str(volume.get("size")),
        "snapshot_id": volume.get("snapshot_id"),
        "source_volid": volume.get("source_volid"),
        "status": status_of(volume),
        "volume_type": volume.get("volume_type"),
    }


#: The properties whose differences are observed.
OBSERVED = ("description", "metadata", "name", "size", "volume_type")


def observe_volume(call: Call, name: str, volume: Mapping[str, Json]) -> Observation:
    """Compare a volume with its resource."""
    status = status_of(volume)
    if status.startswith("error"):
        reason = f"the volume is {status}"
        return Observation(ObservedState.DEGRADED, (), reason, reason)
    properties = call.properties
    compared: list[tuple[str, Json, Json]] = [
        ("description", properties.get("description"), volume.get("description")),
        ("metadata", metadata_of(properties), own_metadata(volume)),
        ("name", name, volume.get("name")),
        ("size", properties.get("size"), volume.get("size")),
        ("volume_type", call.data.get("volume_type"), volume.get("volume_type")),
    ]
    return observe_fields("the volume", compared, [one for one in OBSERVED if one not in volume])
