"""A tree of 100,000 resources in 100 groups of 1,000: made, changed in one place, cleared away."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson

from tests.bench.process import cpu, memory
from tests.bench.shapes import wide
from tests.support.program import Http, Json, ServerProcess, resource, template

STACKS, SIZE = 100, 1000
SETTINGS = f"""
[quotas]
resources_per_stack = {STACKS * SIZE + STACKS + 1}
template_bytes = 8000000
"""


async def trees(stacks: int = STACKS, size: int = SIZE) -> None:
    """Beside it the rate of flat stacks of as many resources, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        server = ServerProcess(folder, settings=SETTINGS)
        server.start()
        try:
            async with aiohttp.ClientSession() as session:
                http = Http(session, server.url)
                await _flat(http, "warm", size)
                flat = [await _flat(http, f"flat{n}", size) for n in range(5)]
                print(f"a tree of {stacks} groups with {size:,} members each")
                print(f"  flat stacks of {size:,}, one after the other: "
                      f"{size / (sum(flat) / len(flat)):,.0f} resources/s")  # fmt: skip
                await _tree(http, server, stacks, size)
        finally:
            server.stop()


async def _flat(http: Http, name: str, size: int) -> float:
    began = time.monotonic()
    await http.create(name, wide(size))
    await _ended(http, name)
    return time.monotonic() - began


async def _ended(http: Http, name: str, pause: float = 0.05) -> None:
    """Looked at seldom: looking often slows what is measured."""
    async with asyncio.timeout(1200):
        while "IN_PROGRESS" in (status := (await http.stack(name))["stack_status"]):
            await asyncio.sleep(pause)
    assert status.endswith("COMPLETE"), status


async def _tree(http: Http, server: ServerProcess, stacks: int, size: int) -> None:
    around: dict[str, Json] = {f"g{n}": group(size) for n in range(stacks)}
    async with _measured(http, server, "create", stacks * size) as stream:
        await http.create("tree", around)
        await _ended(http, "tree", 0.5)
        await stream.caught_up("tree")
    around["g7"] = group(size + 1)
    async with _measured(http, server, "one member more in one", 1):
        await http.update("tree", "PUT", template=template(around))
        await _ended(http, "tree")
    tree = await http.stack("tree")
    async with _measured(http, server, "delete", stacks * size):
        await http.call("DELETE", f"/stacks/tree/{tree['id']}")
        await _ended(http, tree["id"], 0.5)


def group(size: int) -> Json:
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": size, "resource_def": resource("%index%")},
    }


class _Stream:
    """A reader of the event stream: how far it is behind when the tree is there."""

    def __init__(self) -> None:
        self.events = 0
        self.behind: float | None = None
        self._ends: dict[str, float] = {}
        self._there = asyncio.Event()

    async def read(self, http: Http) -> None:
        async with http.session.get(
            f"{http.url}/v1/{http.project}/events/stream",
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            async for line in answer.content:
                if line.startswith(b"data:"):
                    self.events += 1
                    event = orjson.loads(line[5:])
                    if event["type"] == "headgate.stack.create.completed":
                        self._ends[event["source"].split("/")[4]] = time.monotonic()
                        self._there.set()

    async def caught_up(self, name: str) -> None:
        began = time.monotonic()
        async with asyncio.timeout(600):
            while name not in self._ends:
                self._there.clear()
                await self._there.wait()
        self.behind = max(0.0, self._ends[name] - began)


@asynccontextmanager
async def _measured(
    http: Http, server: ServerProcess, what: str, count: int
) -> AsyncIterator[_Stream]:
    stream, began, used = _Stream(), time.monotonic(), cpu(server.pid)
    highest = memory(server.pid)
    done = asyncio.Event()

    async def watch() -> None:
        nonlocal highest
        while not done.is_set():
            highest = max(highest, memory(server.pid))
            try:
                async with asyncio.timeout(0.2):
                    await done.wait()
            except TimeoutError:
                continue

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(stream.read(http))
        group.create_task(watch())
        yield stream
        took = time.monotonic() - began
        done.set()
        reading.cancel()
    told = f", stream {stream.behind:.1f} s behind" if stream.behind is not None else ""
    rate = f"{count / took:>8,.0f}/s" if count > 1 else " " * 10
    print(f"  {what:<28}{took:>8.2f} s {rate}, server {cpu(server.pid) - used:.1f} s of a core, "
          f"at most {highest:.0f} MB{told}", flush=True)  # fmt: skip


if __name__ == "__main__":
    asyncio.run(trees())
