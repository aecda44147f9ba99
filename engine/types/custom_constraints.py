"""Custom constraints that somebody has to be asked about, as resource types bring them.

A template says ``custom_constraint: nova.flavor`` of a parameter, or a type's schema of a property;
whoever brings the type that has this name among its ``constraints`` is asked, before anything is
stored. Values that are not known yet are not asked about.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from croniter import croniter

from engine.words import Json


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks. credential: what came with the request, to look things up in the cloud with; "" for
    none. now: the database's time."""

    project: str
    now: datetime
    credential: str = field(default="", repr=False)


class CustomConstraint(ABC):
    """A rule by the name that templates give it. Empty texts and null are never asked about."""

    name: str

    @abstractmethod
    def broken(self, value: Json, asker: Asker) -> "Verdict":
        """Say what is wrong with a value, or None; a plain function, or a coroutine function.

        An exception means that nobody can tell now; the request is refused, and may be sent again.
        """


#: Why a value is not valid, or None; or an awaitable of it.
Verdict = str | Awaitable[str | None] | None
#: Validates a value: a constraint's `broken`, or a type's `check_external`.
Validator = Callable[[Json, Asker], Verdict]


class CronExpression(CustomConstraint):
    name = "cron_expression"

    def broken(self, value: Json, asker: Asker) -> str | None:
        if isinstance(value, str) and croniter.is_valid(value):
            return None
        return "it is not a cron expression of 5 to 7 fields"


class Expiration(CustomConstraint):
    """A time that is yet to come; without a zone it is UTC."""

    name = "expiration"

    def broken(self, value: Json, asker: Asker) -> str | None:
        try:
            until = datetime.fromisoformat(value.strip())
        except (AttributeError, ValueError):
            return "it is not a time such as 2030-01-31T12:00:00Z"
        aware = until if until.tzinfo else until.replace(tzinfo=UTC)
        return None if aware > asker.now else "it is past"


class Timezone(CustomConstraint):
    name = "timezone"

    def broken(self, value: Json, asker: Asker) -> str | None:
        try:
            ZoneInfo(value)
        except (KeyError, TypeError, ValueError, OSError):
            return "unknown time zone; use a name such as Europe/Berlin"
        return None


BUILT_IN: tuple[CustomConstraint, ...] = (CronExpression(), Expiration(), Timezone())
