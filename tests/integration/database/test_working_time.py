"""Working time is computed by functions of the database only, which every statement calls."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from engine.store.database import Database
from engine.store.schema.routine_versions import routines
from tests.integration.database.test_statements import FOUND

NOW = datetime(2026, 1, 2, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)

#: Arithmetic with the columns, which only the functions may contain.
ARITHMETIC = re.compile(
    r"- *(?:\w+\.)?working_(?:since|time)\b|\bworking_(?:since|time) *[-+]"
    r"|\btime_limit *[-+]|[-+] *(?:\w+\.)?time_limit\b"
)


@pytest.mark.parametrize(
    ("state", "active", "blocked", "counts"),
    [
        ("running", 2, 1, True),
        ("running", 1, 1, False),
        ("running", 0, 0, False),
        ("ending", 2, 1, False),
        ("superseded", 2, 1, False),
        ("failed", 2, 1, False),
    ],
)
async def test_time_counts_while_an_active_node_is_not_blocked(
    database: Database, state: str, active: int, blocked: int, counts: bool
) -> None:
    text = "select working_time_since($1, $2, $3, $4)"
    since = await database.pool.fetchval(text, state, active, blocked, NOW)
    assert since == (NOW if counts else None)


@pytest.mark.parametrize(("since", "expected"), [(None, HOUR), (NOW - HOUR, 2 * HOUR)])
async def test_working_time_includes_the_current_period(
    database: Database, since: datetime | None, expected: timedelta
) -> None:
    found = await database.pool.fetchval("select working_time_at($1, $2, $3)", HOUR, since, NOW)
    assert found == expected


@pytest.mark.parametrize(
    ("since", "limit", "expected"),
    [
        (NOW, 3 * HOUR, NOW + 2 * HOUR),
        (NOW, HOUR / 2, NOW - HOUR / 2),
        (None, 3 * HOUR, None),
        (NOW, None, None),
    ],
)
async def test_the_timeout_is_reached_after_the_remaining_time(
    database: Database,
    since: datetime | None,
    limit: timedelta | None,
    expected: datetime | None,
) -> None:
    text = "select time_limit_at($1, $2, $3)"
    assert await database.pool.fetchval(text, HOUR, since, limit) == expected


@pytest.mark.parametrize(
    ("since", "nested", "expected"),
    [
        (None, HOUR / 2, HOUR),
        (None, 3 * HOUR, 3 * HOUR),
        # Without `since`, it is an hour less than at NOW.
        (NOW - HOUR, 3 * HOUR, 2 * HOUR),
        (NOW - HOUR, 1.5 * HOUR, HOUR),
    ],
)
async def test_the_working_time_of_a_parent_is_at_least_that_of_its_nested_stack(
    database: Database, since: datetime | None, nested: timedelta, expected: timedelta
) -> None:
    text = "select working_time_after_nested($1, $2, $3, $4)"
    assert await database.pool.fetchval(text, HOUR, since, nested, NOW) == expected


@pytest.mark.parametrize(
    ("state", "limit", "ends"),
    [
        ("ending", None, True),
        ("running", None, None),
        ("running", 3 * HOUR, False),
        ("running", 2 * HOUR, True),
        ("superseded", HOUR, False),
    ],
)
async def test_a_traversal_ends_without_nodes_or_at_its_limit(
    database: Database, state: str, limit: timedelta | None, ends: bool | None
) -> None:
    text = "select must_end($1, $2, $3, $4, $5)"
    assert await database.pool.fetchval(text, state, HOUR, NOW - HOUR, limit, NOW) is ends


def test_every_statement_calls_the_functions() -> None:
    texts = FOUND | {file.name: file.text for file in routines()}
    asking = {name for name, text in texts.items() if re.search(r"\bworking_time\w*\(", text)}
    assert {"4_update_traversals.sql", "4_start_traversal.sql"} < asking
    found = {name for name, text in texts.items() if ARITHMETIC.search(text)}
    assert found == set()
