"""A process dies at each commit of a drift hook: it opens once, and its answer repairs once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from engine.store.fault_points import DRIFT_POINTS, HOLD_POINTS
from tests.fault.test_observer import DUE, SETTINGS, lost
from tests.support.http_things import Things, serve_things, thing
from tests.support.program import PATIENCE, Http, Json, ServerProcess, eventually

POLICY = {"convergence": {"observe": {"every": "10h"}, "on_drift": "hold"}}
#: Whether no observation is due or under way.
OBSERVED = "select min(next_at) > now() + interval '1h' from observation_schedule"
#: Between the answer and the start of its repair.
ANSWER_POINTS = ("answer.before", "answer.after", "observed.before", "observed.after",
                 "accept.before", "accept.after")  # fmt: skip


@dataclass
class Drifted:
    """A server, and a stack of which the object of `a` is gone. The server has not noticed."""

    server: ServerProcess
    http: Http
    conn: asyncpg.Connection
    things: Things

    async def start(self, fault: str = "") -> None:
        await asyncio.to_thread(self.server.start, fault=fault)

    async def die(self, point: str) -> None:
        """Start the server, which dies when it passes the point; then start it again."""
        await self.start(f"{point}:1:kill")
        await self.conn.execute(DUE)
        await self.until_dead()
        await self.start()
        await self.conn.execute(DUE)

        async def is_observed() -> bool:
            return bool(await self.conn.fetchval(OBSERVED))

        await eventually(is_observed)

    async def until_dead(self) -> None:
        async def is_dead() -> bool:
            return not self.server.is_running

        await eventually(is_dead)

    async def answer(self, hook: Json) -> None:
        """Answer; without a response, the client does not know whether it was recorded."""
        try:
            status, response = await self.http.signal(hook, "continue")
        except aiohttp.ClientError:
            return
        assert status == 200, response

    async def expect_one_repair(self) -> None:
        async def is_repaired() -> bool:
            return bool((await self.http.stack("s"))["stack_status"] == "UPDATE_COMPLETE")

        await eventually(is_repaired)
        assert self.things.requests["create"] == 3 and len(self.things.objects) == 2
        history = await self.http.stack_request("GET", "s", "/history")
        kinds = Counter(one["type"] for one in history["events"])
        assert kinds["headgate.hook.waiting"] == 1 and kinds["headgate.hook.answered"] == 1
        assert kinds["headgate.resource.drift.detected"] == 1
        versions = await self.http.stack_request("GET", "s", "/versions")
        actions = [one["action"] for one in versions["traversals"]]
        assert sorted(actions) == ["CREATE", "UPDATE"]


@asynccontextmanager
async def drifted(database_url: str, folder: Path) -> AsyncIterator[Drifted]:
    server = ServerProcess(folder, settings=SETTINGS, database_url=database_url)
    conn = await asyncpg.connect(database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        await asyncio.to_thread(server.start)
        async with (
            serve_things() as things,
            aiohttp.ClientSession(connector=connector) as session,
            asyncio.timeout(PATIENCE),
        ):
            http = Http(session, server.url)
            await http.create("s", {name: thing(things) for name in "ab"}, environment=POLICY)
            assert await http.until_ended("s") == "CREATE_COMPLETE"
            await asyncio.to_thread(server.stop)
            del things.objects[await lost(conn)]
            yield Drifted(server, http, conn, things)
    finally:
        await conn.close()
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("point", (*DRIFT_POINTS, *HOLD_POINTS))
async def test_a_death_while_a_drift_hook_opens_opens_it_once(
    database_url: str, tmp_path: Path, point: str
) -> None:
    async with drifted(database_url, tmp_path) as run:
        await run.die(point)
        (hook,) = await run.http.waiting_hooks("s")
        assert hook["point"] == "drift"
        await run.answer(hook)
        await run.expect_one_repair()


@pytest.mark.parametrize("point", ANSWER_POINTS)
async def test_a_death_after_the_answer_repairs_once(
    database_url: str, tmp_path: Path, point: str
) -> None:
    async with drifted(database_url, tmp_path) as run:
        await run.start()
        await run.conn.execute(DUE)
        (hook,) = await run.http.waiting_hooks("s")
        await asyncio.to_thread(run.server.stop)
        await run.start(f"{point}:1:kill")
        await run.answer(hook)
        await run.until_dead()
        await run.start()
        await run.answer(hook)  # the same answer once more changes nothing
        await run.conn.execute(DUE)
        await run.expect_one_repair()
