"""A process dies at each commit of an operation that the observer completes."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import aiohttp
import asyncpg
import pytest
from aiohttp import web

from engine.store.fault_points import COMPLETION_POINTS
from tests.support.completions import building, finish
from tests.support.http_things import Things, serve_things
from tests.support.program import PATIENCE, Http, ServerProcess, eventually

SETTINGS = """
[engine]
lease = "1s"
poll = "1s"
[resource_types.http]
enabled = true
allow = ["127.0.0.0/8"]
"""
NAMES = ("a", "b", "c", "d")
#: Ends the lease of the request that the dead process had claimed, and wakes the observer, which
#: looks at its schedule every 10 s. $1: when the process was dead.
DUE = """
with due as (update completion_request set next_at = now() where claimed_at < $1)
select pg_notify('headgate_completion', '')
"""


class IdempotentThings(Things):
    """A create that is repeated with the same key returns the object of the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, web.Response] = {}

    async def create(self, request: web.Request) -> web.Response:
        key = request.headers["Idempotency-Key"]
        if key not in self.keys:
            self.keys[key] = await super().create(request)
        return web.Response(body=self.keys[key].body, content_type="application/json")


@pytest.fixture
async def things() -> AsyncIterator[Things]:
    async with serve_things(IdempotentThings()) as service:
        yield service


async def make_due_until_ended(http: Http, conn: asyncpg.Connection, dead_at: datetime) -> str:
    ended = asyncio.create_task(http.until_ended("s"))
    while not ended.done():
        await conn.execute(DUE, dead_at)
        await asyncio.wait([ended], timeout=0.5)
    return ended.result()


@pytest.mark.parametrize("point", COMPLETION_POINTS)
async def test_a_death_at_any_commit_completes_each_resource_once(
    database_url: str, tmp_path: Path, things: Things, point: str
) -> None:
    server = ServerProcess(tmp_path, settings=SETTINGS, database_url=database_url)
    conn = await asyncpg.connect(database_url)
    try:
        await asyncio.to_thread(server.start, fault=f"{point}:1:kill")
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE):
            http = Http(session, server.url)
            await http.create("s", {name: building(things) for name in NAMES})

            async def is_dead() -> bool:
                if len(things.objects) == len(NAMES):
                    finish(things)
                return not server.is_running

            await eventually(is_dead)
            dead_at = await conn.fetchval("select clock_timestamp()")
            await asyncio.to_thread(server.start)

            async def all_created() -> bool:
                return len(things.objects) == len(NAMES)

            await eventually(all_created)
            finish(things)
            assert await make_due_until_ended(http, conn, dead_at) == "CREATE_COMPLETE"
            history = await http.stack_request("GET", "s", "/history")
        completed = sorted(
            one["subject"] for one in history["events"]
            if one["type"] == "headgate.resource.create.completed"
        )  # fmt: skip
        assert completed == list(NAMES) and len(things.objects) == len(NAMES)
    finally:
        await conn.close()
        await asyncio.to_thread(server.stop)
