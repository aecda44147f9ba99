"""Races between two commits of a stack tree, replayed step by step: no event is lost."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest

from engine.hooks.rule import Rule, encode_rule
from engine.principal import principal_of_name
from engine.service import Engine, StackRequest
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks import breakpoints
from engine.store.stacks.stack_locks import lock_stacks
from engine.store.traversals.nested_stacks import find_nested_stack
from engine.types.contract import Call, Outcome
from engine.types.template_resource import TemplateResource
from engine.words import Json
from tests.integration.nested.test_lifecycle import INNER, nested
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker, expire_leases_and_timers
from tests.support.program import eventually, template

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


#: Sessions that wait for a lock, and whether they have written nodes in their transaction.
WAITING = """
select exists (select 1 from pg_locks w
                where w.pid = l.pid and w.relation = 'node'::regclass
                  and w.mode = 'RowExclusiveLock') as has_written
  from pg_locks l join pg_stat_activity a using (pid)
 where not l.granted and a.datname = current_database()
"""


async def claim_first(engine: Engine, database: Database) -> tuple[ManualWorker, UUID]:
    """A worker that has claimed the node of a nested stack, and the ID of the parent stack."""
    await engine.stacks.create(
        "p",
        StackRequest(name="s", template=template({"web": nested()}), files={"inner.yaml": INNER}),
    )
    worker = new_worker(engine, database)
    await worker.claim(1)
    async with database.connection() as conn:
        return worker, await conn.fetchval("select id from stack where path = ''")


@asynccontextmanager
async def while_it_waits_for_the_parent(
    worker: ManualWorker, database: Database, parent: UUID
) -> AsyncIterator[Connection]:
    """A transaction that has locked the parent stack since before the worker created the nested
    stack, and that is committed at the end. The worker has already stored the nested stack."""
    async with database.transaction() as holder:
        await lock_stacks(holder, [parent])
        operation = asyncio.create_task(worker.operate_nested(0))
        async with database.connection() as conn:

            async def has_stored() -> bool:
                return [row["has_written"] for row in await conn.fetch(WAITING)] == [True]

            await eventually(has_stored)
        yield holder
    await operation


async def test_a_nested_stack_is_stored_before_its_parent_is_locked(
    engine: Engine, database: Database
) -> None:
    """Nodes of the parent wait for its lock, so that it is held for a moment only."""
    worker, parent = await claim_first(engine, database)
    async with while_it_waits_for_the_parent(worker, database, parent):
        assert await states(database) == {"": "running"}
    await finish(worker)
    assert await states(database) == {"": "complete", "web": "complete"}


async def test_a_breakpoint_that_is_set_while_a_nested_stack_is_stored_holds_there(
    engine: Engine, database: Database
) -> None:
    worker, parent = await claim_first(engine, database)
    async with while_it_waits_for_the_parent(worker, database, parent) as holder:
        rule: Json = {"id": uuid4(), "pattern": "web/one", "rule": encode_rule(Rule("pre-create"))}
        await holder.execute(breakpoints.INSERT, parent, [rule], "ann")
    await finish(worker)
    assert await states(database) == {"": "running", "web": "running"}
    async with database.connection() as conn:
        waiting = await conn.fetch("select resource_name, point from hook where state = 'waiting'")
    assert [tuple(row) for row in waiting] == [("one", "pre-create")]


@pytest.mark.parametrize(
    "change",
    ["update node set claim = claim + 1", "update traversal set state = 'stopped'"],
    ids=["another worker has the node", "the parent is stopped"],
)
async def test_a_nested_stack_is_not_kept_if_its_operation_ended_while_it_was_stored(
    engine: Engine, database: Database, change: str
) -> None:
    worker, parent = await claim_first(engine, database)
    async with while_it_waits_for_the_parent(worker, database, parent) as holder:
        await holder.execute(f"{change} where stack_id = $1", parent)
    async with database.connection() as conn:
        assert await conn.fetchval("select count(*) from stack") == 1
        assert await conn.fetchval("select count(*) from node where stack_id <> $1", parent) == 0


async def test_types_compute_nested_stacks_in_a_thread(
    engine: Engine, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template of a thousand members would block the event loop."""
    threads: list[threading.Thread] = []
    create = TemplateResource.create

    def record(self: TemplateResource, call: Call) -> Outcome:
        threads.append(threading.current_thread())
        return create(self, call)

    monkeypatch.setattr(TemplateResource, "create", record)
    worker, _ = await claim_first(engine, database)
    await finish(worker)
    assert threads and threading.main_thread() not in threads
    assert await states(database) == {"": "complete", "web": "complete"}


async def traversal_number(database: Database) -> int:
    async with database.connection() as conn:
        found: int = await conn.fetchval("select traversal from stack where path = 'web'")
    return found
