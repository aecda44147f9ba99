"""Which errors of a statement can be the fault of what it carries: one rule for all loops."""

from collections.abc import Sequence

import asyncpg
import pytest

from engine.errors import TimedOut, Unavailable
from engine.loops import Fault, Supervisor
from engine.store.database_errors import Blame, blame, unavailable


def raised(cause: BaseException) -> Exception:
    """As `Database` raises it."""
    error = unavailable(cause)
    error.__cause__ = cause
    return error


def of_another(cause: BaseException) -> Exception:
    """An error of our own code that was raised while another one was handled."""
    error = ValueError("planted")
    error.__cause__ = cause
    return error


ERRORS = [
    (asyncpg.ProgramLimitExceededError("total size of jsonb array elements"), Blame.CERTAIN),
    (asyncpg.UntranslatableCharacterError("NUL"), Blame.CERTAIN),
    (asyncpg.CheckViolationError("broken"), Blame.CERTAIN),
    (TypeError("of the encoder"), Blame.CERTAIN),
    (raised(asyncpg.QueryCanceledError("statement timeout")), Blame.POSSIBLE),
    (raised(asyncpg.OutOfMemoryError("out of memory")), Blame.POSSIBLE),
    (asyncpg.DataCorruptedError("a damaged page"), Blame.POSSIBLE),
    (asyncpg.InvalidSQLStatementNameError("lost by a pooler"), Blame.NONE),
    (asyncpg.UndefinedFunctionError("advance"), Blame.NONE),
    (asyncpg.InsufficientPrivilegeError("no right"), Blame.NONE),
    (raised(asyncpg.DeadlockDetectedError("deadlock")), Blame.NONE),
    (raised(ConnectionResetError("away")), Blame.NONE),
    (raised(TimeoutError()), Blame.NONE),
    (asyncpg.InterfaceError("released"), Blame.NONE),
    (Unavailable("the broker does not answer"), Blame.NONE),
    (TimedOut("slow"), Blame.POSSIBLE),
    (of_another(ConnectionResetError("of a file")), Blame.CERTAIN),
    (ExceptionGroup("", [raised(TimeoutError()), TypeError("one of two")]), Blame.CERTAIN),
    (ExceptionGroup("", [raised(TimeoutError()), Unavailable("two")]), Blame.NONE),
]


@pytest.mark.parametrize(("error", "expected"), ERRORS)
def test_the_blame_of_each_error(error: BaseException, expected: Blame) -> None:
    assert blame(error) is expected


@pytest.mark.parametrize(("error", "expected"), ERRORS)
async def test_a_guard_splits_a_batch_for_the_errors_that_a_part_can_be_blamed_for(
    error: Exception, expected: Blame
) -> None:
    tried: list[int] = []

    async def work(part: Sequence[int]) -> None:
        tried.append(len(part))
        raise error

    async def fail(_: int, __: Fault) -> None:
        pass

    try:
        await Supervisor().guard("loop").split([1, 2], work, fail, lambda _: {})
    except Exception as left:
        assert left is error
    assert tried == ([2] if expected is Blame.NONE else [2, 1, 1])
