"""Whether the content of a batch can be the cause of its error, or only the database.

A batch that fails because of one of its parts fails again however often it is repeated; one that
fails because the database is away does not. The difference decides whether a batch is split. The
worker and every guard of a loop use this one rule.
"""

from enum import IntEnum

import asyncpg

from engine.errors import TimedOut, Unavailable

#: SQLSTATE classes: data exception, broken constraint, program limit, an exception of a routine.
_OF_DATA = ("22", "23", "54", "P0")
#: Statement timeout or cancel, out of memory, an internal error such as a damaged page.
_PERHAPS = ("57014", "53200", "XX")


class Blame(IntEnum):
    """NONE: repeat it later, as it is. POSSIBLE: repeat it in parts. CERTAIN: it never works."""

    NONE = 0
    POSSIBLE = 1
    CERTAIN = 2


def blame(error: BaseException) -> Blame:
    """error: as `Database` raises it: of asyncpg, or Unavailable with that as its cause; or of our
    own code. Of a group, the error counts that can be blamed most."""
    if isinstance(error, BaseExceptionGroup):
        return max(map(blame, error.exceptions))
    if isinstance(error, Unavailable):
        perhaps = isinstance(error, TimedOut) or _of_state(error.__cause__) is Blame.POSSIBLE
        return Blame.POSSIBLE if perhaps else Blame.NONE
    # PostgreSQL ends a statement long before asyncpg gives it up, so a TimeoutError (an OSError)
    # is of the connection. So are asyncpg's own errors.
    if isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        return Blame.NONE
    return _of_state(error)


def _of_state(error: BaseException | None) -> Blame:
    state = getattr(error, "sqlstate", None)
    if state is None:
        return Blame.CERTAIN  # of Headgate's code, before or after the database
    if state.startswith(_OF_DATA):
        return Blame.CERTAIN
    return Blame.POSSIBLE if state.startswith(_PERHAPS) else Blame.NONE
