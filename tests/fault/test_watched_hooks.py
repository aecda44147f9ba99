"""A process dies when a watched hook is replaced: it is replaced once, and its answer counts."""

import asyncio
from collections import Counter
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from engine.store.fault_points import WATCH_POINTS
from tests.fault.test_observer import SETTINGS
from tests.support.http_things import serve_things, thing
from tests.support.program import PATIENCE, Http, ServerProcess, eventually, template

WATCHING = SETTINGS + '[hooks]\nwatch_every = "1s"\n'
HOOKS = {"hooks": [{"at": "a", "on": "pre-update", "watch": True}]}
#: Ends the lease of the dead process.
DUE = "update observation_schedule set next_at = now() where claimed_at is not null"


@pytest.mark.parametrize("point", WATCH_POINTS)
async def test_a_death_while_a_hook_is_replaced_replaces_it_once(
    database_url: str, tmp_path: Path, point: str
) -> None:
    server = ServerProcess(tmp_path, settings=WATCHING, database_url=database_url)
    conn = await asyncpg.connect(database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        # The observation of the hook is due before the object changes.
        fault = f"{point}:1:kill" if point.startswith("renew.") else ""
        await asyncio.to_thread(server.start, fault=fault)
        async with (
            serve_things() as things,
            aiohttp.ClientSession(connector=connector) as session,
            asyncio.timeout(PATIENCE),
        ):
            http = Http(session, server.url)
            await http.create("s", {"a": thing(things)})
            assert await http.until_ended("s") == "CREATE_COMPLETE"
            changed = template({"a": thing(things, 2)})
            await http.update("s", "PUT", template=changed, environment=HOOKS)
            (first,) = await http.waiting_hooks("s")
            (found,) = things.objects.values()
            if not fault:
                await asyncio.to_thread(server.stop)
            found["size"] = 7
            if not fault:
                await conn.execute("update hook set opened_at = opened_at - interval '1m'")
                await asyncio.to_thread(server.start, fault=f"{point}:1:kill")

            async def is_dead() -> bool:
                return not server.is_running

            await eventually(is_dead)
            await asyncio.to_thread(server.start)
            await conn.execute(DUE)

            async def is_replaced() -> bool:
                (hook,) = await http.waiting_hooks("s")
                return bool(hook["id"] != first["id"])

            await eventually(is_replaced)
            (second,) = await http.waiting_hooks("s")
            assert second["resource"]["renewed"]["times"] == 1
            assert (await http.signal(second))[0] == 200
            assert await http.until_ended("s") == "UPDATE_COMPLETE"
            history = await http.stack_request("GET", "s", "/history")
            kinds = Counter(one["type"] for one in history["events"])
            assert kinds["headgate.hook.superseded"] == 1
            assert kinds["headgate.hook.waiting"] == 2
    finally:
        await conn.close()
        await asyncio.to_thread(server.stop)
