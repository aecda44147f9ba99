"""A converge with several rounds does not wait for an observation without limit."""

from datetime import timedelta
from uuid import UUID

import pytest

from engine.service import StackRequest
from engine.store.database import Database
from engine.store.observer import observation_schedule
from engine.store.observer.converge_requests import PendingConverge
from engine.work.observer.converge_rounds import OBSERVED_WITHIN, ConvergeRounds
from tests.support.idle_engine import idle_engine
from tests.support.program import resource, template

UPDATED = """
update traversal set state = 'complete', active_nodes = 0, ended_at = clock_timestamp() - $2::interval
 where stack_id = $1
"""
OBSERVING = """
insert into converge_request (stack_id, traversal, round, rounds, state, request, requested_by,
                              requested_by_id, encrypted)
values ($1, 1, 1, 3, 'observing', '{}', 'ann', 'ann', 'credential')
"""
#: $2: how long ago the stack was observed; null: it was not.
REPORTED = """
update observation_schedule
   set reported = array[stack_id], reported_at = clock_timestamp(),
       observed_at = clock_timestamp() - $2::interval
 where stack_id = $1
"""
READ = "select state, reason, encrypted from converge_request where stack_id = $1"


@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
async def test_a_converge_ends_if_the_stack_is_not_observed(database: Database, late: bool) -> None:
    async def start(_: PendingConverge) -> str:
        raise AssertionError("no round starts without an observation")

    stack_id: UUID = (
        await idle_engine(database).stacks.create(
            "p", StackRequest(name="s", template=template({"r": resource()}))
        )
    ).id
    since = OBSERVED_WITHIN + timedelta(minutes=1 if late else -5)
    async with database.connection() as conn:
        await conn.execute(UPDATED, stack_id, since)
        await conn.execute(OBSERVING, stack_id)
        await observation_schedule.request(conn, stack_id)
    await ConvergeRounds(database, start).continue_all()
    async with database.connection() as conn:
        row = await conn.fetchrow(READ, stack_id)
        assert row is not None
        events = await conn.fetch(
            "select type, reason from event where stack_id = $1 order by sequence desc limit 1",
            stack_id,
        )
    if not late:
        assert (row["state"], row["encrypted"]) == ("observing", b"credential")
        return
    assert (row["state"], row["encrypted"]) == ("incomplete", None)
    assert "the stack was not observed within 30 minutes" in row["reason"]
    assert events[0]["type"] == "headgate.stack.converge.failed"


async def test_reports_of_changes_do_not_delay_the_end_of_a_round(database: Database) -> None:
    """A service that reports changes all the time keeps an observation due."""

    async def start(_: PendingConverge) -> str:
        raise AssertionError("nothing differs")

    stack_id: UUID = (
        await idle_engine(database).stacks.create(
            "p", StackRequest(name="s", template=template({"r": resource()}))
        )
    ).id
    async with database.connection() as conn:
        await conn.execute(UPDATED, stack_id, timedelta(minutes=1))
        await conn.execute(OBSERVING, stack_id)
        await observation_schedule.request(conn, stack_id)
        await conn.execute(REPORTED, stack_id, None)
    await ConvergeRounds(database, start).continue_all()
    async with database.connection() as conn:
        row = await conn.fetchrow(READ, stack_id)
        assert row is not None and row["state"] == "observing"
        # The observation that was requested has ended, and another change was reported.
        await conn.execute(REPORTED, stack_id, timedelta(0))
        status = await observation_schedule.read_status(conn, stack_id)
        assert (status.due, status.requested) == (True, False)
    await ConvergeRounds(database, start).continue_all()
    async with database.connection() as conn:
        row = await conn.fetchrow(READ, stack_id)
        assert row is not None and (row["state"], row["encrypted"]) == ("complete", None)
