"""Fairness: who has much to do does not keep the others waiting."""

from collections import Counter
from datetime import timedelta

from engine.service import Engine, StackRequest
from engine.store.advance import Advanced, advance
from engine.store.connection import Connection
from engine.store.database import Database
from tests.support.front import a_front
from tests.support.program import Json, resource, template

BATCH = 250


def wide(count: int) -> Json:
    return template({f"r{n}": resource() for n in range(count)})


async def make(engine: Engine, project: str, name: str, count: int) -> None:
    await engine.stacks.create(project, StackRequest(name=name, template=wide(count)))


async def calls_until(conn: Connection, project: str, name: str) -> int:
    """How many batches are claimed before the first node of a stack is among them."""
    after = ""
    for call in range(1, 100):
        got: Advanced = await advance(conn, "w", timedelta(minutes=5), BATCH, [], after)
        after = got.turn or after
        if any((work.project, work.stack_name) == (project, name) for work in got.work):
            return call
        assert len(got.work) == BATCH
    raise AssertionError("it never had its turn")


async def test_a_project_with_ten_thousand_in_forty_stacks_delays_another_by_one_batch(
    database: Database,
) -> None:
    engine = a_front(database)
    for number in range(40):
        await make(engine, "large", f"s{number}", BATCH)
    await make(engine, "small", "one", 1)
    async with database.connection() as conn:
        assert await calls_until(conn, "small", "one") <= 2


async def test_a_stack_of_ten_thousand_delays_another_of_its_project_by_one_batch(
    database: Database,
) -> None:
    engine = a_front(database)
    await make(engine, "p", "large", 10_000)
    await make(engine, "p", "one", 1)
    async with database.connection() as conn:
        assert await calls_until(conn, "p", "one") <= 2


async def test_more_projects_than_a_call_looks_at_all_have_their_turn(database: Database) -> None:
    engine = a_front(database)
    names = [f"p{number:02}" for number in range(30)]
    for project in names:
        await make(engine, project, "s", 20)
    served: set[str] = set()
    after = ""
    async with database.connection() as conn:
        for _ in range(3):
            got = await advance(conn, "w", timedelta(minutes=5), 20, [], after)
            after = got.turn or after
            served |= {work.project for work in got.work}
    assert served == set(names)


async def test_the_turn_goes_round_and_what_is_not_due_has_none(database: Database) -> None:
    engine = a_front(database)
    await make(engine, "a", "s", 1)
    await make(engine, "z", "s", 1)
    async with database.connection() as conn:
        got = await advance(conn, "w", timedelta(minutes=5), 10, [], "m")
        assert {work.project for work in got.work} == {"a", "z"}
        again = await advance(conn, "w", timedelta(minutes=5), 10, [], "m")
        assert again.work == [] and again.turn is None


async def test_one_call_serves_every_project_before_the_second_stack_of_any(
    database: Database,
) -> None:
    """There is room for all nodes, but not for all stacks: a call looks at 16 of them."""
    engine = a_front(database)
    for number in range(20):
        await make(engine, "large", f"s{number}", 1)
    for project in ("m", "small"):
        await make(engine, project, "one", 1)
    async with database.connection() as conn:
        got = await advance(conn, "w", timedelta(minutes=5), BATCH, [])
    counted = Counter(work.project for work in got.work)
    assert counted == {"large": 14, "m": 1, "small": 1}
