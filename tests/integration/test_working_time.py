"""Working time is one rule of the database: its functions, and every statement that asks them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from engine.store.database import Database
from engine.store.routine_versions import routines
from tests.integration.test_statements import FOUND

NOW = datetime(2026, 1, 2, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)

#: Arithmetic with the columns: of the functions alone.
ARITHMETIC = re.compile(
    r"- *(?:\w+\.)?working_since\b|\bworking_since *\+|\bworked *[-+<>](?!= p_)"
)
#: The parent's gets what its nested stack's working time is ahead.
EXCEPT = {"engine.store.nested_stacks.COUNT_TIME"}


@pytest.mark.parametrize(
    ("state", "active", "held", "counts"),
    [
        ("running", 2, 1, True),
        ("running", 1, 1, False),
        ("running", 0, 0, False),
        ("ending", 2, 1, False),
        ("superseded", 2, 1, False),
        ("failed", 2, 1, False),
    ],
)
async def test_time_counts_while_an_active_node_is_not_held(
    database: Database, state: str, active: int, held: int, counts: bool
) -> None:
    text = "select working_time_since($1, $2, $3, $4)"
    since = await database.pool.fetchval(text, state, active, held, NOW)
    assert since == (NOW if counts else None)


@pytest.mark.parametrize(("since", "expected"), [(None, HOUR), (NOW - HOUR, 2 * HOUR)])
async def test_working_time_adds_the_time_that_counts_now(
    database: Database, since: datetime | None, expected: timedelta
) -> None:
    found = await database.pool.fetchval("select working_time($1, $2, $3)", HOUR, since, NOW)
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
async def test_the_limit_is_reached_when_what_is_left_of_it_has_passed(
    database: Database,
    since: datetime | None,
    limit: timedelta | None,
    expected: datetime | None,
) -> None:
    text = "select working_time_over_at($1, $2, $3)"
    assert await database.pool.fetchval(text, HOUR, since, limit) == expected


def test_every_statement_asks_the_functions() -> None:
    texts = FOUND | {file.name: file.text for file in routines()}
    asking = {name for name, text in texts.items() if re.search(r"\bworking_time\w*\(", text)}
    assert {"4_update_clock.sql", "engine.store.traversal_start.INSERT_TRAVERSAL"} < asking
    found = {name for name, text in texts.items() if ARITHMETIC.search(text)}
    assert found - EXCEPT == set()
