"""Nodes of a traversal that ends early: the machine decides what happens to waiting nodes and to
those that a worker runs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from engine.principal import principal_of_name
from engine.service import Answer, Engine
from engine.service.reads.graphs import read_graphs
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from engine.store.records import NodeRecord
from engine.store.traversals.end import end_early
from engine.types.contract import Call, Confirm, Done, Outcome, ResourceType, Wait
from engine.words import AnswerChannel, Decision, Json, Point, TraversalState
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker, expire_leases_and_timers
from tests.support.program import eventually, program, template
from tests.support.scripted_type import Thing, World
from tests.support.statement_log import INTROSPECTION

PROJECT = "p"
ANN = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
HOOKS = "select id, resource_name, traversal, point, state from hook where stack_id = $1 order by opened_at"
ROW = "select status, physical_id from resource where stack_id = $1 and name = $2"
COMPLETED = """
select count(*) from event where stack_id = $1 and type = 'headgate.resource.create.completed'
"""


class Stepping(Thing):
    """A type with a step whose name is also a point."""

    schema = replace(Thing.schema, steps=("resize", Point.PRE_BATCH, Point.PRE_SCALE_IN))


def thing(size: int = 1, **more: Json) -> Json:
    return {"type": "Test::Thing", "properties": {"size": size}, **more}


def request_of(resources: Json, *points: str) -> StackRequest:
    environment = {"hooks": [{"at": "a", "on": list(points)}]} if points else {"hooks": []}
    return StackRequest(name="s", template=template(resources), environment=environment)


@dataclass
class Bench:
    """One stack, and a worker that a test moves."""

    database: Database
    world: World
    engine: Engine
    worker: ManualWorker
    stack: UUID = field(default_factory=uuid4)

    async def create(self, resources: Json, *points: str) -> None:
        self.stack = (await self.engine.stacks.create(PROJECT, request_of(resources, *points))).id

    async def update(self, resources: Json, *points: str) -> None:
        request = replace(request_of(resources, *points), hooks_clear=["*"])
        await self.engine.stacks.update(PROJECT, self.stack, request)

    async def all(self, query: str, *args: Any) -> list[Any]:
        async with self.database.connection() as conn:
            return list(await conn.fetch(query, self.stack, *args))

    async def nodes(self, traversal: int = 1) -> dict[str, NodeRecord]:
        """By name, as the dashboard shows them, also after the end of the traversal."""
        async with self.database.connection() as conn:
            (graph,) = await read_graphs(conn, self.stack, traversal, nested=False)
        return {node.resource_name: node for node in graph.nodes}

    async def row(self, query: str, *args: Any) -> Any:
        return tuple((await self.all(query, *args))[0])


@pytest.fixture
def bench(database: Database) -> Bench:
    world = World()
    engine = idle_engine(database, Stepping(world))
    worker = ManualWorker(
        database, make_registry(Stepping(world)), engine.stacks.end_traversal, uuid4
    )
    return Bench(database, world, engine, worker)


STEPS = {"resize": "confirm-resize", "pre-batch": "pre-batch", "pre-scale-in": "pre-scale-in"}


def refused_steps(world: World) -> list[tuple[str, bool, str]]:
    return [
        (call.confirmation.step, call.confirmation.accepted, call.confirmation.reason)
        for call in world.calls
        if call.confirmation is not None
    ]


@pytest.mark.parametrize("step", STEPS)
async def test_a_waiting_confirmation_is_refused_with_the_name_of_its_step(
    bench: Bench, step: str
) -> None:
    bench.world.script("create", "a", Confirm(step, {}))
    await bench.create({"a": thing()}, STEPS[step])
    await bench.worker.work()
    assert [hook["point"] for hook in await bench.all(HOOKS)] == [STEPS[step]]
    await bench.update({"a": thing(2)})
    await bench.worker.work()
    assert refused_steps(bench.world) == [(step, False, "superseded")]


@pytest.mark.parametrize("step", STEPS)
async def test_a_confirmation_that_is_not_yet_written_is_refused_with_the_name_of_its_step(
    bench: Bench, step: str
) -> None:
    bench.world.script("create", "a", Confirm(step, {}))
    await bench.create({"a": thing()}, STEPS[step])
    await bench.worker.until_job()
    bench.worker.operate(0)
    await bench.update({"a": thing(2)})
    await bench.worker.work()
    assert bench.worker.refused == 1
    assert refused_steps(bench.world) == [(step, False, "superseded")]
    assert await bench.all(HOOKS) == []
    assert list(bench.world.things.values()) == [2]


async def test_an_answered_confirmation_reaches_its_operation_after_an_update(bench: Bench) -> None:
    """Its operation is in progress, although its node is ready: the node is not dropped."""
    bench.world.script("create", "a", Confirm("resize", {}))
    await bench.create({"a": thing()}, "confirm-resize")
    await bench.worker.work()
    (hook,) = await bench.all(HOOKS)
    await bench.engine.hooks.answer(hook["id"], ANN, project=PROJECT)
    assert (await bench.nodes())["a"].state == "ready"
    await bench.update({"a": thing(2)})
    assert (await bench.nodes())["a"].state == "ready"
    await bench.worker.work()
    assert refused_steps(bench.world) == [("resize", True, "")]
    assert bench.world.operations("a") == ["create", "create", "update"]


async def create_in_superseded_traversal(bench: Bench) -> UUID:
    """A create whose outcome would open a hook in a superseded traversal."""
    await bench.create({"a": thing()}, "post-create")
    await bench.worker.until_job()
    key = bench.worker.jobs[0].work.operation_key
    assert key is not None
    bench.worker.operate(0)
    await bench.update({"a": thing()})
    assert await bench.worker.claim(0)
    assert bench.worker.refused == 1
    assert (await bench.nodes())["a"].state == "running"
    assert await bench.row(ROW, "a") == ("COMPLETE", None)
    return key


async def test_a_refused_outcome_is_written_with_the_next_call(bench: Bench) -> None:
    await create_in_superseded_traversal(bench)
    assert await bench.worker.claim(0)
    assert bench.worker.refused == 1 and not bench.worker.steps
    (physical,) = bench.world.things
    assert await bench.row(ROW, "a") == ("COMPLETE", physical)
    node = (await bench.nodes())["a"]
    assert (node.state, node.phase, node.reason) == ("dropped", "post", "superseded")
    assert await bench.all(HOOKS) == []
    await bench.worker.work()
    assert await bench.row(COMPLETED) == (1,)
    assert bench.world.operations("a") == ["create"]


async def test_an_outcome_of_a_dead_worker_is_found_with_the_same_operation_key(
    bench: Bench,
) -> None:
    key = await create_in_superseded_traversal(bench)
    bench.worker.crash()
    await expire_leases_and_timers(bench.database, bench.stack)
    await bench.worker.until_job()
    assert bench.worker.jobs[0].work.operation_key == key
    await bench.worker.work()
    assert bench.worker.refused == 2
    (physical,) = bench.world.things
    assert await bench.row(ROW, "a") == ("COMPLETE", physical)
    assert await bench.row(COMPLETED) == (1,)
    assert bench.world.effects[f"create {key}"] == 2


#: What ends a traversal early, and the reason of its dropped nodes.
ENDS: dict[str, tuple[Callable[[Bench], Awaitable[Any]], str]] = {
    "newer": (lambda bench: bench.update({"a": thing(3), "b": thing(3)}), "superseded"),
    "cancelled": (
        lambda bench: bench.engine.stacks.cancel(
            PROJECT, bench.stack, principal_of_name("ann"), rollback=False
        ),
        "Stack CREATE cancelled",
    ),
    "stopped": (
        lambda bench: bench.engine.stacks.stop(PROJECT, bench.stack, principal_of_name("ann")),
        "Stopped: by ann; update the stack to continue",
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_dropped_node_has_a_reason(bench: Bench, end: str) -> None:
    """One node waits at a hook, the other one for that node."""
    await bench.create({"a": thing(), "b": thing(depends_on="a")}, "pre-create")
    await bench.worker.work()
    before = await bench.nodes()
    assert (before["a"].state, before["b"].state) == ("parked", "waiting")
    ends, reason = ENDS[end]
    await ends(bench)
    after = await bench.nodes()
    assert {(after[name].state, after[name].reason) for name in "ab"} == {("dropped", reason)}


#: The point of each resource, and the state and phase of its node before its traversal is superseded
#: and after it.
KINDS = {
    "answered": ("confirm-resize", ("ready", "execute"), ("ready", "execute")),
    "confirming": ("confirm-resize", ("parked", "confirm"), ("ready", "execute")),
    "created": ("post-create", ("parked", "post"), ("dropped", "post")),
    "last": ("pre-create", ("done", "post"), ("done", "post")),
    "polling": (None, ("parked", "execute"), ("parked", "execute")),
    "resumed": ("confirm-resize", ("parked", "execute"), ("parked", "execute")),
    "unclaimed": (None, ("ready", "execute"), ("dropped", "execute")),
    "unstarted": ("pre-create", ("parked", "pre"), ("dropped", "pre")),
}


async def test_each_node_gets_the_decision_for_its_own_state_phase_and_hooks(bench: Bench) -> None:
    """Nodes whose operation is in progress are not dropped, also beside others that are."""
    rules = [{"at": name, "on": [point]} for name, (point, *_) in KINDS.items() if point]
    confirm, wait = Confirm("resize", {}), Wait(datetime.now(UTC) + timedelta(days=1), {})
    for name in ("answered", "confirming"):
        bench.world.script("create", name, confirm)
    bench.world.script("create", "resumed", confirm, wait)
    bench.world.script("create", "polling", wait)
    resources = {name: thing() for name in KINDS} | {"unclaimed": thing(depends_on="last")}
    request = replace(request_of(resources), environment={"hooks": rules})
    bench.stack = (await bench.engine.stacks.create(PROJECT, request)).id
    await bench.worker.work()
    hooks = {one["resource_name"]: one["id"] for one in await bench.all(HOOKS)}
    await bench.engine.hooks.answer(hooks["resumed"], ANN, project=PROJECT)
    await bench.worker.work()
    await bench.engine.hooks.answer(hooks["last"], ANN, project=PROJECT)
    await bench.worker.claim(1)
    await bench.worker.claim(0)
    bench.worker.operate(0)
    await bench.worker.claim(0)
    await bench.engine.hooks.answer(hooks["answered"], ANN, project=PROJECT)
    assert await states(bench) == {name: before for name, (_, before, _) in KINDS.items()}
    await bench.update(resources)
    assert await states(bench) == {name: after for name, (_, _, after) in KINDS.items()}


async def states(bench: Bench) -> dict[str, tuple[str, str]]:
    return {name: (one.state, one.phase) for name, one in (await bench.nodes()).items()}


async def test_the_number_of_statements_to_end_a_traversal_does_not_grow_with_its_nodes(
    bench: Bench,
) -> None:
    few, many = [await statements_to_end(bench, size) for size in (2, 300)]
    assert few == many > 0


async def statements_to_end(bench: Bench, size: int) -> int:
    """For a chain of nodes, of which the first is ready and the others wait."""
    resources = {f"r{n}": thing(depends_on=f"r{n - 1}") if n else thing() for n in range(size)}
    request = replace(request_of(resources), name=f"s{size}")
    bench.stack = (await bench.engine.stacks.create(PROJECT, request)).id
    sent: list[str] = []
    async with bench.database.transaction() as conn:
        with conn.query_logger(lambda one: sent.append(one.query)):
            ended = TraversalState.STOPPED
            await end_early(conn, bench.stack, 1, principal_of_name("ann"), ended, "stopped", [])
    assert {node.state for node in (await bench.nodes()).values()} == {"dropped"}
    return sum(not any(one in text for one in INTROSPECTION) for text in sent)


class Slow(ResourceType):
    """Its create ends when `may` is set."""

    schema = replace(Thing.schema, name="Test::Slow")

    def __init__(self) -> None:
        self.started, self.released = asyncio.Event(), asyncio.Event()
        self.creates = 0

    async def create(self, call: Call) -> Outcome:
        self.started.set()
        await self.released.wait()
        self.creates += 1
        return Done("slow")

    def delete(self, call: Call) -> Outcome:
        return Done(None)


async def test_a_worker_writes_a_create_that_ended_after_an_update(database_url: str) -> None:
    slow = Slow()
    async with program(database_url, {"engine.poll": "1s"}, types=[slow]) as run:
        resource = {"type": "Test::Slow"}
        breakpoints = {"hooks": [{"at": "a", "on": ["post-create"]}]}
        await run.create("s", {"a": resource}, environment=breakpoints)
        async with asyncio.timeout(20):
            await slow.started.wait()
        free = {"template": template({"a": resource}), "environment": {"hooks": []}}
        await run.update("s", "PUT", **free, hooks={"clear": ["*"]})
        slow.released.set()

        async def is_updated() -> bool:
            return bool((await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE")

        await eventually(is_updated)
        found = (await run.resources("s"))["a"]
        assert (found["physical_resource_id"], slow.creates) == ("slow", 1)
