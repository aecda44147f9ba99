"""The update of a server in place. Each step follows from the state of the server: a lost call, an
unanswered hook, or a resize that another client confirmed changes nothing about the result.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.types.contract import Call, Confirm, Failed, Outcome, Replace, Wait
from engine.types.openstack.cloud import Session, id_of, segment
from engine.types.openstack.cloud_operation import ObjectProgress, poll, proceed
from engine.types.openstack.lookups import IMAGES, find_flavor
from engine.types.openstack.nova import server_state
from engine.types.openstack.nova.server_ports import PORT_NAMES, ServerPorts, port_names
from engine.types.openstack.nova.server_request import own_metadata
from engine.types.openstack.nova.server_requests import (
    find_server,
    post_action,
    server_name,
    wait_for_fault,
)
from engine.types.openstack.nova.server_state import (
    ACTIVE,
    SHUTOFF,
    ResizeMove,
    ResizePhase,
)
from engine.types.openstack.nova.user_data import encode
from engine.types.openstack.operation_marker import MARKER, metadata_of
from engine.types.openstack.services import COMPUTE
from engine.words import Json

#: The steps of an update at which a hook may wait.
STEPS: Final = ("rebuild", "resize")
_RUNNING = frozenset({ACTIVE, SHUTOFF})
_GONE = "the server does not exist"
#: The entries of the progress that become data of the server.
_KEPT: Final = ("ports", PORT_NAMES)
#: The requests of a resize: by move, the action, what it does, and the phase that it begins.
_RESIZE_REQUESTS: Final[Mapping[ResizeMove, tuple[str, str, ResizePhase]]] = {
    ResizeMove.RESIZE: ("resize", "resize the server", ResizePhase.RESIZING),
    ResizeMove.CONFIRM: ("confirmResize", "confirm the resize", ResizePhase.CONFIRMING),
    ResizeMove.REVERT: ("revertResize", "revert the resize", ResizePhase.REVERTING),
    ResizeMove.UNDO: ("revertResize", "revert an earlier resize", ResizePhase.UNDOING),
}


@dataclass(frozen=True, slots=True)
class UpdatedServer:
    """server: its document after the update. data: of the resource."""

    server: Mapping[str, Json] = field(repr=False)
    data: Mapping[str, Json] = field(repr=False)


class ServerUpdate:
    """One call of an update. user_data: builds the user data. Methods raise CloudError.

    The progress: `at`: the step; `phase`: how far it has come; `ports`: the server's own ports.
    """

    def __init__(
        self,
        session: Session,
        call: Call,
        ports: ServerPorts,
        user_data: Callable[[Call], Awaitable[str | Failed]],
    ) -> None:
        self._session = session
        self._call = call
        self._ports = ports
        self._user_data = user_data
        self._progress: dict[str, Json] = dict(call.progress or {})

    async def run(self) -> Outcome | UpdatedServer:
        call = self._call
        server = await self._read()
        if server is None:
            gone = Failed(_GONE, None, call.data, public_reason=_GONE)
            return gone if self._progress else Replace()
        if (outcome := await self._begin(server)) is not None:
            return outcome
        for name, step in (("image", self._rebuild), ("flavor", self._resize)):
            if self._progress["at"] == name:
                if (outcome := await step(server)) is not None:
                    return outcome
                self._progress = {"ports": self._progress["ports"]}
                self._progress["at"] = "flavor" if name == "image" else "networks"
        if (outcome := await self._change_interfaces()) is not None:
            return outcome
        if call.repeats_all and server_state.status_of(server) == SHUTOFF:
            await self._act({"os-start": None}, "start the server")
        data = {**call.data, **{name: one for name, one in self._progress.items() if name in _KEPT}}
        return UpdatedServer(await self._read() or server, data)

    async def _begin(self, server: Mapping[str, Json]) -> Outcome | None:
        if self._progress.get("at"):
            return None
        if server_state.status_of(server) == server_state.ERROR:
            return Replace()
        if server_state.in_progress(server):
            return poll(self._call, self._progress, server_state.pending_reason(server))
        await self._change_settings(server)
        self._progress = {"at": "image", "ports": self._call.data.get("ports") or []}
        return None

    async def _change_settings(self, server: Mapping[str, Json]) -> None:
        """Change what needs no work of a hypervisor."""
        call, properties = self._call, self._call.properties
        if self._touches("name") and (name := server_name(call)) != server.get("name"):
            await self._put("", "rename the server", {"server": {"name": name}})
        wanted = metadata_of(properties)
        if self._touches("metadata") and wanted != own_metadata(server):
            marker = (server.get("metadata") or {}).get(MARKER)
            body = {"metadata": {**wanted, **({MARKER: marker} if marker else {})}}
            await self._put("/metadata", "change the metadata of the server", body)
        tags = properties.get("tags") or []
        if self._touches("tags") and sorted(tags) != sorted(server.get("tags") or []):
            await self._put("/tags", "change the tags of the server", {"tags": tags})
        if "admin_pass" in call.changed and properties.get("admin_pass"):
            action = {"changePassword": {"adminPass": properties["admin_pass"]}}
            await self._act(action, "change the password")

    async def _rebuild(self, server: Mapping[str, Json]) -> Outcome | None:
        """None when there is nothing to do, or no more."""
        call, progress = self._call, self._progress
        if progress.get("phase") == "rebuilding":
            return self._rebuilt(server)
        now, wanted = server_state.image_id(server), await self._wanted_image()
        policy = call.properties.get("user_data_update_policy")
        new_data = "user_data" in call.changed and policy == "REBUILD"
        if (not wanted or wanted == now) and not new_data:
            return None
        if progress.get("phase") is None:
            seen = {"image_from": now, "image_to": wanted or now, "user_data": new_data}
            return Confirm("rebuild", {**progress, "phase": "asked"}, seen, seen)
        if (rejected := self._rejection("rebuild")) is not None:
            return rejected
        request: dict[str, Json] = {"imageRef": wanted or now}
        if call.properties.get("image_update_policy") == "REBUILD_PRESERVE_EPHEMERAL":
            request["preserve_ephemeral"] = True
        if call.properties.get("admin_pass"):
            request["adminPass"] = call.properties["admin_pass"]
        if new_data:
            user_data = await self._user_data(call)
            if isinstance(user_data, Failed):
                return user_data
            request["user_data"] = encode(user_data) if user_data else None
        await self._act({"rebuild": request}, "rebuild the server")
        return proceed(call, {**progress, "phase": "rebuilding"})

    def _rebuilt(self, server: Mapping[str, Json]) -> Outcome | None:
        judged = server_state.judge(server, _RUNNING, "rebuild")
        match judged.progress:
            case ObjectProgress.READY:
                return None
            case ObjectProgress.PENDING:
                return poll(self._call, self._progress, judged.reason)
        if (wait := wait_for_fault(self._call, server, self._progress)) is not None:
            return wait
        return self._failed(f"Rebuilding server failed: {judged.reason}", "the rebuild failed")

    async def _wanted_image(self) -> str:
        """The ID of the image; "" if the update does not concern it."""
        kept = (self._call.kept or {}).get("snapshot_image_id")
        name = self._call.properties.get("image")
        if kept or not name or not self._touches("image"):
            return str(kept or "")
        return await IMAGES.find_id(self._session, name)

    async def _resize(self, server: Mapping[str, Json]) -> Outcome | None:
        """None when the server has its flavor."""
        call = self._call
        unconfirmed = server_state.status_of(server) == server_state.VERIFY_RESIZE
        if not (self._touches("flavor") or unconfirmed):
            return None
        phase = ResizePhase(self._progress.get("phase") or ResizePhase.BEGIN)
        flavor = await find_flavor(self._session, call.properties["flavor"])
        wanted = id_of(COMPUTE, flavor, "name")
        move = server_state.next_resize_move(phase, server, wanted, call.confirmation)
        match move:
            case ResizeMove.DONE:
                return None
            case ResizeMove.WAIT:
                return poll(call, self._progress, server_state.pending_reason(server))
            case ResizeMove.ASK:
                progress = {**self._progress, "phase": str(ResizePhase.ASKED)}
                seen = self._resize_details(server, flavor)
                return Confirm("resize", progress, seen, seen)
            case ResizeMove.REJECTED:
                rejected = self._progress.get("rejected") or {}
                return self._failed(rejected["reason"], rejected["public"])
            case ResizeMove.FAIL:
                return await self._resize_failure(server, wanted)
        action, doing, phase = _RESIZE_REQUESTS[move]
        body = {"flavorRef": id_of(COMPUTE, flavor)} if move is ResizeMove.RESIZE else None
        await self._act({action: body}, doing)
        progress = {**self._progress, "phase": str(phase)}
        if move is ResizeMove.REVERT and (failed := self._rejection("resize")) is not None:
            progress["rejected"] = {"reason": failed.reason, "public": failed.public_reason}
        return proceed(call, progress)

    def _resize_details(
        self, server: Mapping[str, Json], flavor: Mapping[str, Json]
    ) -> dict[str, Json]:
        """What a reviewer of a resize sees."""
        return {
            "server": self._call.physical_id,
            "flavor_from": self._call.data.get("flavor"),
            "flavor_to": flavor.get("name"),
            "size": {name: flavor.get(name) for name in ("vcpus", "ram", "disk")},
            "host": server.get("OS-EXT-SRV-ATTR:host"),
        }

    async def _resize_failure(self, server: Mapping[str, Json], wanted: str) -> Outcome:
        """With the message of the server's fault or of its last resize: the server may have
        returned to its former state."""
        if (wait := wait_for_fault(self._call, server, self._progress)) is not None:
            return wait
        status = server_state.status_of(server)
        if status == server_state.ERROR:
            why = server_state.fault_reason(server)
        else:
            why = await self._last_resize_message() or f"its status is {status}"
        public = f"Resizing the server failed, its status is {status}"
        return self._failed(f"Resizing to '{wanted}' failed: {why}", public)

    async def _last_resize_message(self) -> str:
        path = f"/servers/{segment(self._call.physical_id)}/os-instance-actions"
        actions = await self._session.list(COMPUTE, path, "instanceActions")
        resizes = [one for one in actions if one.get("action") == "resize"]
        return str(resizes[0].get("message") or "") if resizes else ""

    async def _change_interfaces(self) -> Outcome | None:
        """None when the server has its interfaces."""
        if not self._touches("networks") or not self._call.properties.get("networks"):
            return None
        session, call = self._session, self._call
        async with self._ports.remove_on_failure(session, call):
            changed = await self._ports.change(session, call, self._progress)
        if isinstance(changed, Wait | Failed):
            return changed
        self._progress |= {"ports": changed, PORT_NAMES: port_names(call)}
        return None

    def _touches(self, name: str) -> bool:
        """Whether the update concerns a property: any, if it repeats an update or repairs."""
        return self._call.touches(name)

    def _rejection(self, step: str) -> Failed | None:
        answer = self._call.confirmation
        if answer is None or answer.accepted:
            return None
        public = f"{step} rejected by {answer.by}"
        return self._failed(f"{public}: {answer.reason}" if answer.reason else public, public)

    def _failed(self, reason: str, public: str = "") -> Failed:
        call = self._call
        return Failed(reason, call.physical_id, call.data, public_reason=public or reason)

    async def _read(self) -> Mapping[str, Json] | None:
        return await find_server(self._session, self._call.physical_id or "")

    async def _put(self, path: str, doing: str, body: Json) -> None:
        path = f"/servers/{segment(self._call.physical_id)}{path}"
        await self._session.request(COMPUTE, "PUT", path, doing, body)

    async def _act(self, action: Json, doing: str) -> None:
        await post_action(self._session, self._call, action, doing)
