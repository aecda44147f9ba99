"""Cells are upgraded one by one: processes and databases of two versions serve at the same time."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from engine.store.schema.upgrade import read_migrations
from tests.fault.load import FaultCounts, new_client, new_folder
from tests.support.cells import projects_of
from tests.support.keys import key_file
from tests.support.postgres import TestServer
from tests.support.program import Http, ServerProcess, resource
from tests.support.programs import ADDITIONS, build_next_program

CELLS = ("a", "b")
NEXT = "9998_next.sql"
SETTINGS = f"""
[credentials]
key_file = "{key_file()}"
"""
CELL = """
[[cells.databases]]
name = "{name}"
url = "{url}"
"""
HOOKS = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
ENGINE = ("engine", "dispatch", "purge")


@dataclass(slots=True)
class Installation:
    """urls: of the databases, by cell. engines: the processes of each cell. program: of the
    processes that start; None: of this version."""

    folder: Path
    urls: Mapping[str, str]
    projects: Mapping[str, str]
    engines: dict[str, ServerProcess] = field(default_factory=dict)
    api: ServerProcess | None = None
    steps: int = 0

    async def replace_engine(self, cell: str, program: Path | None) -> None:
        if former := self.engines.get(cell):
            await asyncio.to_thread(former.stop)
        self.engines[cell] = ServerProcess(
            self.folder, settings=SETTINGS, roles=ENGINE, database_url=self.urls[cell],
            program=program, unforked=True,
        )  # fmt: skip
        await asyncio.to_thread(self.engines[cell].start)

    async def replace_api(self, program: Path | None) -> None:
        if self.api is not None:
            await asyncio.to_thread(self.api.stop)
        cells = "".join(CELL.format(name=name, url=url) for name, url in self.urls.items())
        self.api = ServerProcess(
            self.folder, settings=SETTINGS + cells, roles=("api",), program=program, unforked=True
        )
        await asyncio.to_thread(self.api.start)

    async def stop(self) -> None:
        for one in (self.api, *self.engines.values()):
            if one is not None:
                await asyncio.to_thread(one.stop)

    async def upgraded(self) -> list[str]:
        """The cells whose database has the migrations of the next version."""
        found = []
        for cell, url in self.urls.items():
            conn = await asyncpg.connect(url)
            newest = await conn.fetchval("select max(name) from migration")
            await conn.close()
            assert newest in (NEXT, read_migrations()[-1].name)
            found += [cell] if newest == NEXT else []
        return found

    @asynccontextmanager
    async def client(self, cell: str) -> AsyncIterator[Http]:
        assert self.api is not None
        async with new_client(self.api.url, FaultCounts()) as http:
            http.project = self.projects[cell]
            yield http

    async def use(self) -> None:
        """In each cell, create a stack and answer the hook of the one before, which processes of
        another version have created."""
        before, self.steps = self.steps, self.steps + 1
        for cell in CELLS:
            async with self.client(cell) as http:
                if before:
                    (hook,) = await http.waiting_hooks(f"s{before}")
                    await http.signal(hook)
                    assert await http.until_ended(f"s{before}") == "CREATE_COMPLETE"
                await http.create(f"s{self.steps}", {"a": resource()}, environment=HOOKS)
                await http.waiting_hooks(f"s{self.steps}")
        async with self.client("a") as http:
            status, listed = await http.call("GET", "/stacks?global_tenant=true")
        assert status == 200 and not listed.get("warnings")
        found = sorted((one["project"], one["stack_name"]) for one in listed["stacks"])
        names = [f"s{number}" for number in range(1, self.steps + 1)]
        assert found == sorted((one, name) for one in self.projects.values() for name in names)


@asynccontextmanager
async def running_installation(postgres: TestServer) -> AsyncIterator[Installation]:
    async with postgres.new_database() as first, postgres.new_database() as second:
        with new_folder() as folder:
            projects = {cell: found[0] for cell, found in projects_of(CELLS).items()}
            urls = dict(zip(CELLS, (first, second), strict=True))
            installation = Installation(folder, urls, projects)
            try:
                await installation.replace_api(None)
                for cell in CELLS:
                    await installation.replace_engine(cell, None)
                yield installation
            finally:
                await installation.stop()


async def test_cells_are_upgraded_one_by_one_engines_first(
    postgres: TestServer, tmp_path: Path
) -> None:
    following = build_next_program(tmp_path / "next", "99.1.0", {NEXT: ADDITIONS})
    async with running_installation(postgres) as installation:
        await installation.use()
        await installation.replace_engine("a", following)
        assert await installation.upgraded() == ["a"]
        await installation.use()
        # A new API process upgrades the databases of all cells.
        await installation.replace_api(following)
        await installation.use()
        assert await installation.upgraded() == ["a", "b"]
        await installation.replace_engine("b", following)
        await installation.use()
        await installation.use()
