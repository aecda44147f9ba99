"""Engines with labels that are killed: only an engine with the same label takes over their work."""

import asyncio
import signal
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import aiohttp

from engine.store.database import Database
from tests.fault.load import new_folder
from tests.support.program import Http, Json, ServerProcess, eventually, resource

SETTINGS = """
[resource_types.command]
enabled = true
run_as = "server"
[[resource_types.command.programs]]
path = "{program}"
projects = ["*"]
arguments = ["*"]
folders = ["/"]
[engine]
lease = "2s"
poll = "1s"
{labels}
[[engine.label_rules]]
label = "region=eu"
types = ["Headgate::Command"]
"""
#: The first call creates the directory and hangs; the second one notes that it was called.
PROGRAM = """#!/bin/sh
if mkdir "$1"; then exec sleep 20; fi
echo taken > "$1/again"
"""


@contextmanager
def engines(folder: Path, url: str, program: Path) -> Iterator["Engines"]:
    with ExitStack() as stack:
        yield Engines(folder, url, program, stack)


class Engines:
    def __init__(self, folder: Path, url: str, program: Path, stack: ExitStack) -> None:
        self._folder, self._url, self._program, self._stack = folder, url, program, stack

    async def start(self, *labels: str, roles: tuple[str, ...] = ("engine",)) -> ServerProcess:
        shown = f"labels = {list(labels)!r}"
        settings = SETTINGS.format(program=self._program, labels=shown)
        process = ServerProcess(
            self._folder, settings=settings, roles=roles, database_url=self._url
        )
        self._stack.callback(process.stop)
        await asyncio.to_thread(process.start)
        return process


async def test_only_an_engine_with_the_label_takes_over_the_work_of_a_killed_one(
    database: Database, database_url: str
) -> None:
    with new_folder() as folder:
        program, made = folder / "program", folder / "made"
        program.write_text(PROGRAM)
        program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        with engines(folder, database_url, program) as start:
            main = await start.start(roles=())
            eu, _us = await start.start("region=eu"), await start.start("region=us")
            async with aiohttp.ClientSession() as session:
                http = Http(session, main.url)
                command = {"create": [str(program), str(made)]}
                await http.create("s", {"c": {"type": "Headgate::Command", "properties": command}})
                await eventually(lambda: asyncio.to_thread(made.exists))
                before = await read_node(database)
                assert before["worker"].endswith(f":{eu.pid}")
                eu.kill()

                async def expired() -> bool:
                    return bool((await read_node(database))["expired"])

                await eventually(expired)
                # The others have looked for work since then.
                await http.create("other", {"a": resource()})
                assert await http.until_ended("other") == "CREATE_COMPLETE"
                assert await read_node(database) == before | {"expired": True}
                again = await start.start("region=eu")
                assert await http.until_ended("s") == "CREATE_COMPLETE"
                assert (made / "again").read_text() == "taken\n"
                again.signal(signal.SIGTERM)


async def read_node(database: Database) -> dict[str, Json]:
    row = await database.pool.fetchrow(
        "select worker, claim, label, wake_at < clock_timestamp() as expired from node"
        " where name = 'c'"
    )
    return dict(row or {})
