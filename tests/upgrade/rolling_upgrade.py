"""A load during which the processes of one version are replaced by those of another, and back."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from engine.store.connection import connect
from tests.fault.failover_load import FailoverLoad
from tests.fault.load import Effects, FaultCounts, new_client, new_folder
from tests.support.keys import key_file
from tests.support.program import ServerProcess

VERSIONS = "select id, migration from process"
#: Seconds between two creates of the load.
PACE = 0.2


class RollingUpgrade:
    """Processes of two versions on one database, and a load on them.

    programs: the directories of the versions; None: this program.
    """

    def __init__(self, folder: Path, url: str, programs: Mapping[str, Path | None]) -> None:
        self.counts, self.effects = FaultCounts(), Effects(folder)
        self._folder, self._url, self._programs = folder, url, programs
        self._settings = f'{self.effects.settings}\n[credentials]\nkey_file = "{key_file()}"\n'
        self._running: list[ServerProcess] = []
        self.load: FailoverLoad

    def process(self, version: str, *roles: str, port: int | None = None) -> ServerProcess:
        """port: of the process that it replaces."""
        process = ServerProcess(
            self._folder,
            settings=self._settings,
            port=port,
            roles=roles,
            database_url=self._url,
            program=self._programs[version],
        )
        self._running.append(process)
        return process

    async def start(self, version: str, *roles: str, port: int | None = None) -> ServerProcess:
        process = self.process(version, *roles, port=port)
        await asyncio.to_thread(process.start)
        return process

    async def replace(self, process: ServerProcess, version: str) -> ServerProcess:
        """Stop a process, and start one of another version at its port."""
        assert await asyncio.to_thread(process.stop) == 0
        return await self.start(version, *process.roles, port=process.port)

    async def until_works(self, *processes: ServerProcess) -> None:
        """Wait until each of these engines has run an operation of the load."""
        pids = {one.pid for one in processes}
        await self.load.wait(lambda: pids <= self.effects.workers())

    async def check_versions(self, count: int) -> None:
        """Check that processes of `count` versions run."""
        connection = await connect(self._url)
        try:
            rows = await connection.fetch(VERSIONS)
        finally:
            await connection.close()
        assert len({row["migration"] for row in rows}) == count, rows

    def stop_all(self) -> None:
        for one in self._running:
            one.stop()


@asynccontextmanager
async def rolling_upgrade(
    url: str, old: Path | None, new: Path | None
) -> AsyncIterator[RollingUpgrade]:
    with new_folder() as folder:
        upgrade = RollingUpgrade(folder, url, {"old": old, "new": new})
        async with AsyncExitStack() as stack:
            stack.callback(upgrade.stop_all)
            yield upgrade


async def replace_all_under_load(upgrade: RollingUpgrade, *, other_schema: bool) -> None:
    """Replace the processes of the old version one by one. Nothing is lost or doubled.

    other_schema: whether the versions know different migrations.
    """
    api = await upgrade.start("old", "api")
    first, second = [await upgrade.start("old", "engine") for _ in range(2)]
    dispatch = await upgrade.start("old", "dispatch", "purge")
    async with new_client(api.url, upgrade.counts) as http:
        load = upgrade.load = FailoverLoad(http, upgrade.effects, upgrade.counts, pace=PACE)
        await load.begin()
        first = await upgrade.replace(first, "new")  # it upgrades the database
        await upgrade.check_versions(1 + other_schema)
        await upgrade.until_works(first, second)
        second.kill()
        await asyncio.to_thread(second.start)  # on the upgraded database
        await upgrade.until_works(first, second)
        await upgrade.replace(dispatch, "new")
        await upgrade.replace(api, "new")
        await load.until_next_create()
        await upgrade.until_works(second)
        second = await upgrade.replace(second, "new")
        await upgrade.until_works(first, second)
        await load.end()
    print(load)
    assert load.problems == []
    assert load.held == load.answered > 0
