"""Several processes on one database share the work, start and stop, and cause no errors."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.store.connection import connect
from tests.fault.load import Effects, FaultCounts, RetryingClient, new_client, new_folder
from tests.support.postgres import TestServer
from tests.support.program import Json, ServerProcess, eventually, resource, template

#: Stacks that are requested one after the other.
SINGLE = 40


class ProcessGroup:
    """An API process and any number of engine processes."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.effects = Effects(folder)
        self.counts = FaultCounts()
        self.api = self.process("api", "dispatch")
        self.engines: list[ServerProcess] = []

    def process(self, *roles: str) -> ServerProcess:
        return ServerProcess(
            self.folder, settings=self.effects.settings, roles=roles, database_url=self.url
        )

    async def engine(self) -> ServerProcess:
        process = self.process("engine")
        await asyncio.to_thread(process.start)
        self.engines.append(process)
        return process

    def end(self) -> None:
        for one in (*self.engines, self.api):
            if one.is_running:
                one.signal(signal.SIGCONT)
            one.stop()


@asynccontextmanager
async def process_group(postgres: TestServer) -> AsyncIterator[tuple[ProcessGroup, RetryingClient]]:
    with new_folder() as folder:
        async with postgres.new_database() as url:
            group = ProcessGroup(folder, url)
            try:
                await asyncio.to_thread(group.api.start)
                async with new_client(group.api.url, group.counts) as http:
                    yield group, http
            finally:
                await asyncio.to_thread(group.end)


def layers(effects: Effects, count: int, wide: int) -> Json:
    """`count` resources in layers; each depends on one of the previous layer."""
    names = [f"r{n:03}" for n in range(count)]
    return {
        name: effects.resource() | ({"depends_on": names[n - wide]} if n >= wide else {})
        for n, name in enumerate(names)
    }


async def create(http: RetryingClient, name: str, resources: Json) -> None:
    body = {"stack_name": name, "template": template(resources)}
    status, response = await http.request("POST", "/stacks", body)
    assert status == 201, response


def check_once_each(
    group: ProcessGroup, name: str, resources: Json, operation: str = "create"
) -> None:
    done = group.effects.done(name)
    wanted = {(one, operation) for one in resources}
    group.counts.lost += len(wanted - done.keys())
    group.counts.doubled += sum(count - 1 for count in done.values())
    assert (group.counts.lost, group.counts.doubled) == (0, 0), done


async def test_two_engines_share_the_work(postgres: TestServer) -> None:
    async with process_group(postgres) as (group, http):
        first, second = await group.engine(), await group.engine()
        resources = layers(group.effects, 120, 30)
        await create(http, "s", resources)
        await http.until_status("s", "CREATE_COMPLETE")
        check_once_each(group, "s", resources)
        assert group.effects.workers() == {first.pid, second.pid}


#: Calls of `advance` of the current database.
ADVANCE_CALLS = """
select coalesce(sum(calls), 0)::bigint from pg_stat_user_functions where funcname = 'advance'
"""
COUNT_CALLS = """
do $$ begin
    execute format('alter database %I set track_functions = pl', current_database());
end $$
"""


async def query(url: str, statement: str) -> Any:
    conn = await connect(url)
    try:
        return await conn.fetchval(statement)
    finally:
        await conn.close()


async def calls_of_advance(postgres: TestServer, engines: int) -> int:
    """For stacks that are requested one after the other, each of a chain of two resources."""
    async with process_group(postgres) as (group, http):
        await query(group.url, COUNT_CALLS)
        for _ in range(engines):
            await group.engine()
        resources = {"a": resource(), "b": resource({"get_attr": ["a", "output"]})}
        for number in range(SINGLE):
            await create(http, f"s{number}", resources)
            await http.until_status(f"s{number}", "CREATE_COMPLETE")
        for engine in group.engines:
            await asyncio.to_thread(engine.stop)
        return int(await query(group.url, ADVANCE_CALLS))


async def test_engines_leave_the_work_of_which_all_are_notified_to_one(
    postgres: TestServer,
) -> None:
    """Otherwise each asks at once, and those that ask before one has claimed find nothing then."""
    alone = await calls_of_advance(postgres, 1)
    shared = await calls_of_advance(postgres, 4)
    print(f"calls of advance: {alone} of one engine, {shared} of four")
    assert shared < 1.9 * alone


async def test_a_rolling_restart_of_engines_loses_no_work(postgres: TestServer) -> None:
    async with process_group(postgres) as (group, http):
        resources = layers(group.effects, 150, 10)
        leaving = [await group.engine(), await group.engine()]
        await create(http, "s", resources)
        for number, old in enumerate(leaving):
            await until_some_done(group, 20 * (number + 1))
            assert await asyncio.to_thread(old.stop) == 0
            await group.engine()
        await http.until_status("s", "CREATE_COMPLETE")
        check_once_each(group, "s", resources)
        print(f"2 restarts, {http.counts}")


async def until_some_done(group: ProcessGroup, count: int) -> None:
    async def check() -> bool:
        return len(group.effects.file.read_text().splitlines()) >= count

    await eventually(check)


async def test_a_suspended_engine_that_resumes_late_changes_nothing(postgres: TestServer) -> None:
    """It is suspended during an operation for longer than its lease; another engine takes over."""
    async with process_group(postgres) as (group, http):
        go = group.folder / "go"
        slow = group.effects.resource(until=str(go))
        sleeper = await group.engine()
        resources = {"slow": slow, "after": group.effects.resource(depends_on="slow")}
        await create(http, "s", resources)
        await running(http, "s", "slow")
        sleeper.signal(signal.SIGSTOP)
        other = await group.engine()
        await until_taken_over(http, "s", other)
        go.touch()
        await http.until_status("s", "CREATE_COMPLETE")
        sleeper.signal(signal.SIGCONT)
        await asyncio.to_thread(other.stop)
        # The resumed engine is the only one: it runs new work, and nothing of before.
        path = f"/stacks/s/{(await http.stack('s'))['id']}"
        changed = {"slow": slow, "after": group.effects.resource(2, depends_on="slow")}
        status, response = await http.request("PUT", path, {"template": template(changed)})
        assert status == 202, response
        await http.until_status("s", "UPDATE_COMPLETE")
        done = group.effects.done("s")
        assert done == {("slow", "create"): 1, ("after", "create"): 1, ("after", "update"): 1}
        events = await http.events("s")
        ended = [one["resource_name"] for one in events
                 if one["resource_status"] == "CREATE_COMPLETE"]  # fmt: skip
        assert sorted(ended) == ["after", "s", "slow"]


async def running(http: RetryingClient, name: str, resource: str) -> None:
    async def check() -> bool:
        found = (await http.resources(name)).get(resource, {})
        return bool(found.get("resource_status") == "CREATE_IN_PROGRESS")

    await eventually(check)


async def until_taken_over(http: RetryingClient, name: str, engine: ServerProcess) -> None:
    """The other engine has claimed the node: its log does not show it, but its child process waits
    for `go`.
    """

    async def check() -> bool:
        children = Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text()
        return bool(children.split())

    await eventually(check)


async def test_another_engine_takes_over_within_a_lease(postgres: TestServer) -> None:
    async with process_group(postgres) as (group, http):
        go = group.folder / "go"
        mortal = await group.engine()
        await create(http, "s", {"slow": group.effects.resource(until=str(go))})
        await running(http, "s", "slow")
        mortal.kill()
        other = await group.engine()
        await until_taken_over(http, "s", other)
        go.touch()
        await http.until_status("s", "CREATE_COMPLETE")
        assert group.effects.done("s") == {("slow", "create"): 1}
