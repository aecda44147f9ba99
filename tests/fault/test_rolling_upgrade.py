"""Processes work, start and end on a database that the next version has upgraded under load.

`make test-upgrade` does more, with processes of two versions.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from tests.fault.failover_load import FailoverLoad
from tests.fault.load import Effects, FaultCounts, new_client, new_folder
from tests.support.keys import key_file
from tests.support.postgres import TestServer
from tests.support.program import PATIENCE, ServerProcess
from tests.support.programs import ADDITIONS, build_next_program

#: Seconds between two creates of the load.
PACE = 0.1


def migrate(program: Path, url: str) -> str:
    """Run `headgate admin migrate` of another version."""
    environment = os.environ | {"PYTHONPATH": str(program), "HEADGATE_DATABASE__URL": url}
    done = subprocess.run(
        [sys.executable, "-m", "hub.cli.main", "admin", "migrate"],
        cwd=program, env=environment, check=True, stdout=subprocess.PIPE, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    return done.stdout


async def test_processes_work_and_start_on_the_database_of_the_next_version(
    postgres: TestServer, tmp_path: Path
) -> None:
    following = build_next_program(tmp_path / "next", "99.1.0", {"9998_next.sql": ADDITIONS})
    with new_folder() as folder:
        effects, counts = Effects(folder), FaultCounts()
        settings = f'{effects.settings}\n[credentials]\nkey_file = "{key_file()}"\n'
        async with postgres.new_database() as url:
            api, *engines = [
                ServerProcess(folder, settings=settings, roles=roles, database_url=url)
                for roles in (("api", "dispatch", "purge"), ("engine",), ("engine",))
            ]
            try:
                for one in (api, *engines):
                    await asyncio.to_thread(one.start)
                async with new_client(api.url, counts) as http:
                    load = FailoverLoad(http, effects, counts, pace=PACE)
                    await load.begin()
                    upgraded = await asyncio.to_thread(migrate, following, url)
                    assert upgraded == "9998_next.sql: applied\nfunctions and views: upgraded\n"
                    engines[0].kill()
                    await asyncio.to_thread(engines[0].start)
                    pids = {one.pid for one in engines}
                    await load.wait(lambda: pids <= effects.workers())
                    await load.until_next_create()
                    await load.end()
                assert load.problems == []
                assert load.held == load.answered > 0
                logs = "".join(one.log.read_text() for one in (api, *engines))
                assert "internal.error" not in logs and "request.failed" not in logs
            finally:
                for one in (api, *engines):
                    one.stop()
