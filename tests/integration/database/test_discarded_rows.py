"""Each statement finds its rows by key: it discards few of the rows that it reads, and reads few more
than it returns.

Each is executed with sample arguments on a database with 10,000 rows in each table, by plans for any
arguments and for these, with and without table statistics, on the oldest supported PostgreSQL and on the
embedded one. A join by a part of a key, a filter after an index, and a hash join of a whole
table all show in the counts. `statement_reads.py` names statements that read more, with the reasons.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncpg
import pytest
import pytest_asyncio

from engine.store.connection import Connection
from engine.store.database import open_database
from tests.integration.database.statement_reads import (
    ARGUMENTS,
    NOT_EXECUTED,
    OF_A_STACK,
    OF_MANY,
    RARE,
    SETTINGS,
)
from tests.integration.database.test_statements import FOUND
from tests.support.executed_plans import (
    RowCounts,
    accept_sample_arguments,
    count_rows,
    largest,
)
from tests.support.filled_tables import fill
from tests.support.keys import KEYRING
from tests.support.plans import can_be_planned, routine_statements
from tests.support.postgres import TestServer
from tests.support.rows_read import without_statistics
from tests.support.sample_arguments import SampleArguments

pytestmark = pytest.mark.asyncio(loop_scope="module")
MODES = ("generic", "custom")
#: Rows that a statement may read and discard, and rows that it may read beside four times those that
#: it returns.
MAX_DISCARDED, MAX_READ = 20, 40
#: Modules with statements that read the templates of many stacks, one of each.
LISTS = "engine.store.stacks.stack_lists."
#: The same for statements that read the rows of one stack, which has 200 in each table.
MAX_OF_STACK = 800


@dataclass
class Measured:
    """The counts of one statement. worst: those with most discarded rows. templates: the largest
    number of templates that it reads."""

    worst: RowCounts
    read: int = 0
    templates: int = 0
    unused: set[str] = field(default_factory=set)

    @property
    def discarded(self) -> int:
        return self.worst.discarded.total()

    def reads_more(self, most: int, beside: int) -> bool:
        return self.discarded > most or self.read > beside

    def description(self) -> list[str]:
        return [f"read {self.read} beside the result", *largest(self.worst.discarded)]


@dataclass
class Measurements:
    counts: dict[str, Measured] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, found: RowCounts) -> None:
        beside = found.read - 4 * found.returned
        known = self.counts.setdefault(name, Measured(found, beside, unused=set(found.unused)))
        if found.discarded.total() > known.discarded:
            known.worst = found
        known.read = max(known.read, beside)
        known.templates = max(known.templates, found.templates)
        known.unused &= found.unused


@asynccontextmanager
async def filled_database(url: str) -> AsyncIterator[Connection]:
    database = await open_database(url, keyring=KEYRING)
    try:
        async with database.connection() as conn:
            await conn.execute("set session_replication_role = replica")
            # Finds more: an index can hide that a statement reads a whole table.
            await conn.execute("set enable_seqscan = on")
            yield conn
    finally:
        await database.close()


async def fill_without_statistics(conn: Connection) -> None:
    await without_statistics(conn)
    await fill(conn)
    await accept_sample_arguments(conn)


#: The mistakes that the counts must show.
PLANTED = {
    "planted: a filter after a part of a key": """
        select n.state from unnest($1::uuid[], $2::integer[], $3::integer[]) k (stack_id, traversal, id)
         cross join lateral (select * from node
                              where stack_id = k.stack_id and traversal = k.traversal offset 0) n
         where n.id = k.id
    """,
    "planted: a filter of a join": """
        select n.state from unnest($1::uuid[], $2::integer[], $3::integer[]) k (stack_id, traversal, id)
          join (select * from node where stack_id = $4 offset 0) n
            on n.traversal = k.traversal and n.id between k.id and k.id
    """,
    "planted: a join of a whole table": """
        select r.name from (select * from resource offset 0) r
          join unnest($1::uuid[]) k (id) on r.stack_id = k.id and r.id = k.id
    """,
    "planted: a time that changes within the statement": """
        select id from hook where state = 'waiting' and deadline < clock_timestamp() - $1::interval
         order by deadline limit 1
    """,
    "planted: a sort before a limit": """
        select id from delivery where subscription_id = any ($1::uuid[]) or project = $2
         order by event_id limit 1
    """,
}  # fmt: skip


async def statements_of(conn: Connection) -> Iterator[tuple[str, str, list[str]]]:
    """Name, text and settings of each statement of a hot path, also of those in routines."""
    routines = await routine_statements(conn)
    inherited = next(one.settings for one in routines if one.routine == "advance")
    found = [
        (name, text, settings_of(name))
        for name, text in FOUND.items()
        if not name.startswith(tuple(RARE))
    ]
    found += [(name, text, []) for name, text in PLANTED.items()]
    numbers: dict[str, int] = {}
    for one in routines:
        numbers[one.routine] = number = numbers.get(one.routine, 0) + 1
        found.append((f"{one.routine} {number}", one.text, one.settings or inherited))
    return (one for one in found if can_be_planned(one[1]))


def settings_of(name: str) -> list[str]:
    """The settings of the transactions that execute it."""
    found = SETTINGS.get(name) or SETTINGS.get(f"{name.rpartition('.')[0]}.", {})
    return [f"{setting}={value}" for setting, value in found.items()]


def modes(settings: Sequence[str]) -> Sequence[str]:
    """Those of the settings, or both."""
    named = [one.rpartition("_plan")[0] for one in settings if one.startswith("plan_cache_mode=")]
    return [one.partition("force_")[2] for one in named] or MODES


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def measured(postgres: TestServer, oldest_postgres: TestServer) -> Measurements:
    found = Measurements()
    for server in (oldest_postgres, postgres):
        async with server.new_database() as url:
            async with filled_database(url) as conn:
                await fill_without_statistics(conn)
                await measure(conn, found)
                await conn.execute("analyze")
            async with filled_database(url) as conn:
                await measure(conn, found)
    return found


async def measure(conn: Connection, found: Measurements) -> None:
    arguments = SampleArguments(conn)
    for name, text, settings in await statements_of(conn):
        given = ARGUMENTS.get(name, {})
        for mode in modes(settings):
            try:
                rows = await count_rows(
                    conn, text, arguments, mode=mode, settings=settings, given=given
                )
            except asyncpg.PostgresError as error:
                found.errors[name] = f"{type(error).__name__}: {error}"
                break
            found.add(name, rows)


async def test_each_statement_finds_its_rows_by_key(measured: Measurements) -> None:
    assert len(measured.counts) > 700
    found = {
        name: one.description()
        for name, one in measured.counts.items()
        if one.reads_more(MAX_DISCARDED, MAX_READ)
    }
    allowed = OF_A_STACK.keys() | OF_MANY.keys() | PLANTED.keys()
    assert {name: read for name, read in found.items() if name not in allowed} == {}
    assert PLANTED.keys() - found.keys() == set(), "mistakes that the counts do not show"


async def test_what_reads_a_stack_reads_no_other_stack(measured: Measurements) -> None:
    found = {
        name: measured.counts[name].description()
        for name in OF_A_STACK
        if measured.counts[name].reads_more(MAX_OF_STACK, MAX_OF_STACK)
    }
    assert found == {}


async def test_a_template_is_not_read_for_each_resource(measured: Measurements) -> None:
    """It has the definitions of all of them, and is decompressed for each read."""
    found = {
        name: one.templates
        for name, one in measured.counts.items()
        if one.templates > MAX_READ and not name.startswith(LISTS)
    }
    assert found == {}


async def test_reasons_name_statements(measured: Measurements) -> None:
    assert {*OF_A_STACK, *OF_MANY, *ARGUMENTS} - measured.counts.keys() == set()
    assert OF_A_STACK.keys() & OF_MANY == set()
    assert [one for one in RARE if not any(name.startswith(one) for name in FOUND)] == []


async def test_each_statement_is_executed(measured: Measurements) -> None:
    """Or only inserts rows that it is given, which the sample arguments have already."""
    assert measured.errors.keys() - NOT_EXECUTED == set(), measured.errors
    assert set(NOT_EXECUTED) - measured.errors.keys() == set()
