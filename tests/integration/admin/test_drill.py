"""The backup drill of docs/how-to/run-in-production.md: the page's commands, on PostgreSQL."""

import asyncio
import os
import sys
from pathlib import Path

from engine.store.connection import connect
from engine.store.embedded.binaries import find_binaries
from tests.support.keys import key_file
from tests.support.page_commands import page_command
from tests.support.postgres import TestServer
from tests.support.program import Program, program, resource

BACKUP = page_command("docs/how-to/run-in-production.md", "pg_dump")
RESTORE = [
    page_command("docs/how-to/run-in-production.md", "createdb"),
    page_command("docs/how-to/run-in-production.md", "pg_restore"),
    page_command("docs/how-to/run-in-production.md", "HEADGATE_DATABASE__URL"),
]
CLEANUP = page_command("docs/how-to/run-in-production.md", "dropdb")


async def run_commands(commands: str, folder: Path, **variables: str) -> str:
    path = os.pathsep.join(
        [str(Path(sys.executable).parent), str(find_binaries(None)), os.environ["PATH"]]
    )
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", commands, cwd=folder,
        env=os.environ | variables | {"PATH": path},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, out.decode() + err.decode()
    return out.decode()


async def test_a_waiting_hook_is_answered_on_the_restored_database(
    running: Program, database_url: str, postgres: TestServer, tmp_path: Path
) -> None:
    await running.create("done", {"a": resource()})
    await running.until_ended("done")
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await running.create("held", {"a": resource()}, environment=hooks)
    await running.waiting_hooks("held")
    drill = postgres.url_of("headgate_drill")
    urls = {"DATABASE_URL": database_url, "SERVER_URL": postgres.url, "DRILL_URL": drill,
            "KEY_FILE": str(key_file())}  # fmt: skip
    await run_commands(BACKUP, tmp_path, **urls)
    # later changes are not in the backup
    await running.create("later", {"a": resource()})
    output = await run_commands("\n".join(RESTORE), tmp_path, **urls)
    try:
        assert [line.split()[1] for line in output.splitlines()] == ["ok"] * 6
        assert "stacks: 2, " in output and "hooks waiting: 1" in output
        async with program(drill) as restored:
            (hook,) = await restored.waiting_hooks("held")
            await restored.signal(hook)
            assert await restored.until_ended("held") == "CREATE_COMPLETE"
            assert (await restored.call("GET", "/stacks/later"))[0] == 404
        (still,) = await running.waiting_hooks("held")
        assert still["id"] == hook["id"]
    finally:
        await run_commands(CLEANUP, tmp_path, **urls)
    conn = await connect(postgres.url)
    try:
        left = "select count(*) from pg_database where datname = 'headgate_drill'"
        assert await conn.fetchval(left) == 0
    finally:
        await conn.close(timeout=5)
