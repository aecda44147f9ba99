"""Nodes whose workers die repeatedly, and the other nodes that were claimed with them.

A test moves a worker by hand; then a process continues from the state that it left.
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
from engine.store.database import Database
from engine.store.traversals.advance import (
    MAX_EXPIRED_LEASES,
    UNREAD,
    AdvanceResult,
    advance,
    release,
)
from engine.types.contract import Call, Outcome, Wait
from engine.words import Json
from engine.work.nodes.claim_limits import LAST_TRY_ALONE
from tests.support.changes import LONG_WAIT
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import LEASE, ManualWorker, expire_leases_and_timers
from tests.support.program import PATIENCE, Program, eventually, program
from tests.support.scripted_type import Thing, World

PROJECT = "p"


@dataclass
class Bench:
    """Stacks, and a worker that claims their nodes and dies."""

    database: Database
    world: World
    engine: Engine
    worker: ManualWorker
    stacks: list[UUID] = field(default_factory=list)

    async def create(self, name: str, *resources: str) -> UUID:
        body: Json = {
            "heat_template_version": "2018-08-31",
            "resources": {one: {"type": "Test::Thing"} for one in resources},
        }
        request = StackRequest(name=name, template=body)
        stack = (await self.engine.stacks.create(PROJECT, request)).id
        self.stacks.append(stack)
        return stack

    async def claim_all(self) -> None:
        """Claim until no stack has a due node."""
        while await self.worker.claim(10):
            pass

    async def claim(self, want: int = 10, max_bytes: int = 1_000_000) -> AdvanceResult:
        async with self.database.connection() as conn:
            return await advance(conn, "hand", LEASE, want, [], "", max_bytes)

    async def expire_leases(self) -> None:
        for stack in self.stacks:
            await expire_leases_and_timers(self.database, stack)

    async def lose(self, times: int) -> None:
        """The worker dies `times` times after it has claimed; then nothing is claimed."""
        for _ in range(times - 1):
            await self.expire_leases()
            await self.claim()
        await self.expire_leases()


@pytest.fixture
def bench(database: Database) -> Bench:
    world = World()
    engine = idle_engine(database, Thing(world))
    worker = ManualWorker(database, make_registry(Thing(world)), engine.stacks.end_traversal, uuid4)
    return Bench(database, world, engine, worker)


def run_program(url: str, world: World) -> AbstractAsyncContextManager[Program]:
    return program(url, {"engine.poll": "1s"}, types=[Thing(world)])


async def test_a_node_that_lost_three_workers_fails_without_a_call(
    bench: Bench, database_url: str
) -> None:
    await bench.create("poison", "a")
    await bench.claim_all()
    await bench.lose(MAX_EXPIRED_LEASES)
    with capture_logs() as logs:
        async with run_program(database_url, bench.world) as run:
            assert await run.until_ended("poison") == "CREATE_FAILED"
            reason = (await run.resources("poison"))["a"]["resource_status_reason"]
            assert f"{MAX_EXPIRED_LEASES} times in a row" in reason
            await run.create("other", {"b": {"type": "Test::Thing"}})
            assert await run.until_ended("other") == "CREATE_COMPLETE"
    assert bench.world.operations("a") == []
    assert any(one["event"] == "node.given_up" for one in logs)


async def test_a_node_that_lost_two_workers_is_called_again(
    bench: Bench, database_url: str
) -> None:
    await bench.create("s", "a")
    await bench.claim_all()
    await bench.lose(MAX_EXPIRED_LEASES - 1)
    async with run_program(database_url, bench.world) as run:
        assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_only_consecutive_lost_claims_count(bench: Bench) -> None:
    """A written step, such as a wait, resets the count."""
    await bench.create("s", "a")
    await bench.claim_all()
    bench.world.script("create", "a", Wait(None, {}), LONG_WAIT)
    bench.worker.operate(0)
    await bench.lose(MAX_EXPIRED_LEASES - 1)
    assert not (await bench.claim()).unread


async def test_a_node_that_lost_its_worker_is_claimed_alone(bench: Bench) -> None:
    """Otherwise nodes that were claimed together with the faulty one would fail, too."""
    await bench.create("s", "a", "b", "c")
    await bench.create("t", "d")
    await bench.claim_all()
    await bench.lose(MAX_EXPIRED_LEASES - 1)
    claimed = []
    for _ in range(4):
        batch = await bench.claim()
        claimed.append([work.name for work in batch.work])
    assert sorted(claimed) == [["a"], ["b"], ["c"], ["d"]]


async def test_a_released_claim_does_not_count_as_lost(bench: Bench) -> None:
    await bench.create("s", "a")
    await bench.claim_all()
    for _ in range(MAX_EXPIRED_LEASES + 1):
        await bench.expire_leases()
        (work,) = (await bench.claim()).work
        assert work.expired_leases <= 1
        async with bench.database.connection() as conn:
            await release(conn, [work.key])


async def test_a_claim_can_skip_the_documents(bench: Bench) -> None:
    """Nodes whose documents cannot be read do not block others."""
    await bench.create("s", "a", "b")
    batch = await bench.claim(1, UNREAD)
    assert not batch.work and len(batch.unread) == 1
    assert batch.unread[0].definition is None
    assert len((await bench.claim()).work) == 1


async def test_a_batch_is_limited_by_the_bytes_of_its_documents(bench: Bench) -> None:
    resources = [f"r{number}" for number in range(6)]
    await bench.create("s", *resources)
    async with bench.database.connection() as conn:
        await conn.execute("update node set bytes = 400 where name = any ($1)", resources)
    assert [len((await bench.claim(10, 1000)).work) for _ in range(3)] == [3, 3, 0]


async def test_a_repeated_operation_call_is_reported(bench: Bench, database_url: str) -> None:
    """In an event, the history, the number of calls, the log and a metric, with the
    operation key.
    """
    await bench.create("s", "a")
    await bench.claim_all()
    key = str(bench.worker.jobs[0].work.operation_key)
    bench.worker.crash()
    await bench.expire_leases()
    with capture_logs() as logs:
        async with run_program(database_url, bench.world) as run:
            assert await run.until_ended("s") == "CREATE_COMPLETE"
            events = await run.events("s")
            inspected = await run.stack_request("GET", "s", "/resources/a/inspect")
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


async def test_only_one_node_on_its_last_try_is_claimed_at_a_time(bench: Bench) -> None:
    await bench.create("s", "a", "b")
    await bench.claim_all()
    await bench.lose(1)
    fresh = await bench.create("t", "c")
    async with bench.database.connection() as conn:
        batch = await advance(conn, "hand", LEASE, 10, [], suspects=False)
    assert {work.key.stack_id for work in batch.work} == {fresh}
    assert [work.name for work in (await bench.claim()).work] == ["a", "b"]


class BlockedThing(Thing):
    """Creates of stack `s` end when `released` is set. called: the resources, with the event loop's
    time of the call.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.released = asyncio.Event()
        self.called: dict[str, float] = {}

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:  # type: ignore[override]
        self.called.setdefault(call.resource_name, asyncio.get_running_loop().time())
        outcome = super().create(call)
        return self._after_release(outcome) if call.resource_name in ("a", "b") else outcome

    async def _after_release(self, outcome: Outcome) -> Outcome:
        async with asyncio.timeout(PATIENCE):
            await self.released.wait()
        return outcome


async def test_a_last_try_runs_alone_at_first_and_then_with_other_nodes(
    bench: Bench, database_url: str
) -> None:
    """Another node that ends the process would fail it; but others cannot wait forever."""
    await bench.create("s", "a", "b")
    await bench.claim_all()
    await bench.lose(MAX_EXPIRED_LEASES - 1)
    blocked_type = BlockedThing(bench.world)
    settings = {"engine.poll": "1s", "engine.lease": "2s"}

    async def any_called() -> bool:
        return bool(blocked_type.called)

    async with program(database_url, settings, types=[blocked_type]) as run:
        await eventually(any_called)
        await run.create("other", {"c": {"type": "Test::Thing"}})
        assert await run.until_ended("other") == "CREATE_COMPLETE"
        (first,) = blocked_type.called.keys() - {"c"}
        # the first node's claim is slightly earlier than its call
        assert blocked_type.called["c"] - blocked_type.called[first] > 2 * LAST_TRY_ALONE - 1
        blocked_type.released.set()
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert blocked_type.called.keys() == {"a", "b", "c"}


async def test_nodes_of_others_are_called_between_two_last_tries(
    bench: Bench, database_url: str
) -> None:
    """Nodes on their last try take turns with nodes of others."""
    await bench.create("s", "a", "b")
    await bench.claim_all()
    await bench.lose(MAX_EXPIRED_LEASES - 1)
    blocked_type = BlockedThing(bench.world)

    async def any_called() -> bool:
        return bool(blocked_type.called)

    async with program(database_url, {"engine.poll": "1s"}, types=[blocked_type]) as run:
        await eventually(any_called)
        await run.create("other", {"c": {"type": "Test::Thing"}})
        assert blocked_type.called.keys() < {"a", "b"}
        blocked_type.released.set()
        assert await run.until_ended("other") == "CREATE_COMPLETE"
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert sorted(blocked_type.called, key=blocked_type.called.__getitem__)[1] == "c"
