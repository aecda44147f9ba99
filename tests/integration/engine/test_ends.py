"""The ends of many traversals in one statement."""

from uuid import uuid4

import pytest

from engine.principal import principal_of_name
from engine.service import Engine, StackRequest
from engine.store.database import Database
from engine.store.stacks.stack_locks import lock_stacks
from engine.store.traversals.advance import TraversalToEnd
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker
from tests.support.program import Json, resource, template

RESULTS = """
select s.name, t.state, t.reason, t.wake_at is null and t.ended_at is not null as over
  from stack s join traversal t on t.stack_id = s.id and t.number = s.traversal order by s.name
"""
EVENTS = """
select s.name, e.type, e.status, e.reason, e.data, e.physical_id = s.id::text as of_stack
  from event e join stack s on s.id = e.stack_id
 where e.type like 'headgate.stack.%' and e.type not like '%.started' order by s.name, e.sequence
"""
FAILING = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}


@pytest.fixture
def engine(database: Database) -> Engine:
    return idle_engine(database)


async def ready_to_end(
    engine: Engine, database: Database, stacks: dict[str, Json]
) -> list[TraversalToEnd]:
    """Create stacks and run their nodes. Returns the traversals to end, in the order of names."""
    for name, one in stacks.items():
        request = StackRequest(name=name, template=template({"a": one}), disable_rollback=True)
        await engine.stacks.create("p", request)
    ends: list[TraversalToEnd] = []

    async def collect(ended: TraversalToEnd) -> None:
        ends.append(ended)

    worker = ManualWorker(database, make_registry(), collect, uuid4)
    while await worker.claim(10):
        while worker.jobs:
            worker.operate(0)
    assert len(ends) == len(stacks)
    async with database.connection() as conn:
        names = {row["id"]: row["name"] for row in await conn.fetch("select id, name from stack")}
    return sorted(ends, key=lambda one: str(names[one.stack_id]))


async def results(database: Database) -> list[tuple[str, str, str, bool]]:
    async with database.connection() as conn:
        return [tuple(row) for row in await conn.fetch(RESULTS)]


async def test_complete_traversals_end_together_and_failed_ones_are_left(
    engine: Engine, database: Database
) -> None:
    stacks = {"a": resource(), "b": FAILING, "c": resource()}
    ends = await ready_to_end(engine, database, stacks)
    assert await engine.stacks.end_complete(ends) == [ends[1]]
    await engine.stacks.end_alone(ends[1])
    done = "Stack CREATE completed successfully"
    (a, b, c) = await results(database)
    assert a == ("a", "complete", done, True) and c == ("c", "complete", done, True)
    assert b[1] == "failed" and b[3]
    async with database.connection() as conn:
        events = [tuple(row) for row in await conn.fetch(EVENTS)]
    assert [one[:3] for one in events] == [
        ("a", "headgate.stack.create.completed", "COMPLETE"),
        ("b", "headgate.stack.create.failed", "FAILED"),
        ("c", "headgate.stack.create.completed", "COMPLETE"),
    ]
    data = {"traversal": 1, "version": 1, "status": "COMPLETE"}
    assert events[0][3:] == (done, data, True) == events[2][3:]


async def test_an_end_in_one_statement_equals_one_in_a_transaction_of_its_own(
    engine: Engine, database: Database
) -> None:
    first, second = await ready_to_end(engine, database, {"a": resource(), "b": resource()})
    assert await engine.stacks.end_complete([first]) == []
    await engine.stacks.end_alone(second)
    (a, b) = await results(database)
    assert a[1:] == b[1:]
    async with database.connection() as conn:
        (a_event, b_event) = [tuple(row) for row in await conn.fetch(EVENTS)]
    assert a_event[1:] == b_event[1:]


async def test_a_traversal_ends_once(engine: Engine, database: Database) -> None:
    ends = await ready_to_end(engine, database, {"a": resource()})
    assert await engine.stacks.end_complete(ends) == []
    before = await results(database)
    assert await engine.stacks.end_complete(ends) == []
    assert await results(database) == before
    async with database.connection() as conn:
        assert len(await conn.fetch(EVENTS)) == 1


async def test_a_locked_stack_is_left_and_does_not_delay_the_others(
    engine: Engine, database: Database
) -> None:
    ends = await ready_to_end(engine, database, {"a": resource(), "b": resource()})
    async with database.transaction() as conn:
        await lock_stacks(conn, [ends[0].stack_id])
        assert await engine.stacks.end_complete(ends) == [ends[0]]
    assert [one[1] for one in await results(database)] == ["ending", "complete"]
    assert await engine.stacks.end_complete(ends) == []
    assert [one[1] for one in await results(database)] == ["complete", "complete"]


async def test_a_superseded_traversal_is_not_ended(engine: Engine, database: Database) -> None:
    ends = await ready_to_end(engine, database, {"a": resource()})
    update = StackRequest(
        template=template({"a": resource("new")}), requested_by=principal_of_name("ann")
    )
    await engine.stacks.update("p", ends[0].stack_id, update)
    assert await engine.stacks.end_complete(ends) == []
    assert [one[1] for one in await results(database)] == ["running"]
