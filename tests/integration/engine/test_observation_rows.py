"""What is due to be observed is found by key: the rows that the observer reads grow with what is due
and with the projects, not with the stacks, and those of a resource do not grow with its stack, also
without table statistics."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from engine.store.connection import Connection
from engine.store.database import Database, open_database, transaction_settings
from engine.store.observer import observation_schedule, observations
from engine.store.observer.observation_schedule import FinishedObservation
from engine.types.registry import TypeRegistry
from engine.work.claim_loop import BusyProjects
from engine.work.observer.observer import Observer
from tests.support.keys import KEYRING
from tests.support.postgres import TestServer
from tests.support.rows_read import FLUSH, rows_read_by, rows_read_so_far, without_statistics

#: Stacks of a batch, stacks that are due, and rounds.
BATCH, DUE, ROUNDS = 10, 10, 3
PROJECTS = 5
HOUR = timedelta(hours=1)
#: Stacks that are observed within a day. $1: how many.
FILL = """
with added as (
    insert into stack (id, project, name, owner, version, traversal)
    select gen_random_uuid(), 'p' || n % $2, 's' || gen_random_uuid(), 'o', 1, 1
      from generate_series(1, $1::integer) n returning id, project
)
insert into observation_schedule (stack_id, project, next_at, observed_at)
select id, project, now() + interval '1 hour' + random() * interval '1 day', now() from added
"""
MAKE_DUE = """
update observation_schedule set next_at = now() - interval '1s'
 where stack_id in (select stack_id from observation_schedule where project = 'p0' limit $1)
"""


async def rows_of_rounds(conn: Connection) -> int:
    """The rows that some rounds of the scheduler read: claims, their ends, and the next time."""

    async def run(conn: Connection) -> None:
        for _ in range(ROUNDS):
            claimed = await observation_schedule.claim(conn, BATCH, HOUR)
            assert len(claimed) == DUE
            await observation_schedule.finish(
                conn, [FinishedObservation(one, HOUR, 1, 0) for one in claimed]
            )
            assert await observation_schedule.until_next(conn) is not None
            await conn.execute(MAKE_DUE, DUE)
        assert len(await observation_schedule.claim(conn, BATCH, HOUR)) == DUE

    await conn.execute(MAKE_DUE, DUE)
    return await rows_read_by(conn, run)


#: A stack whose resources are complete. $1: its ID. $2: how many resources.
FILL_STACK = """
with added as (
    insert into stack (id, project, name, owner, version, traversal)
    values ($1::uuid, 'p', $1::uuid::text, 'o', 1, 1) returning id
), resources as (
    insert into resource (stack_id, id, name, type, action, status, reason, attributes, data,
                          metadata, digest, requires, physical_id)
    select id, gen_random_uuid(), 'r' || n, 't', 'CREATE', 'COMPLETE', '', '{}', '{}', '{}', 'd',
           '{}', 'x' || n from added cross join generate_series(1, $2::integer) n
    returning stack_id, id, name
)
insert into node (stack_id, traversal, id, resource_id, name, type, operation, direction, state,
                  phase, pending_dependencies, dependents, reads, breakpoints_hit, claim,
                  started_at)
select stack_id, 1, row_number() over (), id, name, 't', 'create', 'forward', 'done', 'execute', 0,
       '{}', '{}', '{}', 0, now() from resources
"""


@pytest.mark.parametrize("analysed", [False, True], ids=["new", "analysed"])
async def test_the_rows_that_are_read_for_a_resource_do_not_grow_with_its_stack(
    database: Database, analysed: bool
) -> None:
    found: list[float] = []
    async with database.connection() as conn:
        await without_statistics(conn)
        for size in (50, 500):
            stack_id = uuid4()
            await conn.execute(FILL_STACK, stack_id, size)
            if analysed:
                await conn.execute("analyze")

            async def read(conn: Connection, stack_id: UUID = stack_id, size: int = size) -> None:
                after = {stack_id: observation_schedule.FIRST}
                page = await observations.read_page(conn, after, "p", size, 1_000_000)
                assert len(page.resources) == size

            found.append(await rows_read_by(conn, read) / size)
    few, many = found
    assert many < 1.5 * few + 1


@pytest.mark.parametrize("analysed", [False, True], ids=["new", "analysed"])
async def test_the_rows_that_the_scheduler_reads_do_not_grow_with_the_stacks(
    postgres: TestServer, analysed: bool
) -> None:
    async with postgres.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await without_statistics(conn)
                for setting in transaction_settings(by_index=True).items():  # as the observer
                    await conn.execute("select set_config($1, $2, false)", *setting)
                found: list[int] = []
                for added in (500, 9_500):
                    await conn.execute(FILL, added, PROJECTS)
                    if analysed:
                        await conn.execute("analyze")
                    found.append(await rows_of_rounds(conn))
        finally:
            await database.close()
    few, many = found
    assert many < min(1.5 * few, ROUNDS * 50 * DUE)


async def _schedule_rows_read(database: Database) -> int:
    """Rows of the schedule that the session of the only connection has read."""
    async with database.connection() as conn:
        await conn.execute(FLUSH)
    async with database.connection() as conn:
        return (await rows_read_so_far(conn))["observation_schedule"]


async def test_an_observer_that_claims_reads_no_other_stacks_of_the_project(
    postgres: TestServer,
) -> None:
    """In a new installation, whose tables were never analysed."""
    async with postgres.new_database() as url:
        database = await open_database(url, size=1, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await without_statistics(conn)
                await conn.execute(FILL, 10_000, 1)
                await conn.execute(MAKE_DUE, DUE)
            observer = Observer(database, TypeRegistry([]))
            before = await _schedule_rows_read(database)
            claimed = await observer._claim(BusyProjects())
            assert claimed is not None and len(claimed) == DUE
            assert await _schedule_rows_read(database) - before < 50 * DUE
        finally:
            await database.close()


async def test_two_observers_claim_different_whole_batches(database: Database) -> None:
    """The second one does not get what the first one has left of its batch: each batch of stacks
    reads the lists of its services once."""
    async with database.connection() as conn:
        await conn.execute(FILL, 3 * BATCH, 1)
        await conn.execute(MAKE_DUE, 2 * BATCH)
    async with database.transaction() as one, database.transaction() as other:
        first = await observation_schedule.claim(one, BATCH, HOUR)
        second = await observation_schedule.claim(other, BATCH, HOUR)
    assert len(first) == len(second) == BATCH
    assert not {found.stack_id for found in first} & {found.stack_id for found in second}
