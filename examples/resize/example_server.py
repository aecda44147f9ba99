"""A resource type that asks before it makes something final: a resize, to be confirmed.

The server is a file of JSON in a folder, so that this runs anywhere. What matters is the way: an
update gives the server its new size, keeps the old one, and asks `confirm-resize`. Confirmed, the
old size is forgotten; refused, it is given back and the update fails. Where no breakpoint asks, a
resize is confirmed by itself.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from engine.hot.schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Confirm, Done, Failed, Outcome, ResourceType

FOLDER = "EXAMPLE_SERVERS"


class Server(ResourceType):
    """Made without arguments by Headgate; the folder is that of EXAMPLE_SERVERS."""

    schema = TypeSchema(
        "Example::Server",
        description="A server whose memory can be changed, and changed back.",
        properties={"memory": Property(Kind.INTEGER, "In GiB", required=True, update_allowed=True)},
        attributes={"memory": Attribute(Kind.INTEGER)},
        steps=("resize",),
    )
    #: A refused resize leaves a server that works: the next update resizes it, and makes no other.
    replaces_broken = False

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(os.environ.get(FOLDER, "example-servers"))

    async def create(self, call: Call) -> Outcome:
        """After a crash it is called again, and makes the same file."""
        return await self._written(call, {"memory": call.properties["memory"]})

    async def update(self, call: Call) -> Outcome:
        server = await asyncio.to_thread(self._read, call)
        wanted, was = call.properties["memory"], server.get("was", server["memory"])
        if call.confirmed is None:
            if wanted == was:
                return await self._written(call, {"memory": wanted})
            # Kept in the file, too: we may die before Headgate knows, and be called again.
            await self._written(call, {"memory": wanted, "was": was})
            return Confirm("resize", {"was": was}, seen={"from": was, "to": wanted})
        if not call.confirmed.accepted:
            was = (call.progress or server)["was"]
            await self._written(call, {"memory": was})
            why = f": {call.confirmed.reason}" if call.confirmed.reason else ""
            return Failed(f"the resize was refused by {call.confirmed.by}{why}; back to {was} GiB")
        return await self._written(call, {"memory": wanted})

    async def delete(self, call: Call) -> Outcome:
        """Also when there is none (any more)."""
        await asyncio.to_thread(self._path(call).unlink, missing_ok=True)
        return Done(None)

    async def check(self, call: Call) -> Outcome:
        try:
            server = await asyncio.to_thread(self._read, call)
        except FileNotFoundError:
            return Failed("the server is gone")
        return Done(call.physical_id, {"memory": server["memory"]})

    async def _written(self, call: Call, server: dict[str, Any]) -> Outcome:
        await asyncio.to_thread(self._write, self._path(call), server)
        return Done(self._path(call).stem, {"memory": server["memory"]})

    def _path(self, call: Call) -> Path:
        """By the resource's id, which is the same whatever was lost."""
        return self.folder / f"server-{call.resource_id}.json"

    def _read(self, call: Call) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._path(call).read_text())
        return found

    def _write(self, path: Path, server: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(server))
        fresh.replace(path)
