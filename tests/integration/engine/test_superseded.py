"""What becomes of nodes whose traversal ends before them: the machine decides it, for what the store
has and for what a worker holds."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from engine.principal import named
from engine.service import Answer, Engine
from engine.service.reads.graphs import read_graphs
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from engine.store.records import NodeRecord
from engine.store.traversal_end import end_early
from engine.types.contract import Call, Confirm, Done, Outcome, ResourceType
from engine.words import Decision, Door, Json, Point, TraversalState
from tests.support.front import a_front, a_registry
from tests.support.hands import Hands, time_passes
from tests.support.program import eventually, program, template
from tests.support.things import Thing, World

PROJECT = "p"
ANN = Answer(Decision.CONTINUE, named("ann"), Door.API)
HOOKS = "select id, traversal, point, state from hook where stack_id = $1 order by opened_at"
ROW = "select status, physical_id from resource where stack_id = $1 and name = $2"
COMPLETED = """
select count(*) from event where stack_id = $1 and type = 'headgate.resource.create.completed'
"""


class Stepping(Thing):
    """With a step that has a point of its own name."""

    schema = replace(Thing.schema, steps=("resize", Point.PRE_BATCH, Point.PRE_SCALE_IN))


def thing(size: int = 1, **more: Json) -> Json:
    return {"type": "Test::Thing", "properties": {"size": size}, **more}


def asked(resources: Json, *points: str) -> StackRequest:
    environment = {"hooks": [{"at": "a", "on": list(points)}]} if points else {"hooks": []}
    return StackRequest(name="s", template=template(resources), environment=environment)


@dataclass
class Bench:
    """One stack, and hands that work on it when asked."""

    database: Database
    world: World
    front: Engine
    hands: Hands
    stack: UUID = field(default_factory=uuid4)

    async def create(self, resources: Json, *points: str) -> None:
        self.stack = (await self.front.stacks.create(PROJECT, asked(resources, *points))).id

    async def update(self, resources: Json, *points: str) -> None:
        request = replace(asked(resources, *points), hooks_clear=["*"])
        await self.front.stacks.update(PROJECT, self.stack, request)

    async def begin(self) -> None:
        """Go on until an operation is to be called."""
        while not self.hands.jobs:
            assert await self.hands.claim(10)

    async def work(self) -> None:
        """Go on until nothing is to be done."""
        while self.hands.jobs or await self.hands.claim(10):
            while self.hands.jobs:
                self.hands.operate(0)

    async def all(self, query: str, *args: Any) -> list[Any]:
        async with self.database.connection() as conn:
            return list(await conn.fetch(query, self.stack, *args))

    async def nodes(self, traversal: int = 1) -> dict[str, NodeRecord]:
        """By name, as the dashboard is shown them, also when the traversal is over."""
        async with self.database.connection() as conn:
            (graph,) = await read_graphs(conn, self.stack, traversal, nested=False)
        return {node.resource_name: node for node in graph.nodes}

    async def kept(self, query: str, *args: Any) -> Any:
        return tuple((await self.all(query, *args))[0])


@pytest.fixture
def bench(database: Database) -> Bench:
    world = World()
    front = a_front(database, Stepping(world))
    hands = Hands(database, a_registry(Stepping(world)), front.stacks.end_traversal, uuid4)
    return Bench(database, world, front, hands)


STEPS = {"resize": "confirm-resize", "pre-batch": "pre-batch", "pre-scale-in": "pre-scale-in"}


def told_steps(world: World) -> list[tuple[str, bool, str]]:
    return [
        (call.confirmed.step, call.confirmed.accepted, call.confirmed.reason)
        for call in world.calls
        if call.confirmed is not None
    ]


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_that_waits_is_refused_by_its_name(bench: Bench, step: str) -> None:
    bench.world.will("create", "a", Confirm(step, {}))
    await bench.create({"a": thing()}, STEPS[step])
    await bench.work()
    assert [hook["point"] for hook in await bench.all(HOOKS)] == [STEPS[step]]
    await bench.update({"a": thing(2)})
    await bench.work()
    assert told_steps(bench.world) == [(step, False, "superseded")]


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_that_was_to_wait_is_refused_by_its_name(bench: Bench, step: str) -> None:
    bench.world.will("create", "a", Confirm(step, {}))
    await bench.create({"a": thing()}, STEPS[step])
    await bench.begin()
    bench.hands.operate(0)
    await bench.update({"a": thing(2)})
    await bench.work()
    assert bench.hands.refused == 1
    assert told_steps(bench.world) == [(step, False, "superseded")]
    assert await bench.all(HOOKS) == []
    assert list(bench.world.things.values()) == [2]


async def test_a_step_that_was_answered_is_told_of_it_after_all(bench: Bench) -> None:
    """Its operation is under way, though its node is ready: it is not dropped."""
    bench.world.will("create", "a", Confirm("resize", {}))
    await bench.create({"a": thing()}, "confirm-resize")
    await bench.work()
    (hook,) = await bench.all(HOOKS)
    await bench.front.hooks.answer(hook["id"], ANN, project=PROJECT)
    assert (await bench.nodes())["a"].state == "ready"
    await bench.update({"a": thing(2)})
    assert (await bench.nodes())["a"].state == "ready"
    await bench.work()
    assert told_steps(bench.world) == [("resize", True, "")]
    assert bench.world.operations("a") == ["create", "create", "update"]


async def made_when_it_was_too_late(bench: Bench) -> UUID:
    """A create whose outcome leads to a hook, and meets a traversal that has been superseded."""
    await bench.create({"a": thing()}, "post-create")
    await bench.begin()
    key = bench.hands.jobs[0].work.operation_key
    assert key is not None
    bench.hands.operate(0)
    await bench.update({"a": thing()})
    assert await bench.hands.claim(0)
    assert bench.hands.refused == 1
    assert (await bench.nodes())["a"].state == "running"
    assert await bench.kept(ROW, "a") == ("COMPLETE", None)
    return key


async def test_an_outcome_that_was_refused_is_written_with_the_next_call(bench: Bench) -> None:
    await made_when_it_was_too_late(bench)
    assert await bench.hands.claim(0)
    assert bench.hands.refused == 1 and not bench.hands.steps
    (made,) = bench.world.things
    assert await bench.kept(ROW, "a") == ("COMPLETE", made)
    node = (await bench.nodes())["a"]
    assert (node.state, node.phase, node.reason) == ("dropped", "post", "superseded")
    assert await bench.all(HOOKS) == []
    await bench.work()
    assert await bench.kept(COMPLETED) == (1,)
    assert bench.world.operations("a") == ["create"]


async def test_an_outcome_whose_worker_dies_is_found_by_the_next_under_the_same_key(
    bench: Bench,
) -> None:
    key = await made_when_it_was_too_late(bench)
    bench.hands.crash()
    await time_passes(bench.database, bench.stack)
    await bench.begin()
    assert bench.hands.jobs[0].work.operation_key == key
    await bench.work()
    assert bench.hands.refused == 2
    (made,) = bench.world.things
    assert await bench.kept(ROW, "a") == ("COMPLETE", made)
    assert await bench.kept(COMPLETED) == (1,)
    assert bench.world.effects[f"create {key}"] == 2


#: What ends a traversal early, and the reason that its nodes are dropped with.
ENDS: dict[str, tuple[Callable[[Bench], Awaitable[Any]], str]] = {
    "newer": (lambda bench: bench.update({"a": thing(3), "b": thing(3)}), "superseded"),
    "cancelled": (
        lambda bench: bench.front.stacks.cancel(PROJECT, bench.stack, named("ann"), rollback=False),
        "Stack CREATE cancelled",
    ),
    "stopped": (
        lambda bench: bench.front.stacks.stop(PROJECT, bench.stack, named("ann")),
        "Stopped: by ann; update the stack to resume",
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_what_is_dropped_says_why(bench: Bench, end: str) -> None:
    """One node waits at a hook, one for that node."""
    await bench.create({"a": thing(), "b": thing(depends_on="a")}, "pre-create")
    await bench.work()
    before = await bench.nodes()
    assert (before["a"].state, before["b"].state) == ("parked", "waiting")
    ends, reason = ENDS[end]
    await ends(bench)
    after = await bench.nodes()
    assert {(after[name].state, after[name].reason) for name in "ab"} == {("dropped", reason)}


async def test_a_traversal_of_many_ends_with_as_many_statements_as_one_of_few(
    bench: Bench,
) -> None:
    few, many = [await statements_to_end(bench, size) for size in (2, 300)]
    assert few == many > 0


async def statements_to_end(bench: Bench, size: int) -> int:
    """For a chain of nodes, the first of which is ready and the others wait."""
    resources = {f"r{n}": thing(depends_on=f"r{n - 1}") if n else thing() for n in range(size)}
    request = replace(asked(resources), name=f"s{size}")
    bench.stack = (await bench.front.stacks.create(PROJECT, request)).id
    sent: list[str] = []
    async with bench.database.transaction() as conn:
        with conn.query_logger(lambda one: sent.append(one.query)):
            ended = TraversalState.STOPPED
            await end_early(conn, bench.stack, 1, named("ann"), ended, "stopped", [])
    assert {node.state for node in (await bench.nodes()).values()} == {"dropped"}
    return len(sent)


class Slow(ResourceType):
    """Its create ends when it may."""

    schema = replace(Thing.schema, name="Test::Slow")

    def __init__(self) -> None:
        self.begun, self.may = asyncio.Event(), asyncio.Event()
        self.made = 0

    async def create(self, call: Call) -> Outcome:
        self.begun.set()
        await self.may.wait()
        self.made += 1
        return Done("slow")

    def delete(self, call: Call) -> Outcome:
        return Done(None)


async def test_a_worker_writes_what_was_made_while_its_stack_was_changed(database_url: str) -> None:
    slow = Slow()
    async with program(database_url, {"engine.poll": "1s"}, types=[slow]) as run:
        resource = {"type": "Test::Slow"}
        held = {"hooks": [{"at": "a", "on": ["post-create"]}]}
        await run.create("s", {"a": resource}, environment=held)
        async with asyncio.timeout(20):
            await slow.begun.wait()
        free = {"template": template({"a": resource}), "environment": {"hooks": []}}
        await run.update("s", "PUT", **free, hooks={"clear": ["*"]})
        slow.may.set()

        async def is_updated() -> bool:
            return bool((await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE")

        await eventually(is_updated)
        found = (await run.resources("s"))["a"]
        assert (found["physical_resource_id"], slow.made) == ("slow", 1)
