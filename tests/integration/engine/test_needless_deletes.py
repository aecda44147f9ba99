"""Deletes that an update plans in case its resources are replaced: only those with work are claimed."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from engine.service import Engine, StackRequest
from engine.store.database import Database
from engine.store.maintenance.invariants import find_violations
from engine.store.traversals.advance import AdvanceResult
from engine.words import Json
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker
from tests.support.program import resource, template

NODES = "select count(*) from node where stack_id = $1 and traversal = 2 and operation = 'delete'"
ENDED = f"{NODES} and state = 'done' and ended_at is not null and wake_at is null"
STATE = "select state from traversal where stack_id = $1 and number = 2"


class Recorder(ManualWorker):
    """deletes: the names of resources whose deletes it has claimed."""

    deletes: set[str]

    async def _prepare(self, batch: AdvanceResult) -> None:
        self.deletes |= {work.name for work in batch.work if work.operation == "delete"}
        await super()._prepare(batch)


@pytest.fixture
def engine(database: Database) -> Engine:
    return idle_engine(database)


@pytest.fixture
def worker(database: Database, engine: Engine) -> Recorder:
    worker = Recorder(database, make_registry(), engine.stacks.end_traversal, uuid4)
    worker.deletes = set()
    return worker


async def update(engine: Engine, worker: Recorder, before: Json, after: Json) -> UUID:
    stack = await engine.stacks.create("p", StackRequest(name="s", template=template(before)))
    await worker.work()
    await engine.stacks.update("p", stack.id, StackRequest(name="s", template=template(after)))
    await worker.work()
    return stack.id


async def check_complete(database: Database, stack: UUID, deletes: int) -> None:
    async with database.connection() as conn:
        assert await conn.fetchval(STATE, stack) == "complete"
        assert await conn.fetchval(NODES, stack) == await conn.fetchval(ENDED, stack) == deletes
        assert await find_violations(conn) == {}


def chain(count: int, value: str) -> dict[str, Any]:
    return dict(_chain(count, value))


def _chain(count: int, value: str) -> Iterator[tuple[str, Json]]:
    for number in range(count):
        after = {"depends_on": f"r{number - 1}"} if number else {}
        yield f"r{number}", resource(value, **after)


async def test_updates_in_place_claim_no_delete(
    database: Database, engine: Engine, worker: Recorder
) -> None:
    stack = await update(engine, worker, chain(5, "a"), chain(5, "b"))
    await check_complete(database, stack, 5)
    assert worker.deletes == set()


async def test_only_the_delete_of_a_replaced_resource_is_claimed(
    database: Database, engine: Engine, worker: Recorder
) -> None:
    """The deletes of those that use it are done before, and of those that it uses after."""
    after = chain(5, "b")
    after["r2"]["properties"]["update_replace"] = True
    stack = await update(engine, worker, chain(5, "a"), after)
    await check_complete(database, stack, 5)
    assert worker.deletes == {"r2"}


async def test_after_a_hundred_deletes_without_work_one_is_claimed(
    database: Database, engine: Engine, worker: Recorder
) -> None:
    """So no transaction releases more levels of a deep graph."""
    stack = await update(engine, worker, chain(150, "a"), chain(150, "b"))
    await check_complete(database, stack, 150)
    assert worker.deletes == {"r50"}
