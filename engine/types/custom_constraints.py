"""Custom constraints, which resource types can add.

A template's parameter or a type's property declares ``custom_constraint: nova.flavor``. The
constraint with this name among the ``constraints`` of a type validates the value before anything is
stored. Values that are not known yet are not validated.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from croniter import croniter

from engine.words import Json


@dataclass(frozen=True, slots=True)
class ValidationContext:
    """The request that is validated. credential: of the request, for lookups in the cloud; "" for
    none. region: as `Call.region`. now: the database's time."""

    project: str
    now: datetime
    credential: str = field(default="", repr=False)
    region: str = ""


class CustomConstraint(ABC):
    """A named rule for values. Empty strings and null are never validated."""

    name: str

    @abstractmethod
    def validate(self, value: Json, context: ValidationContext) -> "Verdict":
        """Return the reason why a value is invalid, or None. A function or a coroutine function.

        An exception means that the check is currently impossible: the request is refused, and the
        client can send it again.
        """


#: The reason why a value is invalid, or None; or an awaitable of it.
Verdict = str | Awaitable[str | None] | None
#: Validates a value: a constraint's `validate`, or a type's `check_external`.
Validator = Callable[[Json, ValidationContext], Verdict]


MIN_FIELDS, MAX_FIELDS = 5, 7


class CronExpression(CustomConstraint):
    name = "cron_expression"

    def validate(self, value: Json, context: ValidationContext) -> str | None:
        if isinstance(value, str) and croniter.is_valid(value):
            return None
        reason = f"[{value}] is not acceptable, out of range"
        if not MIN_FIELDS <= len(str(value).split()) <= MAX_FIELDS:
            reason = "Exactly 5, 6 or 7 columns has to be specified for iterator expression."
        return f"Invalid CRON expression: {reason}"


class Expiration(CustomConstraint):
    """A time in the future; without a time zone, it is UTC."""

    name = "expiration"

    def validate(self, value: Json, context: ValidationContext) -> str | None:
        try:
            until = datetime.fromisoformat(value.strip())
        except (AttributeError, ValueError):
            return f"Expiration {value} is invalid: Unable to parse date string '{value}'"
        aware = until if until.tzinfo else until.replace(tzinfo=UTC)
        if aware > context.now:
            return None
        return f"Expiration {value} is invalid: Expiration time is out of date."


class Timezone(CustomConstraint):
    name = "timezone"

    def validate(self, value: Json, context: ValidationContext) -> str | None:
        try:
            ZoneInfo(value)
        except (KeyError, TypeError, ValueError, OSError):
            return f"Invalid timezone: 'No time zone found with key {value}'"
        return None


BUILT_IN: tuple[CustomConstraint, ...] = (CronExpression(), Expiration(), Timezone())
