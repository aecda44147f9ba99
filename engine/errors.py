"""What can be wrong, as values a person can read.

Every error names the place, the reason and the remedy, and has a stable code, which the
Orchestration API shows as ``error.type``. Nothing here knows HTTP: hub/api/problems.py holds the
one table from families to status codes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches


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


@dataclass(slots=True)
class Findings:
    """Collects what is wrong, so that all of it can be said at once."""

    all: list[Finding] = field(default_factory=list)

    def add(
        self, place: str, reason: str, remedy: str = "", code: str = "StackValidationFailed"
    ) -> None:
        self.all.append(Finding(place, reason, remedy, code))

    def raise_if_any(self) -> None:
        """Raise Invalid with everything found so far, or do nothing."""
        if self.all:
            raise Invalid(self.all)


def nearest(name: str, known: Sequence[str]) -> str:
    """Return ``Did you mean "x"?`` for the nearest known name, or an empty text."""
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f'Did you mean "{near[0]}"?' if near else ""
