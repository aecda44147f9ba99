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
    r"- *(?:\w+\.)?working_since\b|\bworking_since *\+|\bworked *[-+<>](?!= p_)"
)
#: The parent's working time gets the surplus of its nested stack.
EXCEPTIONS = {"engine.store.traversals.nested_stacks.UPDATE_PARENT_TIME"}


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


def test_every_statement_calls_the_functions() -> None:
    texts = FOUND | {file.name: file.text for file in routines()}
    asking = {name for name, text in texts.items() if re.search(r"\bworking_time\w*\(", text)}
    assert {"4_update_traversals.sql", "4_start_traversal.sql"} < asking
    found = {name for name, text in texts.items() if ARITHMETIC.search(text)}
    assert found - EXCEPTIONS == set()
