"""Several processes on one database: they share the work, come and go, and harm nothing."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fault.load import Effects, Stubborn, Tally, a_client, a_folder
from tests.support.postgres import TestServer
from tests.support.program import Json, ServerProcess, eventually, template


class House:
    """An API and any number of engines, each a process of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.effects = Effects(folder)
        self.tally = Tally()
        self.api = self.process("api", "dispatch")
        self.engines: list[ServerProcess] = []

    def process(self, *roles: str) -> ServerProcess:
        return ServerProcess(
            self.folder, settings=self.effects.settings, roles=roles, database_url=self.url
        )

    async def engine(self) -> ServerProcess:
        made = self.process("engine")
        await asyncio.to_thread(made.start)
        self.engines.append(made)
        return made

    def end(self) -> None:
        for one in (*self.engines, self.api):
            if one.runs:
                one.signal(signal.SIGCONT)
            one.stop()


@asynccontextmanager
async def a_house(postgres: TestServer) -> AsyncIterator[tuple[House, Stubborn]]:
    with a_folder() as folder:
        async with postgres.new_database() as url:
            house = House(folder, url)
            try:
                await asyncio.to_thread(house.api.start)
                async with a_client(house.api.url, house.tally) as http:
                    yield house, http
            finally:
                await asyncio.to_thread(house.end)


def layers(effects: Effects, count: int, wide: int) -> Json:
    """`count` resources, each after one of the layer before it."""
    names = [f"r{n:03}" for n in range(count)]
    return {
        name: effects.resource() | ({"depends_on": names[n - wide]} if n >= wide else {})
        for n, name in enumerate(names)
    }


async def make(http: Stubborn, name: str, resources: Json) -> None:
    body = {"stack_name": name, "template": template(resources)}
    status, said = await http.ask("POST", "/stacks", body)
    assert status == 201, said


def once_each(house: House, name: str, resources: Json, operation: str = "create") -> None:
    done = house.effects.done(name)
    wanted = {(one, operation) for one in resources}
    house.tally.lost += len(wanted - done.keys())
    house.tally.doubled += sum(count - 1 for count in done.values())
    assert (house.tally.lost, house.tally.doubled) == (0, 0), done


async def test_two_engines_share_the_work(postgres: TestServer) -> None:
    async with a_house(postgres) as (house, http):
        first, second = await house.engine(), await house.engine()
        resources = layers(house.effects, 120, 30)
        await make(http, "s", resources)
        await http.reaches("s", "CREATE_COMPLETE")
        once_each(house, "s", resources)
        assert house.effects.workers() == {first.pid, second.pid}


async def test_engines_that_are_exchanged_one_by_one_lose_nothing(postgres: TestServer) -> None:
    async with a_house(postgres) as (house, http):
        resources = layers(house.effects, 150, 10)
        leaving = [await house.engine(), await house.engine()]
        await make(http, "s", resources)
        for number, old in enumerate(leaving):
            await some_done(house, 20 * (number + 1))
            assert await asyncio.to_thread(old.stop) == 0
            await house.engine()
        await http.reaches("s", "CREATE_COMPLETE")
        once_each(house, "s", resources)
        print(f"2 restarts, {http.tally}")


async def some_done(house: House, count: int) -> None:
    async def look() -> bool:
        return len(house.effects.file.read_text().splitlines()) >= count

    await eventually(look)


async def test_an_engine_that_comes_back_late_harms_nothing(postgres: TestServer) -> None:
    """It is halted in the middle of an operation, longer than its lease; another takes over."""
    async with a_house(postgres) as (house, http):
        go = house.folder / "go"
        slow = house.effects.resource(until=str(go))
        sleeper = await house.engine()
        resources = {"slow": slow, "after": house.effects.resource(depends_on="slow")}
        await make(http, "s", resources)
        await running(http, "s", "slow")
        sleeper.signal(signal.SIGSTOP)
        other = await house.engine()
        await taken_over(http, "s", other)
        go.touch()
        await http.reaches("s", "CREATE_COMPLETE")
        sleeper.signal(signal.SIGCONT)
        await asyncio.to_thread(other.stop)
        # It is well, and the only one: it carries on with what comes, and nothing of before.
        path = f"/stacks/s/{(await http.stack('s'))['id']}"
        changed = {"slow": slow, "after": house.effects.resource(2, depends_on="slow")}
        status, said = await http.ask("PUT", path, {"template": template(changed)})
        assert status == 202, said
        await http.reaches("s", "UPDATE_COMPLETE")
        done = house.effects.done("s")
        assert done == {("slow", "create"): 1, ("after", "create"): 1, ("after", "update"): 1}
        events = await http.events("s")
        ended = [one["resource_name"] for one in events
                 if one["resource_status"] == "CREATE_COMPLETE"]  # fmt: skip
        assert sorted(ended) == ["after", "s", "slow"]


async def running(http: Stubborn, name: str, resource: str) -> None:
    async def look() -> bool:
        found = (await http.resources(name)).get(resource, {})
        return bool(found.get("resource_status") == "CREATE_IN_PROGRESS")

    await eventually(look)


async def taken_over(http: Stubborn, name: str, engine: ServerProcess) -> None:
    """The other engine has the node: its log says nothing of it, but its child waits for `go`."""

    async def look() -> bool:
        children = Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text()
        return bool(children.split())

    await eventually(look)


async def test_an_engine_that_dies_is_followed_within_a_lease(postgres: TestServer) -> None:
    async with a_house(postgres) as (house, http):
        go = house.folder / "go"
        mortal = await house.engine()
        await make(http, "s", {"slow": house.effects.resource(until=str(go))})
        await running(http, "s", "slow")
        mortal.kill()
        other = await house.engine()
        await taken_over(http, "s", other)
        go.touch()
        await http.reaches("s", "CREATE_COMPLETE")
        assert house.effects.done("s") == {("slow", "create"): 1}
