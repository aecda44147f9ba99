"""What happens to a node whose worker ends again and again, and to those beside it.

Workers are moved by hand; a process goes on with what they leave.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from engine.service import Engine
from engine.service.requests.requests import StackRequest
from engine.store.advance import MOST_LOST, UNREAD, Advanced, advance, release
from engine.store.database import Database
from engine.types.contract import Call, Outcome, Wait
from engine.words import Json
from engine.work.worker import LAST_TRY_ALONE
from tests.support.changes import FAR
from tests.support.front import a_front, a_registry
from tests.support.hands import LEASE, Hands, time_passes
from tests.support.program import PATIENCE, Program, eventually, program
from tests.support.things import Thing, World

PROJECT = "p"


@dataclass
class Bench:
    """Stacks, and hands that claim their nodes and die."""

    database: Database
    world: World
    front: Engine
    hands: Hands
    stacks: list[UUID] = field(default_factory=list)

    async def create(self, name: str, *resources: str) -> UUID:
        body: Json = {
            "heat_template_version": "2018-08-31",
            "resources": {one: {"type": "Test::Thing"} for one in resources},
        }
        asked = StackRequest(name=name, template=body)
        stack = (await self.front.stacks.create(PROJECT, asked)).id
        self.stacks.append(stack)
        return stack

    async def begin(self) -> None:
        """Until an operation of each stack is to be called."""
        while await self.hands.claim(10):
            pass

    async def claim(self, want: int = 10, most_bytes: int = 1_000_000) -> Advanced:
        async with self.database.connection() as conn:
            return await advance(conn, "hand", LEASE, want, [], "", most_bytes)

    async def leases_end(self) -> None:
        for stack in self.stacks:
            await time_passes(self.database, stack)

    async def lose(self, times: int) -> None:
        """The worker ends so often with what it has claimed; nothing is claimed then."""
        for _ in range(times - 1):
            await self.leases_end()
            await self.claim()
        await self.leases_end()


@pytest.fixture
def bench(database: Database) -> Bench:
    world = World()
    front = a_front(database, Thing(world))
    hands = Hands(database, a_registry(Thing(world)), front.stacks.end_traversal, uuid4)
    return Bench(database, world, front, hands)


def a_program(url: str, world: World) -> AbstractAsyncContextManager[Program]:
    return program(url, {"engine.poll": "1s"}, types=[Thing(world)])


async def test_a_node_that_has_lost_its_worker_three_times_is_failed_and_not_called(
    bench: Bench, database_url: str
) -> None:
    await bench.create("poison", "a")
    await bench.begin()
    await bench.lose(MOST_LOST)
    with capture_logs() as logs:
        async with a_program(database_url, bench.world) as run:
            assert await run.until_ended("poison") == "CREATE_FAILED"
            reason = (await run.resources("poison"))["a"]["resource_status_reason"]
            assert f"{MOST_LOST} times in a row" in reason
            await run.create("other", {"b": {"type": "Test::Thing"}})
            assert await run.until_ended("other") == "CREATE_COMPLETE"
    assert bench.world.operations("a") == []
    assert any(one["event"] == "node.given_up" for one in logs)


async def test_a_node_that_has_lost_its_worker_twice_is_called_again(
    bench: Bench, database_url: str
) -> None:
    await bench.create("s", "a")
    await bench.begin()
    await bench.lose(MOST_LOST - 1)
    async with a_program(database_url, bench.world) as run:
        assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_only_claims_in_a_row_count(bench: Bench) -> None:
    """A step that is written, such as one that waits, begins the count anew."""
    await bench.create("s", "a")
    await bench.begin()
    bench.world.will("create", "a", Wait(None, {}), FAR)
    bench.hands.operate(0)
    await bench.lose(MOST_LOST - 1)
    assert not (await bench.claim()).unread


async def test_a_suspect_is_claimed_with_nothing_beside_it(bench: Bench) -> None:
    """Otherwise those that were claimed beside the one at fault would fail with it."""
    await bench.create("s", "a", "b", "c")
    await bench.create("t", "d")
    await bench.begin()
    await bench.lose(MOST_LOST - 1)
    claimed = []
    for _ in range(4):
        got = await bench.claim()
        claimed.append([work.name for work in got.work])
    assert sorted(claimed) == [["a"], ["b"], ["c"], ["d"]]


async def test_what_a_process_gives_back_in_order_is_not_counted(bench: Bench) -> None:
    await bench.create("s", "a")
    await bench.begin()
    for _ in range(MOST_LOST + 1):
        await bench.leases_end()
        (work,) = (await bench.claim()).work
        assert work.lost <= 1
        async with bench.database.connection() as conn:
            await release(conn, [work.key])


async def test_documents_can_be_left_unread(bench: Bench) -> None:
    """So that a node whose documents cannot be read is out of the way of the others."""
    await bench.create("s", "a", "b")
    got = await bench.claim(1, UNREAD)
    assert not got.work and len(got.unread) == 1
    assert got.unread[0].definition is None
    assert len((await bench.claim()).work) == 1


async def test_claims_are_bounded_by_the_bytes_of_their_documents(bench: Bench) -> None:
    resources = [f"r{number}" for number in range(6)]
    await bench.create("s", *resources)
    async with bench.database.connection() as conn:
        await conn.execute("update node set bytes = 400 where name = any ($1)", resources)
    assert [len((await bench.claim(10, 1000)).work) for _ in range(3)] == [3, 3, 0]


async def test_an_operation_that_is_called_again_is_shown(bench: Bench, database_url: str) -> None:
    """By an event, the history, the count of calls, the log and a metric, with its key."""
    await bench.create("s", "a")
    await bench.begin()
    key = str(bench.hands.jobs[0].work.operation_key)
    bench.hands.crash()
    await bench.leases_end()
    with capture_logs() as logs:
        async with a_program(database_url, bench.world) as run:
            assert await run.until_ended("s") == "CREATE_COMPLETE"
            events = await run.events("s")
            inspected = await run.at("GET", "s", "/resources/a/inspect")
            async with run.session.get(f"{run.url}/metrics") as answer:
                metrics = await answer.text()
    again = [one for one in events if "called again" in one["resource_status_reason"]]
    assert len(again) == 1
    assert again[0]["resource_status"] == "CREATE_IN_PROGRESS"
    (node,) = inspected["nodes"]
    assert (node["restarts"], node["operation_key"]) == (1, key)
    assert bench.world.calls[0].operation_key.hex == UUID(key).hex
    (line,) = [one for one in logs if one["event"] == "operation.restarted"]
    assert (line["operation_key"], line["attempt"]) == (key, 2)
    counted = 'headgate_operations_restarted_total{operation="create",type="Test::Thing"} 1.0'
    assert counted in metrics
    async with bench.database.connection() as conn:
        kinds = await conn.fetch("select type, data from event where type like '%restarted'")
    assert [dict(one)["type"] for one in kinds] == ["headgate.resource.create.restarted"]
    assert kinds[0]["data"]["operation_key"] == key
    assert kinds[0]["data"]["attempt"] == 2


async def test_while_the_last_try_of_a_node_runs_no_other_suspect_is_claimed(bench: Bench) -> None:
    await bench.create("s", "a", "b")
    await bench.begin()
    await bench.lose(1)
    fresh = await bench.create("t", "c")
    async with bench.database.connection() as conn:
        got = await advance(conn, "hand", LEASE, 10, [], suspects=False)
    assert {work.key.stack_id for work in got.work} == {fresh}
    assert [work.name for work in (await bench.claim()).work] == ["a", "b"]


class HeldThing(Thing):
    """Its creation of resources of stack `s` lasts until `released` is set. called: the resources,
    with the event loop's time of the call."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.released = asyncio.Event()
        self.called: dict[str, float] = {}

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:  # type: ignore[override]
        self.called.setdefault(call.resource_name, asyncio.get_running_loop().time())
        outcome = super().create(call)
        return self._once_released(outcome) if call.resource_name in ("a", "b") else outcome

    async def _once_released(self, outcome: Outcome) -> Outcome:
        async with asyncio.timeout(PATIENCE):
            await self.released.wait()
        return outcome


async def test_a_last_try_runs_alone_and_then_beside_nodes_that_ended_no_worker(
    bench: Bench, database_url: str
) -> None:
    """If another node ended the process, it would fail with it; but others cannot wait for ever."""
    await bench.create("s", "a", "b")
    await bench.begin()
    await bench.lose(MOST_LOST - 1)
    thing = HeldThing(bench.world)
    settings = {"engine.poll": "1s", "engine.lease": "1s"}

    async def one_is_called() -> bool:
        return bool(thing.called)

    async with program(database_url, settings, types=[thing]) as run:
        await eventually(one_is_called)
        await run.create("other", {"c": {"type": "Test::Thing"}})
        assert await run.until_ended("other") == "CREATE_COMPLETE"
        (first,) = thing.called.keys() - {"c"}
        # The claim of the first is a little earlier than its call.
        assert thing.called["c"] - thing.called[first] > LAST_TRY_ALONE - 1
        thing.released.set()
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert thing.called.keys() == {"a", "b", "c"}
