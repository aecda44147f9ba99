"""Which errors of a statement can be the fault of what it carries: one rule for all loops."""

from collections.abc import Sequence

import asyncpg
import pytest

from engine.errors import TimedOut, Unavailable
from engine.loop_guard import Fault, Supervisor
from engine.store.database_errors import DataFault, classify_error, unavailable


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
    (asyncpg.ProgramLimitExceededError("total size of jsonb array elements"), DataFault.CERTAIN),
    (asyncpg.UntranslatableCharacterError("NUL"), DataFault.CERTAIN),
    (asyncpg.CheckViolationError("broken"), DataFault.CERTAIN),
    (TypeError("of the encoder"), DataFault.CERTAIN),
    (raised(asyncpg.QueryCanceledError("statement timeout")), DataFault.POSSIBLE),
    (raised(asyncpg.OutOfMemoryError("out of memory")), DataFault.POSSIBLE),
    (asyncpg.DataCorruptedError("a damaged page"), DataFault.POSSIBLE),
    (asyncpg.InvalidSQLStatementNameError("lost by a pooler"), DataFault.NONE),
    (asyncpg.UndefinedFunctionError("advance"), DataFault.NONE),
    (asyncpg.InsufficientPrivilegeError("no right"), DataFault.NONE),
    (raised(asyncpg.DeadlockDetectedError("deadlock")), DataFault.NONE),
    (raised(asyncpg.InvalidCachedStatementError("after a migration")), DataFault.NONE),
    (raised(asyncpg.InternalServerError("cache lookup failed for type 17")), DataFault.UNLIKELY),
    (
        raised(asyncpg.InternalServerError("could not open relation with OID 17")),
        DataFault.UNLIKELY,
    ),
    (raised(asyncpg.UndefinedObjectError("type with OID 17 does not exist")), DataFault.UNLIKELY),
    (asyncpg.InternalServerError("could not read a block"), DataFault.POSSIBLE),
    (raised(ConnectionResetError("away")), DataFault.NONE),
    (raised(TimeoutError()), DataFault.NONE),
    (asyncpg.InterfaceError("released"), DataFault.NONE),
    (Unavailable("the broker does not answer"), DataFault.NONE),
    (TimedOut("slow"), DataFault.POSSIBLE),
    (of_another(ConnectionResetError("of a file")), DataFault.CERTAIN),
    (ExceptionGroup("", [raised(TimeoutError()), TypeError("one of two")]), DataFault.CERTAIN),
    (ExceptionGroup("", [raised(TimeoutError()), Unavailable("two")]), DataFault.NONE),
]


@pytest.mark.parametrize(("error", "expected"), ERRORS)
def test_each_error_is_classified(error: BaseException, expected: DataFault) -> None:
    assert classify_error(error) is expected


@pytest.mark.parametrize(("error", "expected"), ERRORS)
async def test_a_guard_splits_a_batch_for_the_errors_that_a_part_can_have_caused(
    error: Exception, expected: DataFault
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
    assert tried == ([2] if expected is DataFault.NONE else [2, 1, 1])
