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
        return await self._written(call, {"memory": call.properties["memory"]})

    async def update(self, call: Call) -> Outcome:
        server = await asyncio.to_thread(self._read, call)
        wanted, was = call.properties["memory"], server.get("was", server["memory"])
        if call.confirmed is None:
            if wanted == was:
                return await self._written(call, {"memory": wanted})
            # Also keep the old size in the file, for the case that the process dies before
            # Headgate stores the outcome, and calls again.
            await self._written(call, {"memory": wanted, "was": was})
            return Confirm("resize", {"was": was}, seen={"from": was, "to": wanted})
        if not call.confirmed.accepted:
            was = (call.progress or server)["was"]
            await self._written(call, {"memory": was})
            why = f": {call.confirmed.reason}" if call.confirmed.reason else ""
            return Failed(f"the resize was rejected by {call.confirmed.by}{why}; back to {was} GiB")
        return await self._written(call, {"memory": wanted})

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

    async def _written(self, call: Call, server: dict[str, Any]) -> Outcome:
        await asyncio.to_thread(self._write, self._path(call), server)
        return Done(self._path(call).stem, {"memory": server["memory"]})

    def _path(self, call: Call) -> Path:
        """Named after the resource ID, which never changes."""
        return self.folder / f"server-{call.resource_id}.json"

    def _read(self, call: Call) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._path(call).read_text())
        return found

    def _write(self, path: Path, server: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(server))
        fresh.replace(path)
