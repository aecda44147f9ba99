"""The backup drill of docs/how-to/run-in-production.md: the page's commands, on PostgreSQL."""

import asyncio
import os
import re
import sys
from pathlib import Path

from engine.store.connection import connect
from engine.store.embedded.binaries import find_binaries
from tests.support.keys import key_file
from tests.support.postgres import TestServer
from tests.support.program import Program, program, resource

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "run-in-production.md"
BLOCKS = [
    block
    for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    if "_URL" in block
]  # fmt: skip


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


def test_the_page_has_a_backup_a_restore_and_a_cleanup() -> None:
    assert [block.split()[0] for block in BLOCKS] == ["pg_dump", "createdb", "dropdb"]


async def test_a_waiting_hook_is_answered_on_the_restored_database(
    running: Program, database_url: str, postgres: TestServer, tmp_path: Path
) -> None:
    await running.create("done", {"a": resource()})
    await running.until_ended("done")
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await running.create("held", {"a": resource()}, environment=hooks)
    await running.waiting_hooks("held")
    backup, restore, clear = BLOCKS
    drill = postgres.url_of("headgate_drill")
    urls = {"DATABASE_URL": database_url, "SERVER_URL": postgres.url, "DRILL_URL": drill,
            "KEY_FILE": str(key_file())}  # fmt: skip
    await run_commands(backup, tmp_path, **urls)
    # later changes are not in the backup
    await running.create("later", {"a": resource()})
    output = await run_commands(restore, tmp_path, **urls)
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
        await run_commands(clear, tmp_path, **urls)
    conn = await connect(postgres.url)
    try:
        left = "select count(*) from pg_database where datname = 'headgate_drill'"
        assert await conn.fetchval(left) == 0
    finally:
        await conn.close(timeout=5)
