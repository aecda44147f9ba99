"""Races between two commits, replayed step by step: no event is lost."""

from uuid import uuid4

import pytest

from engine.principal import named
from engine.service import Engine, StackRequest
from engine.store.database import Database
from tests.integration.nested.test_lives import INNER, nested
from tests.support.front import a_front, a_registry
from tests.support.hands import Hands
from tests.support.program import template

STATES = """
select s.path, t.state from stack s join traversal t on t.stack_id = s.id
 where t.number = s.traversal order by s.path
"""


@pytest.fixture
def front(database: Database) -> Engine:
    return a_front(database)


def hands_of(front: Engine, database: Database) -> Hands:
    return Hands(
        database,
        a_registry(),
        front.stacks.end_traversal,
        uuid4,
        run_nested=front.nested.run_operation,
    )


async def states(database: Database) -> dict[str, str]:
    async with database.connection() as conn:
        return {row["path"]: row["state"] for row in await conn.fetch(STATES)}


async def finish(hands: Hands) -> None:
    """Run all operations that are ready."""
    while await hands.claim(10) or hands.jobs:
        while hands.jobs:
            await hands.carry_out(0)


async def begun(front: Engine, database: Database) -> Hands:
    """A worker that has started the nested stack and has not saved its wait yet."""
    await front.stacks.create(
        "p",
        StackRequest(name="s", template=template({"web": nested()}), files={"inner.yaml": INNER}),
    )
    mine = hands_of(front, database)
    await mine.claim(1)
    await mine.carry_out(0)
    return mine


async def test_an_end_that_comes_before_it_is_waited_for(front: Engine, database: Database) -> None:
    mine, other = await begun(front, database), hands_of(front, database)
    await finish(other)
    assert await states(database) == {"": "running", "web": "complete"}
    await finish(mine)
    assert await states(database) == {"": "complete", "web": "complete"}


async def test_who_dies_before_it_is_waited_for_begins_nothing_twice(
    front: Engine, database: Database
) -> None:
    mine, other = await begun(front, database), hands_of(front, database)
    mine.crash()
    async with database.connection() as conn:
        await conn.execute("update node set wake_at = now() where state = 'running'")
        await conn.execute("update traversal set wake_at = now() where wake_at is not null")
    await finish(other)
    assert await states(database) == {"": "complete", "web": "complete"}


async def test_a_stop_that_comes_before_it_is_waited_for(front: Engine, database: Database) -> None:
    mine = await begun(front, database)
    async with database.connection() as conn:
        stack_id = await conn.fetchval("select id from stack where path = ''")
    await front.stacks.stop("p", stack_id, named("ann"))
    await finish(mine)
    assert await states(database) == {"": "stopped", "web": "stopped"}
    async with database.connection() as conn:
        left = await conn.fetchval("select count(*) from node where state in ('running', 'parked')")
    assert left == 0


async def test_a_step_that_comes_too_late_is_not_begun(front: Engine, database: Database) -> None:
    await front.stacks.create(
        "p",
        StackRequest(name="s", template=template({"web": nested()}), files={"inner.yaml": INNER}),
    )
    mine = hands_of(front, database)
    await mine.claim(1)
    async with database.connection() as conn:
        stack_id = await conn.fetchval("select id from stack where path = ''")
    await front.stacks.stop("p", stack_id, named("ann"))
    await finish(mine)
    assert await states(database) == {"": "stopped"}
