"""headgate admin purge, and pins from the command line."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from engine.principal import principal_of_name
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from tests.support.admin_command import run_admin
from tests.support.command_line import headgate_json
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.idle_engine import idle_engine
from tests.support.program import ServerProcess, resource, template

COUNT = "select count(*) from event"
PUBLISH = "update outbox set position = id, created_at = created_at - interval '2 days'"


async def test_a_dry_run_counts_rows_and_purge_deletes_them(
    database: Database, database_url: str
) -> None:
    engine_rows = EngineRows(database)
    stack = await engine_rows.stack()
    for name in ("a", "b", "c"):
        await engine_rows.record(stack, resource_event(name))
    async with database.connection() as conn:
        await conn.execute(PUBLISH)
    assert (await run_admin("purge", "--older-than", "3d", "--yes", "--json", url=database_url)).document == {
        "events": 0, "deliveries": 0, "hooks": 0, "traversals": 0, "idempotency_keys": 0,
        "tokens": 0, "deleted_stacks": 0, "sessions": 0, "sign_in_places": 0,
        "observation_credentials": 0,
    }  # fmt: skip
    output = await run_admin("purge", "--older-than", "1d", "--dry-run", url=database_url)
    assert output.out.splitlines()[0] == "events: 2 would be deleted"
    assert await engine_rows.value(COUNT) == 3
    output = await run_admin(
        "purge", url=database_url, RETENTION__EVENTS="1d", RETENTION__AUDIT_LOGS="1d"
    )
    assert (
        output.out.splitlines()[0] == "events: 2 deleted" and "audit logs: 0 deleted" in output.out
    )
    assert await engine_rows.value(COUNT) == 1


async def test_graphs_are_archived_before_their_traversals_are_purged(
    database: Database, database_url: str
) -> None:
    engine = idle_engine(database)
    request = StackRequest(name="s", template=template({"a": resource()}))
    stack = await engine.stacks.create("p", request)
    await engine.stacks.stop("p", stack.id, principal_of_name("ann"))
    await engine.stacks.update("p", stack.id, replace(request, template=template({})))
    async with database.connection() as conn:
        await conn.execute("update traversal set ended_at = ended_at - interval '2 days'")
    nodes = "select count(*) from node where traversal = 1"
    arguments = ("purge", "--older-than", "1d", "--yes", "--json")
    output = await run_admin(*arguments, "--dry-run", url=database_url)
    assert output.document["traversals"] == 1
    assert await database.pool.fetchval(nodes) == 1
    assert (await run_admin(*arguments, url=database_url)).document["traversals"] == 1
    assert await database.pool.fetchval(nodes) == 0


async def test_stacks_are_pinned_and_unpinned_by_name(database_url: str, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, database_url=database_url)
    await asyncio.to_thread(server.start)
    try:
        file = tmp_path / "t.json"
        file.write_text(json.dumps(template({"a": resource()})))
        await asyncio.to_thread(
            headgate_json, server, "stack", "create", "s", "-t", str(file), "--wait"
        )
        words = ("stack", "pin", "s", "--reason", "audit", "--user", "ann")
        pinned = (await asyncio.to_thread(headgate_json, server, *words))["pinned"]
        assert (pinned["by"], pinned["reason"]) == ("ann", "audit")
        let_go = await asyncio.to_thread(headgate_json, server, "stack", "unpin", "s")
        assert let_go["pinned"] is None
    finally:
        await asyncio.to_thread(server.stop)
