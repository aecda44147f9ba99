"""A hook that causes an internal error is rejected: the node machine decides what its node does."""

from uuid import uuid4

import pytest

from engine.lifecycle.gate import StackGate
from engine.lifecycle.plugins import Plugins
from engine.principal import Principal
from engine.service import Engine
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from engine.store.hooks.deadlines import fail_hook
from engine.types.contract import Confirm
from engine.words import Json
from tests.support.changes import thing
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker
from tests.support.program import template
from tests.support.scripted_type import Thing, World

BY = Principal("engine", "engine")
NODE = "select state, phase, reason from node where stack_id = $1 and id = (select node from hook)"
RESOURCE = "select action, status, tainted from resource where stack_id = $1 and name = 'a'"
EVENTS = """
select type from event where stack_id = $1 and (type like '%.failed' or type like '%.expired')
 order by sequence
"""
FAILURES = """
select type, action from event where stack_id = $1 and type like 'headgate.resource.%.failed'
"""


class Bench:
    """A stack with one resource, whose node waits at a hook."""

    def __init__(self, database: Database) -> None:
        self.database, self.world = database, World()
        self.engine: Engine = idle_engine(database, Thing(self.world))
        self.worker = ManualWorker(
            database,
            make_registry(Thing(self.world), StackGate(Plugins())),
            self.engine.stacks.end_traversal,
            uuid4,
        )
        self.stack = uuid4()

    async def create(self, point: str) -> None:
        at = {} if point.startswith("pre-stack") else {"at": "a"}
        request = StackRequest(
            name="s",
            template=template({"a": thing()}),
            environment={"hooks": [at | {"on": point}]},
        )
        self.stack = (await self.engine.stacks.create("p", request)).id
        await self.worker.work()

    async def replace(self) -> None:
        """Replace the resource, up to the hook before the replacement."""
        request = StackRequest(
            name="s",
            template=template({"a": thing(place="south")}),
            environment={"hooks": [{"at": "a", "on": "pre-replace"}]},
        )
        await self.engine.stacks.update("p", self.stack, request)
        await self.worker.work()

    async def fail(self) -> None:
        async with self.database.transaction() as conn:
            hook = await conn.fetchval("select id from hook where state = 'waiting'")
            assert hook is not None
            await fail_hook(conn, self.stack, hook, "internal error 1", BY)

    async def rows(self, query: str) -> list[Json]:
        async with self.database.connection() as conn:
            return [tuple(row) for row in await conn.fetch(query, self.stack)]


@pytest.fixture
def bench(database: Database) -> Bench:
    return Bench(database)


@pytest.mark.parametrize(
    ("point", "phase", "row"),
    [
        ("pre-create", "pre", ("CREATE", "FAILED", False)),
        ("post-create", "post", ("CREATE", "FAILED", True)),
    ],
)
async def test_a_node_before_or_after_its_operation_fails(
    bench: Bench, point: str, phase: str, row: Json
) -> None:
    await bench.create(point)
    await bench.fail()
    assert await bench.rows(NODE) == [("failed", phase, "internal error 1")]
    assert await bench.rows(RESOURCE) == [row]
    assert await bench.rows(EVENTS) == [
        ("headgate.hook.expired",), ("headgate.resource.create.failed",),
    ]  # fmt: skip


async def test_an_operation_gets_the_rejection_of_its_step_and_ends_itself(bench: Bench) -> None:
    bench.world.script("create", "a", Confirm("resize", {}))
    await bench.create("confirm-resize")
    await bench.fail()
    assert await bench.rows(NODE) == [("ready", "execute", "internal error 1")]
    assert await bench.rows(EVENTS) == [("headgate.hook.expired",)]
    await bench.worker.work()
    (call,) = [one for one in bench.world.calls if one.confirmation is not None]
    assert call.confirmation is not None
    assert (call.confirmation.step, call.confirmation.accepted) == ("resize", False)
    assert (await bench.rows(RESOURCE))[0][:2] == ("CREATE", "COMPLETE")


async def test_a_replacement_fails_with_the_actions_of_its_operation(bench: Bench) -> None:
    await bench.create("post-update")
    await bench.replace()
    await bench.fail()
    assert await bench.rows(RESOURCE) == [("UPDATE", "FAILED", False)]
    assert await bench.rows(FAILURES) == [("headgate.resource.replace.failed", "CREATE")]


async def test_a_gate_fails_without_a_resource(bench: Bench) -> None:
    await bench.create("pre-stack-create")
    await bench.fail()
    assert await bench.rows(NODE) == [("failed", "pre", "internal error 1")]
    assert await bench.rows(EVENTS) == [("headgate.hook.expired",)]
    assert bench.world.calls == []
