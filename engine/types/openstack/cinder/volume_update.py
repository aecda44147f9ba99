"""The update of a volume in place: restore, extend, retype, then its names and metadata."""

from collections.abc import Mapping

from engine.types.contract import Call, Failed, Outcome, Replace
from engine.types.openstack.cinder import volume_state
from engine.types.openstack.cinder.volume_requests import (
    act_on_volume,
    find_volume,
    newest_message,
    restore_backup,
    set_read_only,
    volume_done,
    volume_failure,
    write_settings,
)
from engine.types.openstack.cinder.volume_state import USABLE
from engine.types.openstack.cloud import Session, id_of, object_in, segment
from engine.types.openstack.cloud_operation import ObjectProgress, poll, proceed
from engine.types.openstack.lookups import VOLUME_TYPES
from engine.types.openstack.services import VOLUME as CINDER
from engine.words import Json


async def update_volume(session: Session, call: Call) -> Outcome:
    """One call of an update. The progress: `step`: the one under way; `done`: those that began.
    Raises CloudError."""
    progress, volume_id = dict(call.progress or {}), call.physical_id or ""
    volume = await find_volume(session, volume_id)
    if volume is None:
        gone = "the volume does not exist"
        return Failed(gone, None, call.data, public_reason=gone) if progress else Replace()
    if (outcome := await _wait_for_step(session, call, volume, progress)) is not None:
        return outcome
    if (outcome := await _begin_next(session, call, volume, progress)) is not None:
        return outcome
    await write_settings(session, call, volume_id, volume)
    if call.properties.get("read_only") is not None and call.touches("read_only"):
        await set_read_only(session, volume_id, call.properties["read_only"])
    return volume_done(await find_volume(session, volume_id) or volume, call.data)


async def _wait_for_step(
    session: Session, call: Call, volume: Mapping[str, Json], progress: Mapping[str, Json]
) -> Outcome | None:
    """None when no step is under way; else a wait, or the failure of the step."""
    judged, step = volume_state.judge(volume, USABLE), progress.get("step")
    if judged is ObjectProgress.READY:
        return None
    if judged is ObjectProgress.PENDING:
        return poll(call, progress, f"the volume is {volume_state.status_of(volume)}")
    if step is None and volume_state.status_of(volume) == "error":
        return Replace()
    what = f"Volume {step} failed - " if step else ""
    return await volume_failure(session, call.physical_id or "", volume, call.data, what)


async def _begin_next(
    session: Session, call: Call, volume: Mapping[str, Json], progress: Mapping[str, Json]
) -> Outcome | None:
    """Begin the next step that is necessary; None if there is none."""
    done = progress.get("done") or []
    for step, begin in _STEPS.items():
        if step in done:
            continue
        begun = await begin(session, call, volume)
        if isinstance(begun, Failed):
            return begun
        if begun:
            return proceed(call, {"step": step, "done": [*done, step]})
    if "retype" in done and await _wanted_type(session, call, volume) is not None:
        # Cinder has given up and restored the status: without a look at the type, it seems done.
        why = await newest_message(session, id_of(CINDER, volume))
        public = "Volume retype failed: Cinder does not move the volume to another backend"
        reason = f'{public}, or no backend fits, due to "{why}"'
        return Failed(reason, call.physical_id, call.data, public_reason=public)
    return None


async def _begin_restore(session: Session, call: Call, volume: Mapping[str, Json]) -> bool | Failed:
    """Restore a backup into the volume: that of a snapshot of the resource, or another one."""
    kept = (call.kept or {}).get("backup_id")
    named = call.properties.get("backup_id") if "backup_id" in call.changed else None
    backup_id = kept or named
    if not backup_id:
        return False
    if volume_state.status_of(volume) == volume_state.IN_USE:
        reason = "a backup cannot be restored into a volume that is attached to a server: detach it"
        return Failed(reason, call.physical_id, call.data, public_reason=reason)
    await restore_backup(session, str(backup_id), id_of(CINDER, volume))
    return True


async def _begin_extend(session: Session, call: Call, volume: Mapping[str, Json]) -> bool | Failed:
    size, now = call.properties.get("size"), volume.get("size")
    if size is None or not call.touches("size") or size == now:
        return False
    if int(size) < int(now or 0):
        reason = (
            f"Shrinking volume is not supported: it has {now} GiB, and size is {size}. Set size to"
            f" {now} or more, or replace the volume"
        )
        public = "Shrinking volume is not supported"
        return Failed(reason, call.physical_id, call.data, public_reason=public)
    action = {"os-extend": {"new_size": int(size)}}
    await act_on_volume(session, id_of(CINDER, volume), action, "extend the volume")
    return True


async def _begin_retype(session: Session, call: Call, volume: Mapping[str, Json]) -> bool | Failed:
    type_id = await _wanted_type(session, call, volume)
    if type_id is None:
        return False
    action = {"os-retype": {"new_type": type_id, "migration_policy": "never"}}
    await act_on_volume(session, id_of(CINDER, volume), action, "retype the volume")
    return True


async def _wanted_type(session: Session, call: Call, volume: Mapping[str, Json]) -> str | None:
    """The ID of the type that the volume must get; None if it has it."""
    wanted = call.properties.get("volume_type")
    if not wanted or not call.touches("volume_type"):
        return None
    type_id = await VOLUME_TYPES.find_id(session, str(wanted))
    path, doing = f"/types/{segment(type_id)}", "read the volume type"
    document = await session.request(CINDER, "GET", path, doing)
    found = object_in(CINDER, doing, document, "volume_type")
    return None if found.get("name") == volume.get("volume_type") else type_id


#: The steps in order, as messages name them.
_STEPS = {"restore": _begin_restore, "resize": _begin_extend, "retype": _begin_retype}
