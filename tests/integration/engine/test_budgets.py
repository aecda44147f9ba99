"""What one unit of work costs the database: statements, commits, written rows, and bytes of WAL.

Nothing runs beside the unit: no worker, no timer and no dispatcher. Each statement is one round
trip, and so are BEGIN and COMMIT. If a number grows, the product is slower; if it shrinks, record
the new number here.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from channels.store.delivery_results import write_results
from channels.store.digests import gather
from channels.store.publish import publish
from channels.store.records import PendingDelivery
from engine.principal import principal_of_name
from engine.service import Answer, Engine, StackRequest
from engine.store.connection import Connection, connect
from engine.store.database import Database, open_database
from engine.store.hooks.hook_lists import HookFilter
from engine.store.hooks.locked_hooks import FIND_HOOK, find_hook
from engine.store.records import StackRecord
from engine.store.stacks.events import EventFilter
from engine.store.stacks.stack_lists import StackFilter
from engine.words import AnswerChannel, Decision, Phase
from tests.support.deliveries import claim_deliveries, delivered
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.keys import KEYRING
from tests.support.manual_worker import ManualWorker
from tests.support.program import resource, template
from tests.support.rows_read import rows_read_so_far, without_statistics
from tests.support.statement_log import StatementLog, statement_log

RESOURCES, LARGE = 10, 200
OWNER = principal_of_name("ann")
HOOKS = {"hooks": [{"at": "*", "on": "pre-create"}]}
#: Rows that statements inserted, updated and deleted, in all tables.
WRITTEN = "select sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint from pg_stat_user_tables"
#: Transaction IDs that were assigned: only to transactions that write.
WRITERS = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
WAL = "select pg_current_wal_insert_lsn() - '0/0'"
SETTING = "select current_setting('full_page_writes')"


class Cost(NamedTuple):
    """round_trips: with BEGIN and COMMIT. commits: transactions that write. wal: bytes; in a budget,
    an upper bound."""

    round_trips: int
    commits: int
    rows: int
    wal: int


@dataclass
class Meter:
    """Measures what an action costs, over a connection that is not counted itself."""

    database: Database
    log: StatementLog
    conn: Connection

    async def cost(self, action: Callable[[], Awaitable[Any]]) -> Cost:
        rows, writers = await self._rows(), await self.conn.fetchval(WRITERS)
        self.log.entries.clear()
        wal = await self.conn.fetchval(WAL)
        await action()
        wal = int(await self.conn.fetchval(WAL) - wal)
        texts = self.log.texts()
        commits = await self.conn.fetchval(WRITERS) - writers
        return Cost(len(texts), commits, await self._rows() - rows, wal)

    async def rows_read(self) -> int:
        await self._rows()
        return (await rows_read_so_far(self.conn)).total()

    async def _rows(self) -> int:
        """A session reports its rows before it is ready for the next statement, if asked to;
        the database has one connection."""
        async with self.database.connection() as conn:
            await conn.execute("select pg_stat_force_next_flush()")
        return int(await self.conn.fetchval(WRITTEN) or 0)


@pytest.fixture
async def meter(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Meter]:
    conn = await connect(database_url)
    await without_statistics(conn)
    with statement_log(monkeypatch) as log:
        database = await open_database(database_url, size=1, keyring=KEYRING)
        try:
            yield Meter(database, log, conn)
        finally:
            await database.close()
            await conn.close()


@pytest.fixture
def engine(meter: Meter) -> Engine:
    return idle_engine(meter.database)


@pytest.fixture
def worker(meter: Meter, engine: Engine) -> ManualWorker:
    return ManualWorker(meter.database, make_registry(), engine.stacks.end_traversal, uuid4)


def request(name: str, value: str = "x", *, count: int = RESOURCES, **more: Any) -> StackRequest:
    resources = {f"r{n}": resource(value) for n in range(count)}
    return StackRequest(name=name, template=template(resources), **more)


def check(found: Cost, budget: Cost) -> None:
    """The bytes of WAL vary a little with the alignment of rows in pages."""
    assert found[:3] == budget[:3], found
    assert 0.85 * budget.wal <= found.wal <= budget.wal, found


async def test_full_pages_do_not_count(meter: Meter) -> None:
    """PostgreSQL writes a whole page to the WAL when it first changes after a checkpoint. The server
    of the tests does not, so that bytes depend on statements alone."""
    assert await meter.conn.fetchval(SETTING) == "off"


async def test_accept_a_create(meter: Meter, engine: Engine) -> None:
    await engine.stacks.create("p", request("warm"))
    found = await meter.cost(lambda: engine.stacks.create("p", request("s")))
    check(found, Cost(1, 1, 26, 15_500))


async def test_accept_a_create_with_tags(meter: Meter, engine: Engine) -> None:
    """One row more for each tag (migrations/0083_tags_of_stacks.sql)."""
    await engine.stacks.create("p", request("warm", tags=["a", "b"]))
    found = await meter.cost(lambda: engine.stacks.create("p", request("s", tags=["a", "b"])))
    check(found, Cost(1, 1, 28, 16_500))


async def test_accept_an_update(meter: Meter, engine: Engine, worker: ManualWorker) -> None:
    stacks = [(await engine.stacks.create("p", request(name))).id for name in ("warm", "s")]
    await worker.work()
    await engine.stacks.update("p", stacks[0], request("warm", "y"))
    found = await meter.cost(lambda: engine.stacks.update("p", stacks[1], request("s", "y")))
    check(found, Cost(10, 1, 27, 13_500))


async def test_accept_a_large_create(meter: Meter, engine: Engine) -> None:
    """Nodes and resources are stored with COPY: two rows each, and nothing else that grows. A COPY is
    two round trips."""
    await engine.stacks.create("p", request("warm", count=LARGE))
    found = await meter.cost(lambda: engine.stacks.create("p", request("s", count=LARGE)))
    check(found, Cost(8, 1, 2 * LARGE + 6, 260_000))


async def test_settle(meter: Meter, engine: Engine, worker: ManualWorker) -> None:
    """Claim all resources of a stack in one batch, and settle them in one batch; the
    end of the stack is one more statement."""
    await engine.stacks.create("p", request("warm"))
    await worker.work()
    await engine.stacks.create("p", request("s"))
    found = await meter.cost(lambda: worker.claim(2 * RESOURCES))
    check(found, Cost(1, 1, 23, 9_800))
    while worker.jobs:
        worker.operate(0)
    found = await meter.cost(lambda: worker.claim(2 * RESOURCES))
    check(found, Cost(2, 2, 37, 16_900))


async def test_a_stack_of_one(meter: Meter, engine: Engine, worker: ManualWorker) -> None:
    """From the request to CREATE_COMPLETE, with the publication of its events: everything that the
    database does for the smallest stack."""

    async def create(name: str) -> None:
        await engine.stacks.create("p", request(name, count=1))
        while await worker.claim(2 * RESOURCES):
            while worker.jobs:
                worker.operate(0)
        await quick_publish(meter.database)

    await create("warm")
    found = await meter.cost(lambda: create("s"))
    check(found, STACK_OF_ONE)


#: Accept, claim, settle, end, find that no work is left, and publish.
STACK_OF_ONE = Cost(6, 5, 28, 11_200)


async def test_delete(meter: Meter, engine: Engine, worker: ManualWorker) -> None:
    """Of a stack: accept it, claim all deletes in one batch, and settle them in one batch."""
    stacks = [(await engine.stacks.create("p", request(name))).id for name in ("warm", "s")]
    await worker.work()
    await engine.stacks.delete("p", stacks[0], OWNER)
    await worker.work()
    costs = [await meter.cost(lambda: engine.stacks.delete("p", stacks[1], OWNER))]
    for _ in range(2):
        costs.append(await meter.cost(lambda: worker.claim(2 * RESOURCES)))
        while worker.jobs:
            worker.operate(0)
    assert await worker.claim(2 * RESOURCES) == 0
    for found, budget in zip(costs, DELETE, strict=True):
        check(found, budget)


#: Accept, claim, settle and end.
DELETE = (Cost(10, 1, 16, 7_200), Cost(1, 1, 23, 10_100), Cost(11, 3, 39, 10_900))


async def test_settle_an_update(meter: Meter, engine: Engine, worker: ManualWorker) -> None:
    """Of all resources in place: claim them, begin their operations, settle them."""
    stacks = [(await engine.stacks.create("p", request(name))).id for name in ("warm", "s")]
    await worker.work()
    await engine.stacks.update("p", stacks[0], request("warm", "y"))
    await worker.work()
    await engine.stacks.update("p", stacks[1], request("s", "y"))
    costs = []
    for _ in range(3):
        costs.append(await meter.cost(lambda: worker.claim(2 * RESOURCES)))
        while worker.jobs:
            worker.operate(0)
    assert await worker.claim(2 * RESOURCES) == 0
    for found, budget in zip(costs, SETTLE_UPDATE, strict=True):
        check(found, budget)


#: Claim, begin, settle and end.
SETTLE_UPDATE = (Cost(1, 1, 11, 4_000), Cost(1, 1, 23, 10_200), Cost(2, 2, 37, 14_600))


@pytest.mark.parametrize("action", ["create", "update"])
async def test_a_step_does_not_write_the_definition_again(
    meter: Meter, engine: Engine, worker: ManualWorker, action: str
) -> None:
    """Claims and steps write as much for nodes with large definitions as for those with small ones
    (migrations/0065_node_columns.sql). The last step writes the properties of the resource."""
    steps = {"create": 1, "update": 2}[action]
    found = []
    for name, value in (("warm", "x"), ("small", "x"), ("large", "x" * 900)):
        stack = (await engine.stacks.create("p", request(name, value))).id
        if action == "update":
            await worker.work()
            await engine.stacks.update("p", stack, request(name, value + "y"))
        costs = []
        for _ in range(steps):
            costs.append((await meter.cost(lambda: worker.claim(2 * RESOURCES))).wal)
            while worker.jobs:
                worker.operate(0)
        await worker.work()
        found.append(costs)
    for small, large in zip(found[1], found[2], strict=True):
        assert abs(large - small) < 50 * RESOURCES, found


async def test_answer(meter: Meter, engine: Engine, worker: ManualWorker) -> None:
    await engine.stacks.create("p", request("s", environment=HOOKS))
    await worker.work()
    hooks = [one.id for one in await engine.reads.hooks("p", HookFilter())]
    answer = Answer(Decision.CONTINUE, OWNER, AnswerChannel.API)
    await engine.hooks.answer(hooks[0], answer, project="p")
    found = await meter.cost(lambda: engine.hooks.answer(hooks[1], answer, project="p"))
    check(found, Cost(10, 1, 7, 3_400))


async def test_finding_the_hook_of_an_answer_is_not_planned_each_time(meter: Meter) -> None:
    """PostgreSQL plans a statement five times before it compares that with one plan for all."""
    async with meter.database.connection() as conn:
        for _ in range(8):
            await find_hook(conn, uuid4(), "p")
        plans = await conn.fetchrow(PLANS, FIND_HOOK)
    assert plans and tuple(plans) == (5, 3)


PLANS = "select custom_plans, generic_plans from pg_prepared_statements where statement = $1"


async def test_the_claim_after_an_answer_begins_a_create(
    meter: Meter, engine: Engine, worker: ManualWorker
) -> None:
    """So two commits are between an answer and its operation: the answer's and the claim's."""
    await engine.stacks.create("p", request("s", environment=HOOKS))
    await worker.work()
    hooks = [one.id for one in await engine.reads.hooks("p", HookFilter())]
    answer = Answer(Decision.CONTINUE, OWNER, AnswerChannel.API)
    found = []
    for hook in hooks[:2]:
        await engine.hooks.answer(hook, answer, project="p")
        found.append(await meter.cost(lambda: worker.claim(1)))
        assert [job.node.phase for job in worker.jobs] == [Phase.EXECUTE]
        worker.operate(0)
        await worker.work()
    check(found[1], Cost(1, 1, 5, 2_000))


async def test_an_answer_reads_as_many_rows_among_many_hooks(
    meter: Meter, engine: Engine, worker: ManualWorker
) -> None:
    """Its statements are planned once for each connection, here while the tables are small."""
    answer = Answer(Decision.CONTINUE, OWNER, AnswerChannel.API)
    found = []
    for name, count in (("small", RESOURCES), ("large", LARGE)):
        await engine.stacks.create("p", request(name, count=count, environment=HOOKS))
        await worker.work()
        stack = await engine.reads.find_stack("p", name)
        waiting = HookFilter(stack_id=stack.id, limit=count)
        hooks = [one.id for one in await engine.reads.hooks("p", waiting)]
        assert len(hooks) == count
        await engine.hooks.answer(hooks[0], answer, project="p")
        before = await meter.rows_read()
        await engine.hooks.answer(hooks[1], answer, project="p")
        found.append(await meter.rows_read() - before)
    small, large = found
    assert large <= small < 60, found


async def test_deliver(meter: Meter) -> None:
    """Publish, claim and settle the delivery of one event."""
    rows = EngineRows(meter.database)
    stack = await rows.stack("s")
    await rows.subscription("http://127.0.0.1:1/")
    costs = []
    for _ in range(2):
        await rows.record(stack, resource_event("a"))
        costs.append([await meter.cost(one) for one in delivery_steps(meter.database)])
    for found, budget in zip(costs[-1], DELIVERY, strict=True):
        check(found, budget)


async def test_gather_a_digest(meter: Meter) -> None:
    """A digest of any size is claimed in one statement."""
    rows = EngineRows(meter.database)
    stack = await rows.stack("s")
    digest = {"every": "1h", "at": None, "timezone": None}
    one = await rows.subscription("a@b.test", channel="email", ordered=False, digest=digest)
    gathered = []
    for count in (1, 40):
        for _ in range(count):
            await rows.record(stack, resource_event("a"))
        await publish(meter.database, horizon=horizon, limit=100)
        await rows.value("update delivery set digest_at = now(), digest_taken = false returning 1")
        taken = await meter.cost(lambda: gather(meter.database, one.id, [], lease=30.0))
        assert taken[:2] == GATHER, taken
        gathered.append(taken.rows)
    assert gathered == [1, 41]


async def test_publish(meter: Meter) -> None:
    """The event of a commit, without subscriptions; and nothing, which commits nothing."""
    rows = EngineRows(meter.database)
    stack = await rows.stack("s")
    costs = []
    for _ in range(2):
        await rows.record(stack, resource_event("a"))
        costs = [await meter.cost(partial(quick_publish, meter.database)) for _ in range(2)]
    check(costs[0], Cost(1, 1, 2, 500))
    assert costs[1] == Cost(1, 0, 0, 0)


async def quick_publish(database: Database) -> None:
    await publish(database, horizon=horizon, limit=100, quick=True)


def delivery_steps(database: Database) -> list[Callable[[], Awaitable[Any]]]:
    claimed: list[PendingDelivery] = []

    async def claim_one() -> None:
        claimed.extend(await claim_deliveries(database))

    async def write() -> None:
        assert await write_results(database, [delivered(one) for one in claimed], disable_after=9)

    return [lambda: publish(database, horizon=horizon, limit=100), claim_one, write]


def horizon(channel: str) -> float:
    """Seconds until a delivery of the channel is dead if all retries fail."""
    return 60.0


#: Publish, claim, settle.
#: Round trips and commits, with the lock of the subscription.
GATHER = (4, 1)
DELIVERY = (Cost(11, 2, 4, 2_000), Cost(2, 1, 1, 800), Cost(6, 1, 1, 600))


async def show(engine: Engine, stack: StackRecord) -> None:
    found = await engine.reads.find_stack("p", stack.name)
    await engine.reads.view(found, with_outputs=True)


READS: Mapping[str, Callable[[Engine, StackRecord], Awaitable[Any]]] = {
    "show": show,
    "list": lambda engine, stack: engine.reads.list_stacks("p", StackFilter(limit=20)),
    "resource": lambda engine, stack: engine.reads.resource(stack, "r1"),
    "resources": lambda engine, stack: engine.reads.resources(stack),
    "events": lambda engine, stack: engine.reads.events(stack, EventFilter(limit=20)),
    "hooks": lambda engine, stack: engine.reads.hooks("p", HookFilter(limit=20)),
}
#: Statements with BEGIN and COMMIT, and rows read in all tables: of one stack, of 20 stacks, of a
#: resource, of 10 resources, of 20 events, and of 10 hooks.
READ = {"show": (2, 6), "list": (1, 60), "resource": (4, 5), "resources": (2, 11),
        "events": (4, 121), "hooks": (4, 30)}  # fmt: skip


@pytest.mark.parametrize("unit", READS)
async def test_read(meter: Meter, engine: Engine, worker: ManualWorker, unit: str) -> None:
    """Among more stacks than are read. Nothing is written."""
    for number in range(22):
        await engine.stacks.create("p", request(f"s{number}"))
    await engine.stacks.create("p", request("held", environment=HOOKS))
    await worker.work()
    stack = await engine.reads.find_stack("p", "s1")
    await READS[unit](engine, stack)
    before = await meter.rows_read()
    found = await meter.cost(lambda: READS[unit](engine, stack))
    assert found == Cost(found.round_trips, 0, 0, 0)
    assert (found.round_trips, await meter.rows_read() - before) == READ[unit]
