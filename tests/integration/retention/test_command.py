"""headgate admin purge, and pins from the command line."""

import asyncio
import json
from pathlib import Path

from engine.store.database import Database
from tests.support.admin import admin
from tests.support.command_line import spoken
from tests.support.events import Scene, resource_event
from tests.support.program import ServerProcess, resource, template

COUNT = "select count(*) from event"
PUBLISH = "update outbox set position = id, created_at = created_at - interval '2 days'"


async def test_it_says_what_would_go_and_has_it_go(database: Database, database_url: str) -> None:
    scene = Scene(database)
    stack = await scene.stack()
    for name in ("a", "b", "c"):
        await scene.record(stack, resource_event(name))
    async with database.connection() as conn:
        await conn.execute(PUBLISH)
    assert (await admin("purge", "--older-than", "3d", "--json", url=database_url)).document == {
        "events": 0, "deliveries": 0, "hooks": 0, "traversals": 0, "idempotency_keys": 0,
        "tokens": 0, "deleted_stacks": 0, "sessions": 0, "sign_in_places": 0,
    }  # fmt: skip
    said = await admin("purge", "--older-than", "1d", "--dry-run", url=database_url)
    assert said.out.splitlines()[0] == "events: 2 would be deleted"
    assert await scene.value(COUNT) == 3
    said = await admin("purge", url=database_url, RETENTION__EVENTS="1d", RETENTION__TRAILS="1d")
    assert said.out.splitlines()[0] == "events: 2 deleted" and "trails: 0 deleted" in said.out
    assert await scene.value(COUNT) == 1


async def test_stacks_are_pinned_by_name_and_let_go(database_url: str, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, database_url=database_url)
    await asyncio.to_thread(server.start)
    try:
        file = tmp_path / "t.json"
        file.write_text(json.dumps(template({"a": resource()})))
        await asyncio.to_thread(spoken, server, "stack", "create", "s", "-t", str(file), "--wait")
        words = ("stack", "pin", "s", "--reason", "audit", "--user", "ann")
        pinned = (await asyncio.to_thread(spoken, server, *words))["pinned"]
        assert (pinned["by"], pinned["reason"]) == ("ann", "audit")
        let_go = await asyncio.to_thread(spoken, server, "stack", "unpin", "s")
        assert let_go["pinned"] is None
    finally:
        await asyncio.to_thread(server.stop)
