"""Requests about a volume that several operations send. All functions raise CloudError."""

from collections.abc import Mapping

from engine.types.contract import Call, Done, Failed
from engine.types.openstack.cinder import volume_state
from engine.types.openstack.cloud import Session, id_of, object_in, segment
from engine.types.openstack.operation_marker import metadata_of
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import VOLUME as CINDER
from engine.words import Json


def volume_name(call: Call) -> str:
    """The name of the volume; one of ours stays the same in later operations."""
    return str(call.properties.get("name") or call.data.get("name") or call.own_name)


async def find_volume(session: Session, volume_id: str) -> Mapping[str, Json] | None:
    return await session.find(CINDER, f"/volumes/{segment(volume_id)}", "volume", "read the volume")


async def volume_failure(
    session: Session,
    volume_id: str,
    volume: Mapping[str, Json],
    data: Mapping[str, Json],
    what: str = "",
) -> Failed:
    """The failure of an operation, with the message that Cinder has for its users."""
    why = await newest_message(session, volume_id)
    public = f"{what}Went to status {volume_state.status_of(volume)}"
    return Failed(f'{public} due to "{why}"', volume_id, data, public_reason=public)


async def newest_message(session: Session, volume_id: str) -> str:
    """Cinder's newest message about a volume, which Heat does not ask for; "Unknown" if there is
    none. It raises nothing."""
    try:
        query = {"resource_uuid": volume_id, "sort": "created_at:desc"}
        messages = await session.list(CINDER, "/messages", "messages", query)
    except CloudError:
        messages = []
    return volume_state.message_of(messages)


async def act_on_volume(session: Session, volume_id: str, action: Json, doing: str) -> None:
    await session.request(CINDER, "POST", f"/volumes/{segment(volume_id)}/action", doing, action)


async def find_backup(session: Session, backup_id: str) -> Mapping[str, Json]:
    path = f"/backups/{segment(backup_id)}"
    doing = "read the backup"
    return object_in(CINDER, doing, await session.request(CINDER, "GET", path, doing), "backup")


async def restore_backup(session: Session, backup_id: str, volume_id: str) -> None:
    body = {"restore": {"volume_id": volume_id}}
    path = f"/backups/{segment(backup_id)}/restore"
    await session.request(CINDER, "POST", path, "restore the backup", body)


async def set_read_only(session: Session, volume_id: str, read_only: bool) -> None:
    action = {"os-update_readonly_flag": {"readonly": read_only}}
    await act_on_volume(session, volume_id, action, "change read_only of the volume")


async def write_settings(
    session: Session, call: Call, volume_id: str, volume: Mapping[str, Json]
) -> None:
    """Write the name, the description and the metadata, if they differ."""
    properties, path = call.properties, f"/volumes/{segment(volume_id)}"
    wanted = {"name": volume_name(call), "description": properties.get("description")}
    touched = any(call.touches(name) for name in wanted)
    if touched and any(volume.get(name) != one for name, one in wanted.items()):
        doing = "change the name of the volume"
        await session.request(CINDER, "PUT", path, doing, {"volume": wanted})
    metadata = metadata_of(properties)
    if call.touches("metadata") and metadata != volume_state.own_metadata(volume):
        body = {"metadata": {**metadata, **volume_state.kept_metadata(volume)}}
        doing = "change the metadata of the volume"
        await session.request(CINDER, "PUT", f"{path}/metadata", doing, body)


def volume_done(volume: Mapping[str, Json], data: Mapping[str, Json]) -> Done:
    kept = {**data, "volume_type": volume.get("volume_type")}
    return Done(id_of(CINDER, volume), volume_state.attributes_of(volume), kept)
