"""Plans of the statements that changes, answers, deliveries and lists execute, at 10,000 rows: none
reads a table from end to end. Planned for any values and for given ones, with and without table
statistics, on the oldest supported PostgreSQL and on the embedded one.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from engine.store.connection import Connection
from engine.store.database import open_database, transaction_settings
from engine.store.hooks.drift_hooks import READ_DEPENDENTS
from engine.store.hooks.hook_lists import READ_STACK_HOOKS
from engine.store.resources.resource_reads import READ_OPERATIONS, READ_RESOURCES, READ_RULES
from engine.store.resources.resource_rows import REMOVE_REQUIREMENTS
from engine.store.schema.routine_versions import routines
from engine.store.stacks.events import LIST_EVENTS, STACK_TYPE
from engine.store.stacks.stack_lists import COUNT_SORTED, NEWEST_OF_ALL, OLDEST_OF_ALL
from tests.bench.hot_path import digests
from tests.integration.database.test_statements import FOUND
from tests.support.filled_tables import LARGE, fill
from tests.support.keys import KEYRING
from tests.support.plans import (
    can_be_planned,
    full_scans,
    keys_in_filters,
    plan,
    routine_statements,
    rows_examined,
)
from tests.support.postgres import TestServer
from tests.support.rows_read import without_statistics

ROOT = Path(__file__).parents[3]
TABLES = frozenset({
    "stack", "template", "traversal", "node", "resource", "hook", "decision", "event", "outbox",
    "delivery", "labelled_work", "credential", "stack_tag",
})  # fmt: skip
#: Modules that find objects by a part of a name or ID.
SEARCHES = frozenset({"engine.store.projects.id_prefixes", "engine.store.stacks.stack_search"})
PAGE_INDEXES = (
    "stack_by_age", "stack_by_change", "stack_by_name", "stack_listed", "stack_pkey", "stack_tag_pkey",
)  # fmt: skip
MODES = ("generic", "custom")
#: Statements that may read a table, and why.
READING: Mapping[str, str] = {
    "engine.store.audit.audit_log.STACKS": "reads all stacks with an entry, when a checkpoint is signed",
    "engine.store.stacks.stack_lists.SORTED": "list_stacks refuses it for more than MAX_SORTED_STACKS stacks",
    "engine.store.stacks.stack_lists.TOTAL": "counts all stacks, for with_count",
    "engine.store.traversals.end.CLAIM_ENDED": "a batch of any size, without statistics",
    "channels.store.publish.READ_SINCE": "reads all events since a time, for a redelivery",
}
#: Files with rules that stand in one place.
RULES = frozenset({
    "1_delivery_rules.sql", "1_event_id.sql", "1_hook_deadline.sql", "1_limits.sql",
    "1_node_rules.sql", "1_working_time.sql", "2_stack_matches.sql", "2_subscriptions_with_turns.sql",
})  # fmt: skip
#: The routines with planner settings of their own call the others.
CALLING = frozenset(
    {
        "accept_change",
        "advance",
        "claim_deliveries",
        "complete_traversals",
        "publish_outbox",
        "record_events",
        "stack_page",
        "start_traversal",
    }
)

#: Modules with statements of transactions that decide hooks (`BY_KEY` in engine/store/database.py).
ANSWERING = (
    "engine.store.hooks.locked_hooks.", "engine.store.stacks.stack_locks.",
    "engine.store.stacks.stack_tree.",
)  # fmt: skip
#: Functions in SQL that PostgreSQL plans at each call.
PLANNED_EACH_TIME = frozenset(
    {"delete_unused_credentials", "detach_stacks", "labelled_work_due_in", "time_labelled_work"}
)


@pytest_asyncio.fixture(
    loop_scope="module", scope="module", params=["never analysed", "analysed"]
)  # fmt: skip
async def filled(request: pytest.FixtureRequest, server: TestServer) -> AsyncIterator[Connection]:
    async with server.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await without_statistics(conn)
                await fill(conn)
                # Finds more: an index can hide that a statement reads a whole table.
                await conn.execute("set enable_seqscan = on")
                if request.param == "analysed":
                    await conn.execute("analyze")
                yield conn
        finally:
            await database.close()


@pytest_asyncio.fixture(loop_scope="module")
async def new(server: TestServer) -> AsyncIterator[Connection]:
    """A connection to the database of a new installation."""
    async with server.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                yield conn
        finally:
            await database.close()


@pytest.fixture(scope="module", params=["oldest", "embedded"])
def server(
    request: pytest.FixtureRequest, postgres: TestServer, oldest_postgres: TestServer
) -> TestServer:
    return oldest_postgres if request.param == "oldest" else postgres


pytestmark = pytest.mark.asyncio(loop_scope="module")


def hot_statements() -> dict[str, str]:
    modules = {path.removesuffix(".py").replace("/", ".") for path in digests(ROOT)}
    return {
        name: text
        for name, text in FOUND.items()
        if name.rpartition(".")[0] in modules | SEARCHES and can_be_planned(text)
    }


async def scans(
    conn: Connection, text: str, settings: list[str], modes: Sequence[str] = MODES
) -> set[str]:
    """settings: ``enable_seqscan=off``."""
    found: set[str] = set()
    async with conn.transaction():
        await apply_settings(conn, settings)
        for mode in modes:
            found |= set(full_scans(await plan(conn, text, mode), TABLES))
    return found


async def apply_settings(conn: Connection, settings: Sequence[str]) -> None:
    for one in settings:
        name, _, value = one.partition("=")
        await conn.execute("select set_config($1, $2, true)", name, value)


async def test_versions_differ(postgres: TestServer, oldest_postgres: TestServer) -> None:
    numbers = []
    for one in (oldest_postgres, postgres):
        async with one.administer() as conn:
            numbers.append(conn.get_server_version().major)
    assert numbers[0] == 15 < numbers[1]


async def test_no_statement_reads_a_whole_table(filled: Connection) -> None:
    statements = hot_statements()
    assert len(statements) > 140
    found = {
        name: sorted(read)
        for name, text in statements.items()
        if (read := await scans(filled, text, []))
    }
    assert {name: read for name, read in found.items() if name not in READING} == {}


async def test_no_statement_of_a_routine_reads_a_whole_table(filled: Connection) -> None:
    every = await routine_statements(filled)
    assert {one.routine for one in every if one.settings} == CALLING
    planned_once = [one for one in every if "plan_cache_mode=force_generic_plan" in one.settings]
    assert {one.routine for one in planned_once} == CALLING
    assert {one.routine for one in every} >= PLANNED_EACH_TIME
    inherited = next(one.settings for one in every if one.routine == "advance")
    assert len(every) > 30
    found = {
        f"{one.routine}, line {one.line}": sorted(read)
        for one in every
        if (read := await scans(filled, one.text, one.settings or inherited))
    }
    assert found == {}


#: Statements of routines that may read a whole table or index when it is nearly empty, and why.
READING_WHEN_EMPTY: Mapping[str, str] = {
    "add_nodes": "the clean-up of replaced resources",
    "detach_stacks": "nested stacks whose owning resource is removed",
    "release_deliveries": "the index has only the deliveries that are being sent",
}


async def test_no_plan_for_empty_tables_scans_one_without_an_index(new: Connection) -> None:
    """Also if they were analysed while they were empty."""
    await new.execute("analyze")
    found = {
        name
        for name, text in hot_statements().items()
        for read in await scans(new, text, [], ["generic"])
        if read.startswith("Seq Scan")
    }
    assert found == set()


async def test_plans_made_in_a_new_installation_search_by_key(new: Connection) -> None:
    """A connection keeps its plans until the tables are analysed, while they grow."""
    every = await routine_statements(new)
    inherited = next(one.settings for one in every if one.routine == "advance")
    found = {
        one.routine: sorted(read)
        for one in every
        if (read := await scans(new, one.text, one.settings or inherited, ["generic"]))
    }
    answers = {
        name: sorted(read)
        for name, text in FOUND.items()
        if name.startswith(ANSWERING) and can_be_planned(text)
        if (read := await scans(new, text, inherited, ["generic"]))
    }
    assert {name: read for name, read in found.items() if name not in READING_WHEN_EMPTY} == {}
    assert answers == {}


#: Statements that may compare keys with each row, and why.
COMPARING_KEYS: Mapping[str, str] = {
    "accept_change": "an update of a part of a stack reads all its resources",
    "detach_stacks": "nested stacks whose owning resource is removed",
}


async def test_plans_made_in_a_new_installation_search_for_keys(new: Connection) -> None:
    """A scan that compares a row's key with each row of a stack reads the whole graph for one node:
    PostgreSQL 15 did so for each claimed node with hooks."""
    every = await routine_statements(new)
    inherited = next(one.settings for one in every if one.routine == "advance")
    statements = [(one.routine, one.text, one.settings or inherited) for one in every]
    statements += [
        (name, text, inherited)
        for name, text in FOUND.items()
        if name.startswith(ANSWERING) and can_be_planned(text)
    ]
    found = {
        name: read
        for name, text, settings in statements
        if (read := await compared_keys(new, text, settings))
    }
    assert {name: read for name, read in found.items() if name not in COMPARING_KEYS} == {}


async def compared_keys(conn: Connection, text: str, settings: Sequence[str]) -> list[str]:
    async with conn.transaction():
        await apply_settings(conn, settings)
        return keys_in_filters(await plan(conn, text, "generic"), TABLES)


async def test_rules_are_part_of_the_statements_of_routines(filled: Connection) -> None:
    """PostgreSQL replaces calls of these functions by their bodies: no row costs a call."""
    rules = {
        name
        for file in routines()
        if file.name in RULES
        for name in re.findall(r"create or replace function (\w+)", file.text)
    }
    rules.remove("stack_matches")  # its conditions cost more than a call
    assert len(rules) > 20
    called: dict[str, set[str]] = {}
    for one in await routine_statements(filled):
        async with filled.transaction():
            text = str(await plan(filled, one.text, "generic", verbose=True))
        for name in rules:
            if f"{name}(" in text:
                called.setdefault(f"{one.routine}, line {one.line}", set()).add(name)
    assert called == {}


#: Functions in SQL whose rows are numbered, which PostgreSQL does not make a part of the calling statement.
CALLED_WITH_ROWS = frozenset({"next_projects"})


async def test_functions_in_sql_are_planned_with_the_statements_of_routines(
    filled: Connection,
) -> None:
    """PostgreSQL 15 plans a function that it does not inline at each call, for example one with an
    argument that contains a query. That cost 2 ms for each claim."""
    functions = {row["name"] for row in await filled.fetch(FUNCTIONS_IN_SQL)}
    assert {"read_claimed", "due_traversals"} <= functions
    called: dict[str, set[str]] = {}
    for one in await routine_statements(filled):
        async with filled.transaction():
            found = await plan(filled, one.text, "generic")
        for name in functions_called(found[0]["Plan"]) & functions - CALLED_WITH_ROWS:
            called.setdefault(f"{one.routine}, line {one.line}", set()).add(name)
    assert called == {}


FUNCTIONS_IN_SQL = """
select p.proname::text as name from pg_proc p join pg_language l on l.oid = p.prolang
 where l.lanname = 'sql' and p.proretset and p.pronamespace = 'public'::regnamespace
"""


def functions_called(node: Any) -> set[str]:
    """The functions whose rows a plan scans."""
    own = {node["Function Name"]} if "Function Name" in node else set[str]()
    return own.union(*(functions_called(inner) for inner in node.get("Plans", ())))


async def test_hooks_of_a_stack_are_found_from_the_stacks_of_its_tree(filled: Connection) -> None:
    for mode in MODES:
        text = str(await plan(filled, READ_STACK_HOOKS, mode))
        assert "hook_by_stack" in text and "stack_by_parent" in text
        assert "hook_inbox" not in text, "all hooks of the project"


#: Of the resources and operations of a stack without its nested stacks.
OF_STACK = (LARGE, None, 0)
RESOURCES = 200


async def test_resources_of_a_stack_and_their_operations_are_found_by_key(
    filled: Connection,
) -> None:
    """Also those nested stacks and operations that they do not have."""
    for mode in MODES:
        await filled.execute(f"set plan_cache_mode = force_{mode}_plan")
        async with filled.transaction():
            for with_values in (False, True):
                values = (*OF_STACK, with_values)
                assert len(await filled.fetch(READ_RESOURCES, *values)) == RESOURCES
                assert await rows_examined(filled, READ_RESOURCES, *values) <= RESOURCES + 5
            assert await rows_examined(filled, READ_OPERATIONS, *OF_STACK) <= 5


#: Gives each event of the large stack, which has as many events as resources, a status and a name.
WITH_STATUS = """
update event set status = 'COMPLETE', action = 'CREATE', resource_name = 'r' || sequence
 where stack_id = $1
"""


@pytest.mark.parametrize("descending", [False, True], ids=["oldest first", "newest first"])
@pytest.mark.parametrize("after", [None, 100], ids=["first page", "page after an event"])
async def test_a_page_of_events_reads_no_other_events(
    filled: Connection, descending: bool, after: int | None
) -> None:
    """Of 200 events; for each of the page, at most the row of the stack beside it."""
    changes = filled.transaction()
    await changes.start()
    try:
        for name, value in transaction_settings(replan=True, by_index=True).items():
            await filled.execute("select set_config($1, $2, true)", name, value)
        await filled.execute(WITH_STATUS, LARGE)
        marker = after and await filled.fetchval(
            "select id from event where stack_id = $1 and sequence = $2", LARGE, after
        )
        values: tuple[Any, ...] = (
            LARGE, None, STACK_TYPE, False, descending, marker, 50, None, None, None, {}, after,
            after, None,
        )  # fmt: skip
        assert len(await filled.fetch(LIST_EVENTS, *values)) == 50
        assert await rows_examined(filled, LIST_EVENTS, *values) <= 2 * 50 + 5
    finally:
        await changes.rollback()


async def test_dependents_are_found_by_the_resources_that_they_require(filled: Connection) -> None:
    """Not by reading all resources of their stack."""
    for statement in (READ_RULES, READ_DEPENDENTS, REMOVE_REQUIREMENTS):
        for mode in MODES:
            assert "resource_by_requirement" in str(await plan(filled, statement, mode)), statement
    every = await routine_statements(filled)
    settings = next(one.settings for one in every if one.routine == "advance")
    (replaced,) = [one for one in every if "requires @>" in one.text]
    async with filled.transaction():
        for setting in settings:
            name, _, value = setting.partition("=")
            await filled.execute("select set_config($1, $2, true)", name, value)
        text = str(await plan(filled, replaced.text, "generic"))
    assert "resource_by_requirement" in text
    assert text.count("Index Name") == 2, "of the dependents and of their rows, both by key"


@pytest.mark.parametrize(
    ("routine", "indexes", "first"),
    [
        ("time_labelled_work", ["node_labelled", "labelled_work_pkey"], 1),
        ("labelled_work_due_in", ["labelled_work_due", "traversal_due"], 2),
        ("delete_unused_credentials", ["credential_pkey", "node_due", "node_succeeded"], 0),
    ],
    ids=["labels of stacks", "next due of labels", "credentials"],
)
async def test_what_a_commit_asks_about_a_stack_is_found_by_key(
    filled: Connection, routine: str, indexes: list[str], first: int
) -> None:
    """The first due node of each label, the first due work of labels, and the nodes that still need
    a credential. first: searches that read the first row of an index."""
    every = await routine_statements(filled)
    (one,) = [found for found in every if found.routine == routine]
    inherited = next(found.settings for found in every if found.routine == "advance")
    async with filled.transaction():
        for setting in inherited:
            name, _, value = setting.partition("=")
            await filled.execute("select set_config($1, $2, true)", name, value)
        text = str(await plan(filled, one.text, "generic"))
    assert [name for name in indexes if f"'{name}'" not in text] == []
    assert text.count("'Node Type': 'Limit'") == first


@pytest.mark.parametrize(
    ("statement", "index"),
    [(NEWEST_OF_ALL, "stack_by_age"), (OLDEST_OF_ALL, "stack_by_age"),
     (COUNT_SORTED, "stack_by_age")],
    ids=["newest of all", "oldest of all", "count"],
)  # fmt: skip
async def test_a_page_of_all_stacks_is_read_in_the_order_of_an_index(
    filled: Connection, statement: str, index: str
) -> None:
    for mode in MODES:
        text = str(await plan(filled, statement, mode))
        assert index in text, mode


async def test_a_page_of_stacks_is_read_in_the_order_of_an_index(filled: Connection) -> None:
    every = await routine_statements(filled)
    pages = [one for one in every if one.routine == "stack_page" and "order by" in one.text]
    used = []
    for one in pages:
        async with filled.transaction():
            for setting in one.settings:
                name, _, value = setting.partition("=")
                await filled.execute("select set_config($1, $2, true)", name, value)
            text = str(await plan(filled, one.text, "generic"))
        indexes = [name for name in PAGE_INDEXES if f"'{name}'" in text]
        used.append((indexes, "Sort" in text))
    assert used == [
        *[(["stack_tag_pkey"], True)] * 2, # the tag that occurs last
        *[(["stack_pkey", "stack_tag_pkey"], False)] * 2, # with tags, near the position
        *[(["stack_by_age"], False)] * 2, # the same, with deleted or nested ones
        (["stack_pkey"], True), # few with the tags
        *[(["stack_pkey", "stack_tag_pkey"], True)] * 2, # with tags
        (["stack_listed"], False), (["stack_by_age"], False), # newest
        (["stack_listed"], False), (["stack_by_age"], False), # oldest
        (["stack_by_name"], True), # named
        *[(["stack_by_name"], False)] * 3,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("select id from hook where reason = $1", "hook"),
        ("select id from hook where state = 'waiting' and reason = $1 order by deadline limit 1",
         "hook"),
        ("select max(time) from event", "event"),
        ("select r.name from unnest($1::uuid[]) k (id) join resource r on r.id = k.id", "resource"),
    ],
    ids=["no index", "filtered index", "aggregate", "join by a later column"],
)  # fmt: skip
async def test_a_statement_that_reads_a_whole_table_is_found(
    filled: Connection, statement: str, table: str
) -> None:
    found = await scans(filled, statement, [])
    assert found and all(f" on {table}" in one for one in found)


async def test_the_first_row_of_an_index_is_no_full_scan(filled: Connection) -> None:
    statement = "select min(wake_at) from traversal where wake_at is not null"
    assert await scans(filled, statement, ["enable_seqscan=off"]) == set()
