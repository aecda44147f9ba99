"""Fairness of claims between projects and between stacks."""

from collections import Counter
from datetime import timedelta

from engine.service import Engine, StackRequest
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.traversals.advance import AdvanceResult, advance
from tests.support.idle_engine import idle_engine
from tests.support.program import Json, resource, template

BATCH = 250


def wide(count: int) -> Json:
    return template({f"r{n}": resource() for n in range(count)})


async def make(engine: Engine, project: str, name: str, count: int) -> None:
    await engine.stacks.create(project, StackRequest(name=name, template=wide(count)))


async def calls_until(conn: Connection, project: str, name: str) -> int:
    """The number of batches until one contains a node of the stack."""
    turn = ""
    for call in range(1, 100):
        batch: AdvanceResult = await advance(conn, "w", timedelta(minutes=5), BATCH, [], turn)
        turn = batch.turn or turn
        if any((work.project, work.stack_name) == (project, name) for work in batch.work):
            return call
        assert len(batch.work) == BATCH
    raise AssertionError("it never had its turn")


async def test_a_project_with_ten_thousand_in_forty_stacks_delays_another_by_one_batch(
    database: Database,
) -> None:
    engine = idle_engine(database)
    for number in range(40):
        await make(engine, "large", f"s{number}", BATCH)
    await make(engine, "small", "one", 1)
    async with database.connection() as conn:
        assert await calls_until(conn, "small", "one") <= 2


async def test_a_stack_of_ten_thousand_delays_another_of_its_project_by_one_batch(
    database: Database,
) -> None:
    engine = idle_engine(database)
    await make(engine, "p", "large", 10_000)
    await make(engine, "p", "one", 1)
    async with database.connection() as conn:
        assert await calls_until(conn, "p", "one") <= 2


async def test_projects_take_turns_if_they_are_more_than_a_call_considers(
    database: Database,
) -> None:
    engine = idle_engine(database)
    names = [f"p{number:02}" for number in range(30)]
    for project in names:
        await make(engine, project, "s", 20)
    claimed: set[str] = set()
    turn = ""
    async with database.connection() as conn:
        for _ in range(3):
            batch = await advance(conn, "w", timedelta(minutes=5), 20, [], turn)
            turn = batch.turn or turn
            claimed |= {work.project for work in batch.work}
    assert claimed == set(names)


async def test_turns_wrap_around_and_skip_projects_without_due_nodes(database: Database) -> None:
    engine = idle_engine(database)
    await make(engine, "a", "s", 1)
    await make(engine, "z", "s", 1)
    async with database.connection() as conn:
        batch = await advance(conn, "w", timedelta(minutes=5), 10, [], "m")
        assert {work.project for work in batch.work} == {"a", "z"}
        second = await advance(conn, "w", timedelta(minutes=5), 10, [], "m")
        assert second.work == [] and second.turn is None


async def test_one_call_serves_every_project_before_the_second_stack_of_any(
    database: Database,
) -> None:
    """All nodes fit into the batch, but a call considers 16 stacks only."""
    engine = idle_engine(database)
    for number in range(20):
        await make(engine, "large", f"s{number}", 1)
    for project in ("m", "small"):
        await make(engine, project, "one", 1)
    async with database.connection() as conn:
        batch = await advance(conn, "w", timedelta(minutes=5), BATCH, [])
    counted = Counter(work.project for work in batch.work)
    assert counted == {"large": 14, "m": 1, "small": 1}
