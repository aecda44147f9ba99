"""The statements that count wrong passwords decide as `hub.auth.lockout` does."""

from datetime import timedelta
from itertools import product

import pytest

from engine.store.access.password_lockout import AttemptLimits, reserve
from engine.store.database import Database
from hub.auth.lockout import FailedAttempts, LockoutRule

RULE = LockoutRule(failures=3, seconds=3600.0)
LIMITS = AttemptLimits(RULE.failures, timedelta(seconds=RULE.seconds))
#: Seconds since the last attempt; negative: it is in the future. Away from the boundaries, because
#: the database's clock moves.
AGES = [-7200.0, -3660.0, -3540.0, -60.0, 1.0, 3540.0, 3660.0, 7200.0]
COUNTS = [0, 1, 2, 3, 4]
CASES = list(product(COUNTS, AGES))
#: More than the duration of a test, and less than the distance of an age from a boundary.
TOLERANCE = 50.0

INSERT = """
insert into sign_in_attempt (key, count, last_at)
select key, count, clock_timestamp() - make_interval(secs => age)
  from unnest($1::bytea[], $2::integer[], $3::double precision[]) c (key, count, age)
"""
READ = """
select key, count, extract(epoch from clock_timestamp() - last_at)::float8 as age
  from sign_in_attempt
"""


def key_of(count: int, age: float) -> bytes:
    return f"{count} {age}".encode()


async def insert_cases(database: Database) -> None:
    async with database.connection() as conn:
        await conn.execute(
            INSERT,
            [key_of(*case) for case in CASES],
            [count for count, _ in CASES],
            [age for _, age in CASES],
        )


async def test_an_attempt_is_counted_or_refused_as_the_rule_says(database: Database) -> None:
    await insert_cases(database)
    refused: dict[bytes, float] = {}
    for case in CASES:
        refused |= await reserve(database, [key_of(*case)], LIMITS)
    async with database.connection() as conn:
        rows = {row["key"]: row for row in await conn.fetch(READ)}
    for count, age in CASES:
        key, earlier = key_of(count, age), FailedAttempts(count, -age)
        left = RULE.seconds_left(earlier, now=0.0)
        assert refused.get(key, 0.0) == pytest.approx(left, abs=TOLERANCE), key
        if not left:
            counted = RULE.count(earlier, now=0.0)
            assert rows[key]["count"] == counted.count, key
            assert rows[key]["age"] == pytest.approx(0.0, abs=TOLERANCE), key
    assert 0 < len(refused) < len(CASES)


async def test_only_keys_that_are_locked_out_are_reported(database: Database) -> None:
    await insert_cases(database)
    refused = await reserve(database, [key_of(*case) for case in CASES], LIMITS)
    assert set(refused) == {
        key_of(count, age)
        for count, age in CASES
        if RULE.seconds_left(FailedAttempts(count, -age), now=0.0)
    }
