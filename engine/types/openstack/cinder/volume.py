"""OS::Cinder::Volume: a block device.

A create first looks for the volume of a lost call, by the operation key in its metadata. Each step
of an update follows from the state of the volume.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from engine.errors import Findings
from engine.types.completion import ObjectsUnknown
from engine.types.contract import Call, Done, Failed, Outcome, Replace
from engine.types.custom_constraints import ValidationContext
from engine.types.observation import Observation
from engine.types.observed_list import ObservedList
from engine.types.openstack.cinder import volume_state
from engine.types.openstack.cinder.schema import VOLUME
from engine.types.openstack.cinder.volume_requests import (
    find_backup,
    find_volume,
    restore_backup,
    set_read_only,
    volume_done,
    volume_failure,
    volume_name,
    write_settings,
)
from engine.types.openstack.cinder.volume_state import USABLE
from engine.types.openstack.cinder.volume_update import update_volume
from engine.types.openstack.cloud import Cloud, Session, id_of, segment
from engine.types.openstack.cloud_operation import (
    CloudType,
    ObjectProgress,
    cancellation,
    observed_list,
    poll,
    proceed,
    run_guarded,
)
from engine.types.openstack.lookups import IMAGES, volume_constraints
from engine.types.openstack.operation_marker import MARKER, check_metadata
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import VOLUME as CINDER
from engine.types.regions import listed_region
from engine.words import Json

_GONE = "the volume does not exist"
#: Properties that name what a volume is created from; at most one can be set.
SOURCES = ("image", "snapshot_id", "source_volid", "backup_id")


class Volume(CloudType):
    """A failed volume is repaired by an update, which replaces it if it is in the status error."""

    replaces_tainted = False
    repairs = True
    cancellable = True
    schema = replace(VOLUME, snapshots=True)

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.constraints = volume_constraints(cloud)

    async def create(self, call: Call) -> Outcome:
        found = (call.progress or {}).get("id")
        data = {"name": volume_name(call), "marker": call.operation_key.hex}
        if call.cancelled:
            return await run_guarded(call, lambda: self._cancellation(call, data), found, data)
        if found is None:
            return await run_guarded(call, lambda: self._begin_create(call), None, data)
        return await run_guarded(call, lambda: self._poll_create(call, data), found, data)

    async def update(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Replace()
        if call.cancelled:
            return cancellation(call.physical_id, call.data)
        session = self._cloud.session(call)
        return await run_guarded(call, lambda: update_volume(session, call), call.physical_id)

    async def snapshot(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._back_up(call), call.physical_id)

    def needs_replace(self, call: Call) -> bool:
        """An update that repairs is not limited to what the schema allows."""
        return any(not VOLUME.properties[name].update_allowed for name in call.changed)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_metadata(properties, place, findings)
        named = [name for name in SOURCES if properties.get(name)]
        if len(named) > 1:
            both = " and ".join(named)
            findings.add(
                place, f"{both} cannot be combined", "Name one source of the volume's data."
            )

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        found = await find_volume(self._cloud.session(context), physical_id)
        return None if found is not None else f"there is no volume {physical_id}"

    async def _begin_create(self, call: Call) -> Outcome:
        session, properties = self._cloud.session(call), call.properties
        found = (
            await _find_marked(session, volume_name(call), call.operation_key.hex)
            if call.repeated
            else None
        )
        if found is not None:
            return proceed(call, {"id": id_of(CINDER, found)})
        image = properties.get("image")
        image_id = await IMAGES.find_id(session, image) if image else None
        size = properties.get("size")
        if properties.get("backup_id") and size is None:
            size = (await find_backup(session, properties["backup_id"])).get("size")
        if size is None and not any(properties.get(name) for name in SOURCES[1:]):
            reason = "size is missing, and there is no snapshot_id, source_volid or backup_id"
            return Failed(reason, public_reason=reason)
        request = volume_state.create_request(
            volume_name(call),
            properties,
            image_id=image_id,
            size=size,
            marker=call.operation_key.hex,
        )
        doing = "create the volume"
        created = await session.create(CINDER, "/volumes", "volume", doing, request)
        return proceed(call, {"id": id_of(CINDER, created)})

    async def _poll_create(self, call: Call, data: Mapping[str, Json]) -> Outcome:
        session, progress = self._cloud.session(call), dict(call.progress or {})
        if not progress.get("restored"):  # the observer waits for the creation alone
            reason = "the volume is not available; the observer lists the volumes"
            waits = await self.wait_for_observer(call, "volumes", progress["id"], reason)
            if waits is not None:
                return waits
        volume = await find_volume(session, progress["id"])
        if volume is None:
            return Failed("the volume was deleted while it was created", None, data)
        match volume_state.judge(volume, USABLE):
            case ObjectProgress.PENDING:
                reason = f"the volume is {volume_state.status_of(volume)}"
                return poll(call, progress, reason, "the volume is not available yet")
            case ObjectProgress.BROKEN:
                return await volume_failure(session, progress["id"], volume, data)
        if call.properties.get("backup_id") and not progress.get("restored"):
            await restore_backup(session, call.properties["backup_id"], progress["id"])
            return proceed(call, {**progress, "restored": True})
        changed = False
        if call.properties.get("read_only") is not None:
            await set_read_only(session, progress["id"], call.properties["read_only"])
            changed = True
        if call.properties.get("backup_id"):  # a restore also copies the names of the backup
            await write_settings(session, call, progress["id"], volume)
            changed = True
        if changed:
            volume = await find_volume(session, progress["id"]) or volume
        return volume_done(volume, data)

    async def _cancellation(self, call: Call, data: Mapping[str, Json]) -> Outcome:
        """The failure of a cancelled create, with the volume that a lost call may have created."""
        found = (call.progress or {}).get("id")
        if found is None:
            volume = await _find_marked(
                self._cloud.session(call), volume_name(call), call.operation_key.hex
            )
            found = None if volume is None else id_of(CINDER, volume)
        return cancellation(found, data)

    async def _delete(self, call: Call) -> Outcome:
        session, progress = self._cloud.session(call), dict(call.progress or {})
        if call.physical_id is not None:
            volume = await find_volume(session, call.physical_id)
        elif marker := call.data.get("marker"):  # a create without an answer may have created one
            volume = await _find_marked(session, str(call.data["name"]), str(marker))
        else:
            volume = None
        if volume is None:
            return Done(None)
        status = volume_state.status_of(volume)
        if status == "error_deleting" and progress.get("asked"):
            return await volume_failure(
                session, id_of(CINDER, volume), volume, call.data, "Delete failed - "
            )
        if status == "deleting":
            return poll(call, progress or {"asked": True}, "the volume is deleting")
        if status in ("detaching", "attaching", "backing-up", "creating", "uploading"):
            return poll(call, progress, f"the volume is {status}")
        if status == volume_state.IN_USE:
            servers = [str(one.get("server_id")) for one in volume.get("attachments") or []]
            reason = (
                f"the volume is attached to {', '.join(servers) or 'a server'}: detach it first"
            )
            public = "the volume is attached to a server"
            return Failed(reason, call.physical_id, call.data, True, public)
        path = f"/volumes/{segment(id_of(CINDER, volume))}"
        await session.delete(CINDER, path, "delete the volume")
        return poll(call, {"asked": True}, "the volume is deleting")

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        volume = await find_volume(session, call.physical_id or "")
        if volume is None:
            return Failed(_GONE, None, call.data, public_reason=_GONE)
        status = volume_state.status_of(volume)
        if status not in USABLE:
            reason = f"the volume is {status}, not available or in-use"
            return Failed(reason, call.physical_id, call.data, public_reason=reason)
        return volume_done(volume, {"name": str(volume.get("name")), **call.data})

    async def _back_up(self, call: Call) -> Outcome:
        """A backup of the volume, named after the operation."""
        session, progress = self._cloud.session(call), dict(call.progress or {})
        if "backup" not in progress:
            found = await session.list(CINDER, "/backups", "backups", {"name": call.own_name})
            if not found:
                volume = await find_volume(session, call.physical_id or "")
                in_use = volume is not None and volume_state.status_of(volume) == "in-use"
                backup: Json = {
                    "volume_id": call.physical_id,
                    "name": call.own_name,
                    "force": in_use,
                }
                doing = "back up the volume"
                body = {"backup": backup}
                found = [await session.create(CINDER, "/backups", "backup", doing, body)]
            return proceed(call, {"backup": id_of(CINDER, found[0])})
        backup = await find_backup(session, progress["backup"])
        if backup.get("status") == "available":
            return Done(call.physical_id, call.attributes, {"backup_id": progress["backup"]})
        if backup.get("status") == "creating":
            return poll(call, progress, "the backup of the volume is creating")
        why = backup.get("fail_reason") or "Unknown"
        reason = f'the backup of the volume is {backup.get("status")} due to "{why}"'
        public = "the backup of the volume failed"
        return Failed(reason, call.physical_id, call.data, public_reason=public)

    async def read_objects(
        self, project: str, definition: Mapping[str, Json]
    ) -> AsyncIterator[Mapping[str, Json]]:
        try:
            session = self._cloud.reader_session(listed_region(definition))
            async for page in _pages(session, project):
                yield {id_of(CINDER, one): one for one in page}
        except CloudError as error:
            reason = error.public or "the volumes cannot be listed"
            raise ObjectsUnknown(reason, error.throttled) from None

    def objects_endpoint(self, definition: Mapping[str, Json]) -> str:
        return CINDER.name

    def is_complete(self, definition: Mapping[str, Json], found: Json) -> bool:
        return volume_state.judge(found, USABLE) is not ObjectProgress.PENDING

    def observation_key(self, call: Call) -> str | None:
        return "volumes" if self._cloud.can_observe(call) else None

    def observation_endpoint(self, call: Call) -> str:
        return CINDER.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Sequence[str]:
        return volume_state.OBSERVED

    def adopted_data(self, data: Mapping[str, Json], path: str, value: Json) -> Mapping[str, Json]:
        return {**data, path: value} if path == "volume_type" else data

    def observed_list(self, call: Call) -> ObservedList:
        session = self._cloud.observer_session(call)
        return observed_list(lambda: _pages(session, call.project), _compare, _GONE)


def _compare(call: Call, volume: Mapping[str, Json]) -> Observation:
    return volume_state.observe_volume(call, volume_name(call), volume)


def _pages(session: Session, project: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
    query = {"all_tenants": "True", "project_id": project} if session.reads_all_projects else {}
    return session.pages(CINDER, "/volumes/detail", "volumes", query)


async def _find_marked(session: Session, name: str, marker: str) -> Mapping[str, Json] | None:
    """The volume that an operation created."""
    for one in await session.list(CINDER, "/volumes/detail", "volumes", {"name": name}):
        if (one.get("metadata") or {}).get(MARKER) == marker:
            return one
    return None
