"""Races between two commits of a stack tree, replayed step by step: no event is lost."""

from uuid import uuid4

import pytest

from engine.principal import principal_of_name
from engine.service import Engine, StackRequest
from engine.store.database import Database
from engine.store.traversals.nested_stacks import find_nested_stack
from tests.integration.nested.test_lifecycle import INNER, nested
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker, expire_leases_and_timers
from tests.support.program import template

STATES = """
select s.path, t.state from stack s join traversal t on t.stack_id = s.id
 where t.number = s.traversal order by s.path
"""


@pytest.fixture
def engine(database: Database) -> Engine:
    return idle_engine(database)


def new_worker(engine: Engine, database: Database) -> ManualWorker:
    return ManualWorker(
        database,
        make_registry(),
        engine.stacks.end_traversal,
        uuid4,
        run_nested=engine.nested.run_operation,
    )


async def states(database: Database) -> dict[str, str]:
    async with database.connection() as conn:
        return {row["path"]: row["state"] for row in await conn.fetch(STATES)}


async def finish(worker: ManualWorker) -> None:
    """Run all operations that are ready."""
    while await worker.claim(10) or worker.jobs:
        while worker.jobs:
            await worker.operate_nested(0)


async def start_nested_stack(engine: Engine, database: Database) -> ManualWorker:
    """A worker that has started the nested stack and has not yet saved that its node waits."""
    await engine.stacks.create(
        "p",
        StackRequest(name="s", template=template({"web": nested()}), files={"inner.yaml": INNER}),
    )
    first = new_worker(engine, database)
    await first.claim(1)
    await first.operate_nested(0)
    return first


async def test_a_nested_stack_can_end_before_its_parent_waits_for_it(
    engine: Engine, database: Database
) -> None:
    first, other = await start_nested_stack(engine, database), new_worker(engine, database)
    await finish(other)
    assert await states(database) == {"": "running", "web": "complete"}
    await finish(first)
    assert await states(database) == {"": "complete", "web": "complete"}


async def test_a_worker_that_dies_before_it_saves_the_wait_starts_no_second_nested_stack(
    engine: Engine, database: Database
) -> None:
    first, other = await start_nested_stack(engine, database), new_worker(engine, database)
    first.crash()
    async with database.connection() as conn:
        await conn.execute("update node set wake_at = now() where state = 'running'")
        await conn.execute("update traversal set wake_at = now() where wake_at is not null")
    await finish(other)
    assert await states(database) == {"": "complete", "web": "complete"}


async def test_a_stop_before_the_parent_waits_stops_both_stacks(
    engine: Engine, database: Database
) -> None:
    first = await start_nested_stack(engine, database)
    async with database.connection() as conn:
        stack_id = await conn.fetchval("select id from stack where path = ''")
    await engine.stacks.stop("p", stack_id, principal_of_name("ann"))
    await finish(first)
    assert await states(database) == {"": "stopped", "web": "stopped"}
    async with database.connection() as conn:
        left = await conn.fetchval("select count(*) from node where state in ('running', 'parked')")
    assert left == 0


async def test_an_operation_claimed_before_a_stop_starts_no_nested_stack(
    engine: Engine, database: Database
) -> None:
    await engine.stacks.create(
        "p",
        StackRequest(name="s", template=template({"web": nested()}), files={"inner.yaml": INNER}),
    )
    first = new_worker(engine, database)
    await first.claim(1)
    async with database.connection() as conn:
        stack_id = await conn.fetchval("select id from stack where path = ''")
    await engine.stacks.stop("p", stack_id, principal_of_name("ann"))
    await finish(first)
    assert await states(database) == {"": "stopped"}


async def test_an_outdated_worker_does_not_end_the_traversal_of_a_newer_operation(
    engine: Engine, database: Database
) -> None:
    """It has read the nested stack before another worker ends the older operation."""
    first, other = await start_nested_stack(engine, database), new_worker(engine, database)
    await first.claim(0)
    async with database.connection() as conn:
        stack_id = await conn.fetchval("select id from stack where path = ''")
    changed = template({"web": nested("y"), "b": nested()})
    files = {"inner.yaml": INNER}
    await engine.stacks.update("p", stack_id, StackRequest(template=changed, files=files))
    while not (outdated := [job.work for job in first.jobs if job.work.name == "web"]):
        assert await first.claim(1)
    (work,) = outdated
    assert work.traversal_state == "superseded"
    async with database.connection() as conn:
        read = await find_nested_stack(conn, stack_id, work.resource_id, work.physical_id)
    assert read is not None
    for path in ("", "web"):
        async with database.connection() as conn:
            expired_stack = await conn.fetchval("select id from stack where path = $1", path)
        await expire_leases_and_timers(database, expired_stack)
    while (await states(database))["web"] != "running" or read.traversal == await traversal_number(
        database
    ):
        if not other.jobs:
            assert await other.claim(1)
        while other.jobs:
            await other.operate_nested(0)
    await engine.nested._end_child_early(work, read, cancels=False)
    assert (await states(database))["web"] == "running"
    await finish(other)
    assert await states(database) == {"": "complete", "web": "complete", "b": "complete"}


async def traversal_number(database: Database) -> int:
    async with database.connection() as conn:
        found: int = await conn.fetchval("select traversal from stack where path = 'web'")
    return found
