"""Errors for users: each has a place, a reason, a remedy and a stable code.

The Orchestration API shows the code as ``error.type``. hub/api/problems.py maps the classes to HTTP
status codes.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from itertools import accumulate

from engine.words import Json

#: Maximum characters of a place and of a reason.
LONGEST = {"place": 500, "reason": 4_000}


@dataclass(frozen=True, slots=True)
class Finding:
    """One error in a request or document.

    place: a path such as ``resources.web.properties.size``; empty for the whole document.
    code: the class name in the Orchestration API.
    """

    place: str
    reason: str
    remedy: str = ""
    code: str = "StackValidationFailed"

    def __post_init__(self) -> None:
        """Truncate texts, which may quote the request."""
        for name, most in LONGEST.items():
            if len(text := getattr(self, name)) > most:
                object.__setattr__(self, name, f"{text[:most]}...")

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.place, self.reason) if part)
        return f"{text.rstrip('.')}. {self.remedy}" if self.remedy else text


class HeadgateError(Exception):
    """The base of all expected errors. Any other exception is a bug."""

    def __init__(self, reason: str, *, place: str = "", remedy: str = "", code: str = "") -> None:
        self.finding = Finding(place, reason, remedy, code or type(self).__name__)
        super().__init__(str(self.finding))

    @property
    def code(self) -> str:
        return self.finding.code


class Invalid(HeadgateError):
    """The request is not valid. findings: all errors, not only the first."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        if not findings:
            raise ValueError("Invalid needs at least one finding")
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(first.reason, place=first.place, remedy=first.remedy, code=first.code)
        self.args = ("\n".join(str(finding) for finding in self.findings),)


class NotFound(HeadgateError):
    """The object does not exist, or belongs to another project."""


class Conflict(HeadgateError):
    """The request contradicts the current state."""


class Forbidden(HeadgateError):
    """The principal may not do this."""


class LimitReached(HeadgateError):
    """A quota or a limit on size, depth or time is reached."""


class Unavailable(HeadgateError):
    """A required service does not respond; the same request may succeed later."""


class TimedOut(Unavailable):
    """A statement exceeded its timeout: a smaller one may succeed now, the same one later."""

    def __init__(self, reason: str, *, place: str = "", remedy: str = "") -> None:
        super().__init__(reason, place=place, remedy=remedy, code=Unavailable.__name__)


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision of a hook, for the principal who answers too late."""

    decision: str | None
    by: str | None
    at: datetime | None


class AnswerRefused(Conflict):
    """The hook can no longer be answered this way.

    code is one of HookAlreadyAnswered, HookExpired, HookSuperseded, StackStopped, DigestChanged.
    """

    def __init__(self, code: str, reason: str, *, remedy: str = "", decided: Decided) -> None:
        super().__init__(reason, remedy=remedy, code=code)
        self.decided = decided


#: Maximum number of findings in one error.
MOST_FINDINGS = 100
#: Number of known names that are shown if none is similar, and characters of each.
MOST_SHOWN = 8
LONGEST_SHOWN = 60
#: Maximum number of character pairs compared to find a similar name: some milliseconds.
MOST_COMPARED = 200_000


@dataclass(slots=True)
class Findings:
    """Collects errors, to report them together."""

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
        """Add other findings. Raises Invalid as `add` does."""
        for one in others.all:
            self.add(one.place, one.reason, one.remedy, one.code)

    def raise_if_any(self) -> None:
        """Raise Invalid if there are findings."""
        if self.all:
            raise Invalid(self.all)


def quote_value(value: Json) -> str:
    """Return a value for a message: JSON text, shortened to 80 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys of other types, from YAML
        text = '"..."'
    return text if len(text) <= 80 else f"{text[:77]}..."


def nearest(name: str, known: Sequence[str]) -> str:
    """Return ``Did you mean "x"?`` for the nearest known name, or an empty text.

    Of very many names, only those of similar length are compared.
    """
    if sum(map(len, known)) * len(name) > MOST_COMPARED:
        known = sorted(known, key=lambda one: abs(len(one) - len(name)))
        sums = accumulate(len(one) * len(name) for one in known)
        known = known[: bisect_right(list(sums), MOST_COMPARED)]
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f'Did you mean "{near[0]}"?' if near else ""


def one_of(name: str, known: Sequence[str], what: str) -> str:
    """Return the nearest known name or, if none is similar, the known ones. what: their kind."""
    if near := nearest(name, known):
        return near
    shown = ", ".join(one[:LONGEST_SHOWN] for one in known[:MOST_SHOWN])
    more = f", and {len(known) - MOST_SHOWN} more" if len(known) > MOST_SHOWN else ""
    return f"{what}: {shown or 'none'}{more}."
