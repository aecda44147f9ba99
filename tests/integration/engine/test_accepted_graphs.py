"""How a change stores its graph: a small one with the traversal, in one statement; a large one with
COPY. And when a create counts the stacks of its project."""

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from engine.errors import LimitReached
from engine.service import Engine, StackRequest
from engine.service.requests.quotas import COUNTED_FOR, Quotas, StackCounts
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.projects import quotas as store
from engine.store.traversals import start as traversal_start
from tests.support.idle_engine import idle_engine
from tests.support.program import Json, resource, template
from tests.support.statement_log import StatementLog, statement_log

#: Values that differ between two stacks with the same template: only whether they are null counts.
OWN = {
    "stack_id", "id", "resource_id", "replacement_id", "wake_at", "created_at", "updated_at",
    "started_at", "ended_at", "time", "working_time", "working_since", "digest", "data",
}  # fmt: skip
ENVIRONMENT = {"hooks": [{"at": "b", "on": "pre-create"}]}


def resources(value: str) -> Json:
    return {
        "a": resource(value, metadata={"key": ["v", None]}),
        "b": resource({"get_attr": ["a", "output"]}),
        "c": resource("c", depends_on="b", deletion_policy="Retain"),
    }


def comparable(table: str, column: str, value: Any) -> Any:
    if column in OWN or (table, column) == ("event", "physical_id"):
        return value is not None
    if (table, column) == ("resource", "requires"):
        return len(value)
    return value


async def stored_rows(conn: Connection, name: str) -> dict[str, list[Any]]:
    found = {}
    for table, order in (("node", "traversal, t.id"), ("resource", "name"), ("traversal", "number"),
                         ("event", "sequence"), ("archive_queue", "traversal")):  # fmt: skip
        rows = await conn.fetch(
            f"select t.* from {table} t join stack s on s.id = t.stack_id"
            f" where s.name = $1 order by t.{order}",
            name,
        )
        found[table] = [{key: comparable(table, key, value) for key, value in row.items()}
                        for row in rows]  # fmt: skip
    return found


async def changed_stack(engine: Engine, name: str) -> None:
    await engine.stacks.create(
        "p", StackRequest(name=name, template=template(resources("x")), environment=ENVIRONMENT)
    )
    stack = await engine.reads.find_stack("p", name)
    changed = StackRequest(name=name, template=template(resources("y")), environment=ENVIRONMENT)
    await engine.stacks.update("p", stack.id, changed)


async def test_small_and_large_graphs_are_stored_alike(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count(1)  # nodes are sorted by the IDs of their resources
    engine = idle_engine(database, new_id=lambda: UUID(int=next(numbers)))
    await changed_stack(engine, "small")
    monkeypatch.setattr(traversal_start, "STORED_AT_ONCE", 0)
    await changed_stack(engine, "large")
    async with database.connection() as conn:
        small, large = [await stored_rows(conn, name) for name in ("small", "large")]
    assert [len(small[table]) for table in ("node", "resource", "traversal")] == [6, 3, 2]
    for table, rows in small.items():
        for row, other in zip(rows, large[table], strict=True):
            for column in row:
                assert row[column] == other[column], (table, column)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatementLog]:
    with statement_log(monkeypatch) as statements:
        yield statements


def counts(log: StatementLog) -> int:
    return sum(text == " ".join(store.STACKS.split()) for text in log.texts())


async def insert_stacks(conn: Connection, first: int, last: int) -> None:
    """Root stacks, each with its first event."""
    await conn.execute(
        """
        with inserted as (
            insert into stack (id, project, name, owner, tags, disable_rollback, version, traversal)
            select gen_random_uuid(), 'p', 's' || n, 'ann', '{}', true, 1, 1
              from generate_series($1::integer, $2::integer) n returning id, project)
        insert into outbox (stack_id, project, first, last) select id, project, 1, 1 from inserted
        """,
        first,
        last,
    )


async def test_stacks_are_counted_only_near_the_quota_and_after_a_time(
    log: StatementLog, database: Database
) -> None:
    now, limit = 0.0, 3 * store.MARGIN
    quotas = Quotas(stacks_per_project=limit)
    checks = StackCounts(lambda: now)

    async def check(conn: Connection) -> int:
        last = "select coalesce(pg_sequence_last_value(pg_get_serial_sequence('outbox', 'id')), 0)"
        await checks.check(conn, "p", quotas, await conn.fetchval(last))
        await asyncio.sleep(0)  # asyncpg calls loggers soon, not at once
        return counts(log)

    async with database.transaction() as conn:
        await insert_stacks(conn, 1, 1)
        assert await check(conn) == 1
        assert await check(conn) == 1
        await insert_stacks(conn, 2, store.MARGIN)
        assert await check(conn) == 1, "1 + 199 + 2 * 200 are allowed"
        now += COUNTED_FOR
        assert await check(conn) == 2, "the count has expired"
        await insert_stacks(conn, store.MARGIN + 1, store.MARGIN + 1)
        assert await check(conn) == 3, "another create could exceed the quota"
        await insert_stacks(conn, store.MARGIN + 2, limit + 1)
        with pytest.raises(LimitReached):
            await check(conn)


async def test_a_create_far_below_the_quota_counts_no_stacks(
    log: StatementLog, database: Database
) -> None:
    engine = idle_engine(database)
    for name in ("a", "b", "c"):
        await engine.stacks.create(
            "p", StackRequest(name=name, template=template({"r": resource()}))
        )
    assert counts(log) == 1
