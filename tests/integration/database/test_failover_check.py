"""A promoted database lacks commits: what the check does if it is repeated, late or called again."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest
from structlog.testing import capture_logs

from engine.service.requests.requests import StackRequest
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.maintenance.failover_losses import StartedOperation, read_losses
from engine.store.server_connector import DatabaseServer, Failover
from engine.store.traversals.advance import Claim
from engine.types.contract import Call, Outcome
from engine.work.failover_check import FailoverCheck
from engine.work.nodes.traversal_finisher import TraversalFinisher
from engine.work.nodes.worker import Worker, WorkerSettings
from tests.support.idle_engine import NO_BACK_OFF, idle_engine, make_registry
from tests.support.program import PATIENCE, eventually
from tests.support.scripted_type import Thing, World

HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 27, tzinfo=UTC)
FAILOVER = Failover(DatabaseServer(1, 1, NOW), DatabaseServer(1, 2, NOW))
UNKNOWN = StartedOperation(
    Claim(UUID(int=1), 1, 1, 1), UUID(int=2), "p", "lost", "web", "Test::Thing", "create"
)
SET_POSITION = "update outbox_cursor set position = $1"
WAITING = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
"""
END_WAITING = """
select pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
"""
#: The promoted database lacks the last claim, and the step before it, which made the operation key.
LOSE_CLAIM = """
with lost as (
    update node set claim = claim - 1, operation_key = gen_random_uuid(), state = 'ready',
           wake_at = clock_timestamp()
     where state = 'running' returning stack_id, traversal
)
update traversal t set wake_at = clock_timestamp() from lost
 where t.stack_id = lost.stack_id and t.number = lost.traversal
"""


async def execute(database: Database, statement: str, *values: object) -> None:
    async with database.connection() as conn:
        await conn.execute(statement, *values)


async def compare(check: FailoverCheck, database: Database) -> None:
    async with database.connection() as conn:
        await check.compare(conn, FAILOVER)


async def losses(database: Database) -> list[tuple[int, list[str]]]:
    async with database.connection() as conn:
        found = await read_losses(conn, HOUR)
    return [(one.commits, [named["stack"] for named in one.operations]) for one in found]


async def test_a_loss_that_could_not_be_recorded_is_recorded_later(database: Database) -> None:
    started = [UNKNOWN]

    def stop(operations: Sequence[StartedOperation]) -> None:
        for one in operations:
            started.remove(one)

    check = FailoverCheck(database, "one", started=lambda: started, stop=stop)
    await execute(database, SET_POSITION, 10)
    await check.note_position()
    await execute(database, SET_POSITION, 7)
    await execute(database, "alter table failover_loss rename to hidden")
    with capture_logs() as logs, pytest.raises(asyncpg.UndefinedTableError):
        await compare(check, database)
    assert started == []
    events = [(one["event"], one.get("at_least"), one.get("stack")) for one in logs]
    assert events == [
        ("failover.commits_lost", 3, None),
        ("failover.operation_unknown", None, "lost"),
    ]
    await execute(database, "alter table hidden rename to failover_loss")
    await compare(check, database)
    assert await losses(database) == [(3, ["lost"])]
    await compare(check, database)
    assert await losses(database) == [(3, ["lost"])]


async def test_a_position_that_is_read_during_a_failover_is_no_second_loss(
    database: Database,
) -> None:
    check = FailoverCheck(database, "one", started=list, stop=len)  # type: ignore[arg-type]
    await execute(database, SET_POSITION, 10)
    await check.note_position()

    async def blocked() -> bool:
        async with database.connection() as conn:
            return bool(await conn.fetchval(WAITING))

    async with asyncio.timeout(PATIENCE), database.connection() as conn:
        async with conn.transaction():
            await conn.execute("lock table outbox_cursor in access exclusive mode")
            noting = asyncio.create_task(check.note_position())
            await eventually(blocked)
            await conn.execute(SET_POSITION, 7)
            await check.compare(conn, FAILOVER)
        await noting
    await compare(check, database)
    assert await losses(database) == [(3, [])]


@dataclass
class Calls:
    """Of creates: how many began, and how many were cancelled. may_end: lets them end."""

    begun: int = 0
    cancelled: int = 0
    ended: int = 0
    may_end: asyncio.Event = field(default_factory=asyncio.Event)


class HeldThing(Thing):
    """Its create waits until it may end."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.calls = Calls()

    async def create(self, call: Call) -> Outcome:  # type: ignore[override]
        self.calls.begun += 1
        try:
            await self.calls.may_end.wait()
        except asyncio.CancelledError:
            self.calls.cancelled += 1
            raise
        self.calls.ended += 1
        return super().create(call)


@asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(worker.run(stop))
    try:
        yield
    finally:
        stop.set()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_an_operation_whose_lost_claim_is_taken_again_survives_the_next_failover(
    database: Database,
) -> None:
    """The promoted database lacks its last claim, so that the next one has the same number."""
    thing = HeldThing(World())
    calls = thing.calls
    engine = idle_engine(database, thing)
    worker = Worker(
        database,
        make_registry(thing),
        WorkerSettings(
            batch=10, workers=1, lease=HOUR, poll=timedelta(seconds=1), operations=10,
            drain=timedelta(0), default_timeout=HOUR, retrying=NO_BACK_OFF,
        ),
        name="one", new_id=uuid4, finisher=TraversalFinisher(uuid4, engine.stacks.end_traversal),
    )  # fmt: skip
    check = FailoverCheck(database, "one", started=lambda: worker.started, stop=worker.abandon)

    async def begun_twice() -> bool:
        worker.wake()
        return calls.begun == 2

    async def written() -> bool:
        worker.wake()
        async with database.connection() as conn:
            return not await conn.fetchval("select count(*) from node where state = 'running'")

    template = {"heat_template_version": "2018-08-31", "resources": {"a": {"type": "Test::Thing"}}}
    await engine.stacks.create("p", StackRequest(name="s", template=template))
    async with working(worker):

        async def begun() -> bool:
            return calls.begun == 1

        await eventually(begun)
        (first,) = worker.started
        await execute(database, LOSE_CLAIM)
        await compare(check, database)
        await eventually(begun_twice)
        (second,) = worker.started
        assert second.claim == first.claim and second.operation_key != first.operation_key
        await compare(check, database)
        assert await losses(database) == [(0, ["s"])]
        async with database.transaction() as conn:
            await conn.execute("lock table node in access exclusive mode")
            calls.may_end.set()
            with capture_logs() as logs:
                await eventually(lambda: _interrupt_write(conn, logs))
        await eventually(written)
    assert (calls.begun, calls.cancelled, calls.ended) == (2, 1, 1)


async def _interrupt_write(conn: Connection, logs: Sequence[Mapping[str, object]]) -> bool:
    """End the connections that wait for a lock, until one of them was to write a step."""
    await conn.execute(END_WAITING)
    return any((one["event"], one.get("steps")) == ("worker.unavailable", 1) for one in logs)
