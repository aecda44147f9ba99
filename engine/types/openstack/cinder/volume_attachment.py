"""OS::Cinder::VolumeAttachment: the attachment of a volume to a server.

Nova attaches. A volume is attached to a server at most once, so the pair of both identifies the
attachment, also for a call that is repeated. Another volume replaces the attachment; another server
or device moves it.

The data has the server that the volume was attached to, or may have been by a request without an
answer; `server` is "" if no request was accepted: then an attachment belongs to another client.
"""

from collections.abc import Mapping
from typing import Final

from engine.types.contract import Call, Done, Failed, Outcome, Replace
from engine.types.openstack.cinder import volume_state
from engine.types.openstack.cinder.schema import VOLUME_ATTACHMENT
from engine.types.openstack.cloud import Session, object_in, segment
from engine.types.openstack.cloud_operation import (
    CloudType,
    cancellation,
    poll,
    proceed,
    run_guarded,
)
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import COMPUTE
from engine.types.openstack.services import VOLUME as CINDER
from engine.words import Json

#: The data without an attachment by Headgate.
_NOT_ATTACHED: Final[Mapping[str, Json]] = {"server": ""}


class VolumeAttachment(CloudType):
    """Its physical ID is that of the volume.

    A failed attachment is repaired by an update: a replacement would attach the same volume before
    the delete of the failed one detaches it.
    """

    replaces_tainted = False
    repairs = True
    cancellable = True
    schema = VOLUME_ATTACHMENT

    async def create(self, call: Call) -> Outcome:
        physical_id, data = _state_so_far(call)
        if call.cancelled:
            return cancellation(physical_id, data)
        return await run_guarded(call, lambda: self._attach(call), physical_id, data)

    async def update(self, call: Call) -> Outcome:
        """Detach from the former server, then attach."""
        if call.physical_id is None:
            return Replace()
        data = _state_so_far(call)[1] if (call.progress or {}).get("detached") else call.data
        if call.cancelled:
            return cancellation(call.physical_id, data)
        return await run_guarded(call, lambda: self._move(call), call.physical_id, data)

    def needs_replace(self, call: Call) -> bool:
        return "volume_id" in call.changed

    async def _attach(self, call: Call) -> Outcome:
        session, progress = self._cloud.session(call), dict(call.progress or {})
        server, volume_id = _server(call), str(call.properties["volume_id"])
        if not progress.get("asked"):
            if not progress.get("absent"):
                if await _find(session, server, volume_id) is not None:
                    reason = f"the volume {volume_id} is attached to the server {server} already"
                    public = "the volume is attached to the server already"
                    return Failed(reason, None, _NOT_ATTACHED, public_reason=public)
                return proceed(call, {**progress, "absent": True})
            attachment = {"volumeId": volume_id, "device": call.properties.get("mountpoint")}
            body = {"volumeAttachment": {key: one for key, one in attachment.items() if one}}
            path = f"/servers/{segment(server)}/os-volume_attachments"
            if await _find(session, server, volume_id) is None:
                try:
                    await session.request(COMPUTE, "POST", path, "attach the volume", body)
                except CloudError as error:
                    if error.retry or call.repeated or error.status is None:
                        raise  # this request or an earlier one may have been accepted
                    return Failed(str(error), None, _NOT_ATTACHED, public_reason=error.public)
            return proceed(call, {**progress, "asked": True})
        path, doing = f"/volumes/{segment(volume_id)}", "read the volume"
        document = await session.request(CINDER, "GET", path, doing)
        status = volume_state.status_of(object_in(CINDER, doing, document, "volume"))
        if status == volume_state.IN_USE:
            found = await _find(session, server, volume_id)
            return Done(volume_id, {"show": dict(found or {})}, {"server": server})
        if status in ("attaching", "reserved"):
            return poll(call, progress, f"the volume is {status}", "the volume is not attached yet")
        reason = (
            f"Volume attachment failed - the volume is {status}, not in-use: the server's actions"
            " and the logs of nova-compute have the cause"
        )
        public = "Volume attachment failed"
        return Failed(reason, volume_id, _state_so_far(call)[1], public_reason=public)

    async def _move(self, call: Call) -> Outcome:
        progress = dict(call.progress or {})
        if not progress.get("detached"):
            waiting = await self._detach(call)
            if waiting is not None:
                return waiting
            return proceed(call, {"detached": True})
        return await self._attach(call)

    async def _delete(self, call: Call) -> Outcome:
        return await self._detach(call) or Done(None)

    async def _detach(self, call: Call) -> Outcome | None:
        """None when the volume is detached from the server that it was attached to, if it was."""
        server = _attached_server(call)
        if call.physical_id is None or not server:
            return None
        session, progress = self._cloud.session(call), dict(call.progress or {})
        if await _find(session, server, call.physical_id) is None:
            return await _wait_until_detached(session, call, progress)
        if not progress.get("detaching"):
            path = f"/servers/{segment(server)}/os-volume_attachments/{segment(call.physical_id)}"
            await session.delete(COMPUTE, path, "detach the volume")
        return poll(call, {**progress, "detaching": True}, "the volume is being detached")

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        server = _attached_server(call)
        found = await _find(session, server, call.physical_id or "") if server else None
        if found is None:
            reason = f"the volume {call.physical_id} is not attached to the server"
            reason = f"{reason} {server or _server(call)}"
            public = "the volume is not attached"
            return Failed(reason, call.physical_id, call.data, public_reason=public)
        return Done(call.physical_id, {"show": dict(found)}, {"server": server})


def _server(call: Call) -> str:
    return str(call.properties.get("instance_uuid"))


def _attached_server(call: Call) -> str:
    return str(call.data["server"] if "server" in call.data else _server(call))


def _state_so_far(call: Call) -> tuple[str | None, Mapping[str, Json]]:
    """The physical ID and the data if the operation, which attaches, ends now."""
    progress = call.progress or {}
    if not progress.get("asked") and not progress.get("absent"):
        return None, _NOT_ATTACHED
    return str(call.properties["volume_id"]), {"server": _server(call)}


async def _find(session: Session, server: str, volume_id: str) -> Mapping[str, Json] | None:
    path = f"/servers/{segment(server)}/os-volume_attachments/{segment(volume_id)}"
    return await session.find(COMPUTE, path, "volumeAttachment", "read the attachment")


async def _wait_until_detached(
    session: Session, call: Call, progress: Mapping[str, Json]
) -> Outcome | None:
    """None when Cinder too knows that the volume is detached."""
    path = f"/volumes/{segment(call.physical_id)}"
    volume = await session.find(CINDER, path, "volume", "read the volume")
    if volume is None or volume_state.status_of(volume) != "detaching":
        return None
    return poll(call, progress, "the volume is being detached")
