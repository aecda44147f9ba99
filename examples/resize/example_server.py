"""A resource type whose updates must be confirmed: a server that can be resized.

The server is a JSON file in a directory, so that the example runs anywhere. An update gives the
server its new size, keeps the old size, and opens a hook at `confirm-resize`. If the resize is
confirmed, the old size is discarded. If it is rejected, the old size is restored and the update
fails. Without a breakpoint, every resize is confirmed automatically.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Confirm, Done, Failed, Outcome, ResourceType

FOLDER = "EXAMPLE_SERVERS"


class Server(ResourceType):
    """Headgate creates it without arguments; EXAMPLE_SERVERS names the directory."""

    schema = TypeSchema(
        "Example::Server",
        description="A server whose memory can be resized.",
        properties={"memory": Property(Kind.INTEGER, "In GiB", required=True, update_allowed=True)},
        attributes={"memory": Attribute(Kind.INTEGER)},
        steps=("resize",),
    )
    #: After a rejected resize the server still works, so the next update does not replace it.
    replaces_tainted = False

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(os.environ.get(FOLDER, "example-servers"))

    async def create(self, call: Call) -> Outcome:
        """Writes the same file if it is called again after a crash."""
        return await self._store(call, {"memory": call.properties["memory"]})

    async def update(self, call: Call) -> Outcome:
        server = await asyncio.to_thread(self._read, call)
        memory, old = call.properties["memory"], server.get("old", server["memory"])
        if call.confirmation is None:
            if memory == old:
                return await self._store(call, {"memory": memory})
            # Also keep the old size in the file, for the case that the process dies before
            # Headgate stores the outcome, and calls again.
            await self._store(call, {"memory": memory, "old": old})
            return Confirm("resize", {"old": old}, seen={"from": old, "to": memory})
        if not call.confirmation.accepted:
            old = (call.progress or server)["old"]
            await self._store(call, {"memory": old})
            reason = f": {call.confirmation.reason}" if call.confirmation.reason else ""
            return Failed(
                f"the resize was rejected by {call.confirmation.by}{reason}; back to {old} GiB"
            )
        return await self._store(call, {"memory": memory})

    async def delete(self, call: Call) -> Outcome:
        """A missing file is no error."""
        await asyncio.to_thread(self._path(call).unlink, missing_ok=True)
        return Done(None)

    async def check(self, call: Call) -> Outcome:
        try:
            server = await asyncio.to_thread(self._read, call)
        except FileNotFoundError:
            return Failed("the server no longer exists")
        return Done(call.physical_id, {"memory": server["memory"]})

    async def _store(self, call: Call, server: dict[str, Any]) -> Outcome:
        await asyncio.to_thread(self._write, self._path(call), server)
        return Done(self._path(call).stem, {"memory": server["memory"]})

    def _path(self, call: Call) -> Path:
        """Named after the resource ID, which never changes."""
        return self.folder / f"server-{call.resource_id}.json"

    def _read(self, call: Call) -> dict[str, Any]:
        server: dict[str, Any] = json.loads(self._path(call).read_text())
        return server

    def _write(self, path: Path, server: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        new_file = path.with_suffix(".new")
        new_file.write_text(json.dumps(server))
        new_file.replace(path)
