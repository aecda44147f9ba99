"""Classifies errors of the database: temporary ones, and those that the data of a batch can cause.

Temporary errors of asyncpg become `engine.errors.Unavailable`. Others, such as a violated
constraint, are faults of the statement and pass through.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import asyncpg

from engine import errors

#: Errors of asyncpg that do not depend on the statement, which can be repeated later.
TRANSIENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidCachedStatementError,  # a migration has changed the columns of its result
)
#: PostgreSQL's messages about a routine, type or table that was removed while a statement used it.
_REMOVED = ("cache lookup failed for ", "could not open relation with OID ", "type with OID ")
#: The errors that can have these messages.
REMOVALS = (asyncpg.InternalServerError, asyncpg.UndefinedObjectError)
#: The only one of TRANSIENT that a statement can cause, by taking too long.
TOO_SLOW = asyncpg.QueryCanceledError
#: The SQLSTATE of the trigger refuse_moved_project (migrations/0090_moved_projects.sql).
PROJECT_MOVED = "HG001"
#: Errors when a connection is opened, returned or probed.
FAILURES = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
#: The server rejects the configured account or database. A repetition fails again.
REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)

#: SQLSTATE classes: data exception, violated constraint, program limit, an exception of a routine.
_CAUSED_BY_DATA = ("22", "23", "54", "P0")
#: Statement timeout or cancel, out of memory, an internal error such as a damaged page.
_POSSIBLY_CAUSED_BY_DATA = ("57014", "53200", "XX")


class DataFault(IntEnum):
    """Whether the data of a failed batch caused its error. NONE: repeat the batch later, unchanged.
    UNLIKELY: the end of an upgrade causes it, or a damaged row; repeat it in parts, some times.
    POSSIBLE: repeat it in parts. CERTAIN: a repetition fails again."""

    NONE = 0
    UNLIKELY = 1
    POSSIBLE = 2
    CERTAIN = 3


def classify_error(error: BaseException) -> DataFault:
    """Classify an error that `Database` raises (an error of asyncpg, or Unavailable with that as
    its cause), or an error of Headgate's own code. For an exception group, the highest value
    counts."""
    if isinstance(error, BaseExceptionGroup):
        return max(map(classify_error, error.exceptions))
    if isinstance(error, errors.Unavailable):
        if isinstance(error, errors.TimedOut):
            return DataFault.POSSIBLE
        # Unavailable with another cause is an error of a service, not of Headgate's code.
        fault = _classify_sqlstate(error.__cause__)
        return fault if fault is not DataFault.CERTAIN else DataFault.NONE
    # PostgreSQL ends a statement long before asyncpg's timeout, so a TimeoutError (an OSError) is
    # an error of the connection. So are asyncpg's own errors.
    if isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        return DataFault.NONE
    return _classify_sqlstate(error)


def is_removal(error: BaseException | None) -> bool:
    """Whether an upgrade may have removed a routine, type or table while a statement used it. A
    repetition finds its successor."""
    return isinstance(error, REMOVALS) and str(error).startswith(_REMOVED)


def _classify_sqlstate(error: BaseException | None) -> DataFault:
    if is_removal(error):
        return DataFault.UNLIKELY
    state = getattr(error, "sqlstate", None)
    if state is None:
        return DataFault.CERTAIN  # an error of Headgate's code
    if state.startswith(_CAUSED_BY_DATA):
        return DataFault.CERTAIN
    return DataFault.POSSIBLE if state.startswith(_POSSIBLY_CAUSED_BY_DATA) else DataFault.NONE


def unavailable(error: BaseException) -> errors.Unavailable:
    """The error for users. Its reason contains no password and no statement."""
    reason = f"the database cannot be used now: {str(error) or type(error).__name__}"
    kind = errors.TimedOut if isinstance(error, TOO_SLOW) else errors.Unavailable
    return kind(reason, place="[database]", remedy=_remedy(error))


def project_moved(reason: str) -> errors.Unavailable:
    """The error for users of a project that has left this database for that of another cell."""
    return errors.Unavailable(
        reason, place="[cells] databases", remedy="Send the request again.", code="ProjectMoving"
    )


def is_refusal(error: errors.Unavailable) -> bool:
    """Whether the settings cause the error, so that a repetition fails again."""
    return error.finding.place != "[database]" or isinstance(
        error.__cause__, (*REFUSED, asyncpg.ClientConfigurationError)
    )


def _remedy(error: BaseException) -> str:
    if isinstance(error, REFUSED):
        return "Check the account and database named by [database] url"
    if is_removal(error):
        return (
            "Try again: an upgrade has replaced it. If this repeats, check the database for damage"
        )
    if isinstance(error, asyncpg.DiskFullError):
        return "Free space on the volume of the database, and try again"
    return "Try again; check that PostgreSQL runs and can be reached"


@contextmanager
def connection_errors() -> Iterator[None]:
    """Translate errors of opening or borrowing a connection to Unavailable."""
    try:
        yield
    except FAILURES as error:
        raise unavailable(error) from error
