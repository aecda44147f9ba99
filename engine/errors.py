"""What can be wrong, as values a person can read.

Every error names the place, the reason and the remedy, and has a stable code, which the
Orchestration API shows as ``error.type``. Nothing here knows HTTP: hub/api/problems.py holds the
one table from families to status codes.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from itertools import accumulate

from engine.words import Json

#: Characters of a place and of what is said of it.
LONGEST = {"place": 500, "reason": 4_000}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with what somebody sent.

    place: a path such as ``resources.web.properties.size``; empty for the whole document.
    code: the class name that clients of the Orchestration API know.
    """

    place: str
    reason: str
    remedy: str = ""
    code: str = "StackValidationFailed"

    def __post_init__(self) -> None:
        """What is told may be as long as what was sent; it is cut."""
        for name, most in LONGEST.items():
            if len(text := getattr(self, name)) > most:
                object.__setattr__(self, name, f"{text[:most]}...")

    def __str__(self) -> str:
        said = ": ".join(part for part in (self.place, self.reason) if part)
        return f"{said.rstrip('.')}. {self.remedy}" if self.remedy else said


class HeadgateError(Exception):
    """The root of every error that is somebody's to mend. Anything else is a bug."""

    def __init__(self, reason: str, *, place: str = "", remedy: str = "", code: str = "") -> None:
        self.finding = Finding(place, reason, remedy, code or type(self).__name__)
        super().__init__(str(self.finding))

    @property
    def code(self) -> str:
        return self.finding.code


class Invalid(HeadgateError):
    """What was sent cannot be accepted; holds every finding, not only the first."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        if not findings:
            raise ValueError("Invalid needs at least one finding")
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(first.reason, place=first.place, remedy=first.remedy, code=first.code)
        self.args = ("\n".join(str(finding) for finding in self.findings),)


class NotFound(HeadgateError):
    """There is no such thing, or it is somebody else's."""


class Conflict(HeadgateError):
    """It cannot be done in the present state of things."""


class Forbidden(HeadgateError):
    """Who asked may not do this."""


class LimitReached(HeadgateError):
    """A quota or a limit on size, depth or time is reached."""


class Unavailable(HeadgateError):
    """A part that is needed does not answer now; the same request may succeed later."""


class TimedOut(Unavailable):
    """A statement took longer than it may: a smaller one may succeed now, the same one later."""

    def __init__(self, reason: str, *, place: str = "", remedy: str = "") -> None:
        super().__init__(reason, place=place, remedy=remedy, code=Unavailable.__name__)


@dataclass(frozen=True, slots=True)
class Decided:
    """Who decided a hook, what and when; told to whoever answers too late."""

    decision: str | None
    by: str | None
    at: datetime | None


class AnswerRefused(Conflict):
    """A hook that cannot be answered so any more.

    code is one of HookAlreadyAnswered, HookExpired, HookSuperseded, StackStopped, DigestChanged.
    """

    def __init__(self, code: str, reason: str, *, remedy: str = "", decided: Decided) -> None:
        super().__init__(reason, remedy=remedy, code=code)
        self.decided = decided


#: So much is told at once.
MOST_FINDINGS = 100
#: So many names are shown where none is near, and so much of each.
MOST_SHOWN = 8
LONGEST_SHOWN = 60
#: So many pairs of letters are compared in search of a near name: some milliseconds.
MOST_COMPARED = 200_000


@dataclass(slots=True)
class Findings:
    """Collects what is wrong, so that all of it can be said at once."""

    all: list[Finding] = field(default_factory=list)

    def add(
        self, place: str, reason: str, remedy: str = "", code: str = "StackValidationFailed"
    ) -> None:
        """Raises Invalid at the limit: to list a million findings costs too much.

        Parameters without a value may be many, and a validation lists all of them.
        """
        self.all.append(Finding(place, reason, remedy, code))
        if len(self.all) >= MOST_FINDINGS and code != "UserParameterMissing":
            reason = f"There may be more than these {len(self.all)}; the check stopped there."
            raise Invalid([*self.all, Finding("", reason, "Correct these first.")])

    def extend(self, others: "Findings") -> None:
        """Add what was found elsewhere. Raises Invalid as `add` does."""
        for one in others.all:
            self.add(one.place, one.reason, one.remedy, one.code)

    def raise_if_any(self) -> None:
        """Raise Invalid with everything found so far, or do nothing."""
        if self.all:
            raise Invalid(self.all)


def quote_value(value: Json) -> str:
    """A value for a message: JSON text, shortened to 80 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys of other types, from YAML
        text = '"..."'
    return text if len(text) <= 80 else f"{text[:77]}..."


def nearest(name: str, known: Sequence[str]) -> str:
    """Return ``Did you mean "x"?`` for the nearest known name, or an empty text.

    Of many names those as long as this one are looked at, and as many as take no time.
    """
    if sum(map(len, known)) * len(name) > MOST_COMPARED:
        known = sorted(known, key=lambda one: abs(len(one) - len(name)))
        sums = accumulate(len(one) * len(name) for one in known)
        known = known[: bisect_right(list(sums), MOST_COMPARED)]
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f'Did you mean "{near[0]}"?' if near else ""


def one_of(name: str, known: Sequence[str], what: str) -> str:
    """The nearest known name, or where none is near those that there are. what: what they are."""
    if near := nearest(name, known):
        return near
    shown = ", ".join(one[:LONGEST_SHOWN] for one in known[:MOST_SHOWN])
    more = f", and {len(known) - MOST_SHOWN} more" if len(known) > MOST_SHOWN else ""
    return f"{what}: {shown or 'none'}{more}."
