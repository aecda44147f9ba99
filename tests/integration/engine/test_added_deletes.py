"""Deletes of replaced resources: the node that replaces a resource adds them to the graph."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from engine.hooks.answers import Answer
from engine.principal import principal_of_name
from engine.service import Engine, StackRequest
from engine.store.database import Database
from engine.store.maintenance.invariants import find_violations
from engine.words import AnswerChannel, Decision, Json
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker
from tests.support.program import resource, template

NODES = """
select name, operation, state, rules from node where stack_id = $1 and direction = 'cleanup' order by id
"""
DELETED = """
select array_agg(resource_name order by sequence) from event
 where stack_id = $1 and type = 'headgate.resource.delete.completed'
"""
STATE = "select state from traversal where stack_id = $1 and number = 2"
ROWS = "select array_agg(name order by name) from resource where stack_id = $1"
REPLACE = {"update_replace": True}


@pytest.fixture
def engine(database: Database) -> Engine:
    return idle_engine(database)


@pytest.fixture
def worker(database: Database, engine: Engine) -> ManualWorker:
    return ManualWorker(database, make_registry(), engine.stacks.end_traversal, uuid4)


def chain(value: str, *replaced: str, linked: bool = True, **more: Json) -> dict[str, Any]:
    """r0 to r3, each of which uses the one before it if they are linked."""
    resources = {}
    for number in range(4):
        name = f"r{number}"
        after = {"depends_on": f"r{number - 1}"} if number and linked else {}
        resources[name] = resource(value, **after, **more)
        if name in replaced:
            resources[name]["properties"] |= REPLACE
    return resources


async def start(
    engine: Engine, worker: ManualWorker, before: Json, after: Json, **more: Any
) -> UUID:
    stack = await engine.stacks.create("p", StackRequest(name="s", template=template(before)))
    await worker.work()
    request = StackRequest(name="s", template=template(after), **more)
    await engine.stacks.update("p", stack.id, request)
    return stack.id


async def read(database: Database, query: str, stack: UUID) -> Any:
    async with database.connection() as conn:
        assert await find_violations(conn) == {}
        return await conn.fetchval(query, stack)


async def nodes(database: Database, stack: UUID) -> list[tuple[str, str, str]]:
    async with database.connection() as conn:
        assert await find_violations(conn) == {}
        return [(row[0], row[1], row[2]) for row in await conn.fetch(NODES, stack)]


async def test_an_update_in_place_adds_no_delete(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    stack = await start(engine, worker, chain("a"), chain("b"))
    await worker.work()
    assert await read(database, STATE, stack) == "complete"
    assert await nodes(database, stack) == []


async def test_an_update_in_place_claims_each_resource_once(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    """Of a chain: each resource is claimed with the end of the one before, and begun."""
    await start(engine, worker, chain("a"), chain("b"))
    transactions = 0
    while await worker.claim(10):
        transactions += 1
        while worker.jobs:
            worker.operate(0)
    assert transactions == 2 * len(chain("")) + 1


async def test_only_a_replaced_resource_is_deleted(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    stack = await start(engine, worker, chain("a"), chain("b", "r1"))
    await worker.work()
    assert await read(database, STATE, stack) == "complete"
    assert await nodes(database, stack) == [("r1", "delete", "done")]
    assert await read(database, ROWS, stack) == ["r0", "r1", "r2", "r3"]


async def test_replaced_resources_are_deleted_after_those_that_use_them(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    """Each replacement is decided in its own transaction, before those of its users."""
    stack = await start(engine, worker, chain("a"), chain("b", "r0", "r1", "r2", "r3"))
    await worker.work()
    assert await read(database, STATE, stack) == "complete"
    assert await read(database, DELETED, stack) == ["r3", "r2", "r1", "r0"]


async def test_resources_that_are_replaced_in_one_transaction_are_deleted_in_order(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    """The new template has no dependencies, so all are replaced at once."""
    after = chain("b", "r0", "r1", "r2", "r3", linked=False)
    stack = await start(engine, worker, chain("a"), after)
    assert await worker.claim(10) == 4
    await worker.claim(10)
    assert len(worker.jobs) == 4
    while worker.jobs:
        worker.operate(0)
    await worker.claim(0)
    assert {one[2] for one in await nodes(database, stack)} == {"waiting", "ready"}
    await worker.work()
    assert await read(database, STATE, stack) == "complete"
    assert await read(database, DELETED, stack) == ["r3", "r2", "r1", "r0"]


async def test_a_resource_that_leaves_is_deleted_after_the_replaced_one_that_used_it(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    after = {"r1": chain("b", "r1", linked=False)["r1"]}
    stack = await start(engine, worker, chain("a"), after)
    await worker.work()
    assert await read(database, STATE, stack) == "complete"
    assert await read(database, DELETED, stack) == ["r3", "r2", "r1", "r0"]


async def test_a_snapshot_is_taken_before_a_replaced_resource_is_deleted(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    kept: Any = {"deletion_policy": "Snapshot"}
    stack = await start(engine, worker, chain("a", **kept), chain("b", "r0", "r1", **kept))
    await worker.work()
    assert await read(database, STATE, stack) == "complete"
    assert sorted(await nodes(database, stack)) == [
        ("r0", "delete", "done"), ("r0", "snapshot", "done"),
        ("r1", "delete", "done"), ("r1", "snapshot", "done"),
    ]  # fmt: skip
    assert await read(database, DELETED, stack) == ["r1", "r0"]


async def test_a_breakpoint_of_a_live_stack_reaches_a_delete_that_is_added_later(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    stack = await start(engine, worker, chain("a"), chain("b", "r1"))
    by = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
    items = [{"at": "r1", "on": "pre-delete"}, {"at": "r2", "on": "pre-delete"}]
    added = await engine.breakpoints.add("p", stack, items, by)
    assert added.missed == []
    await worker.work()
    assert await nodes(database, stack) == [("r1", "delete", "parked")]


async def test_a_removed_breakpoint_does_not_reach_it(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    stack = await start(engine, worker, chain("a"), chain("b", "r1"))
    by = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
    added = await engine.breakpoints.add("p", stack, [{"at": "r1", "on": "pre-delete"}], by)
    await engine.breakpoints.remove("p", stack, added.ids, by)
    await worker.work()
    assert await nodes(database, stack) == [("r1", "delete", "done")]


async def test_stepping_stops_at_a_delete_that_is_added_later(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    environment = {"hooks": [{"at": "r0", "on": "pre-update"}]}
    stack = await start(engine, worker, chain("a"), chain("b", "r3"), environment=environment)
    hooks: list[str] = []
    by = Answer(Decision.STEP, principal_of_name("ann"), AnswerChannel.API)
    while True:
        await worker.work()
        waiting = await open_hook(database, stack)
        if waiting is None:
            break
        hooks.append(f"{waiting[1]} {waiting[2]}")
        await engine.hooks.answer(waiting[0], by, project="p")
    assert hooks[-1] == "r3 pre-delete"
    assert await read(database, STATE, stack) == "complete"


OPEN_HOOK = "select id, resource_name, point from hook where stack_id = $1 and state = 'waiting'"


async def open_hook(database: Database, stack: UUID) -> Any:
    async with database.connection() as conn:
        return await conn.fetchrow(OPEN_HOOK, stack)


async def test_a_step_that_is_repeated_adds_a_delete_once(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    stack = await start(engine, worker, chain("a"), chain("b", "r0"))
    await worker.work()
    before = await nodes(database, stack)
    await worker.repeat_steps()
    assert await nodes(database, stack) == before == [("r0", "delete", "done")]


async def test_a_superseded_replacement_leaves_the_delete_to_the_newer_change(
    database: Database, engine: Engine, worker: ManualWorker
) -> None:
    stack = await start(engine, worker, chain("a"), chain("b", "r0"))
    await worker.claim(10)
    await worker.claim(10)
    assert len(worker.jobs) == 1
    newer = StackRequest(name="s", template=template(chain("c")))
    await engine.stacks.update("p", stack, newer)
    await worker.work()
    async with database.connection() as conn:
        assert await find_violations(conn) == {}
        states = await conn.fetch(
            "select state from traversal where stack_id = $1 order by number", stack
        )
    assert [row[0] for row in states] == ["complete", "superseded", "complete"]
    assert await read(database, ROWS, stack) == ["r0", "r1", "r2", "r3"]
    assert await read(database, DELETED, stack) == ["r0"]
