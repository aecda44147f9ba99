"""Errors for users: each has a place, a reason, a remedy and a stable code.

The Orchestration API shows the code as ``error.type``. hub/api/error_middleware.py maps the classes
to HTTP status codes.
"""

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from itertools import accumulate

from engine.words import Json

#: Names of the texts of a request that are not in `files`.
TEMPLATE, ENVIRONMENT = "template", "environment"
#: The file of a finding about a key of the body that is in none of its documents.
BODY = "request body"

#: Maximum characters of a place and of a reason.
MAX_LENGTHS = {"place": 500, "reason": 4_000, "sentence": 4_000, "heat_reason": 4_000}


class Quoting(str):
    """A message that quotes a value. safe: the same message without it, for a secret value."""

    safe: str

    def __new__(cls, text: str, safe: str) -> "Quoting":
        message = super().__new__(cls, text)
        message.safe = safe
        return message


def public(text: str) -> Quoting:
    """Return a message that quotes no value that may be secret."""
    return Quoting(text, text)


def without_value(text: str, otherwise: str) -> Quoting:
    """Return a message about a secret value. otherwise: in place of one that may quote it."""
    return public(text.safe if isinstance(text, Quoting) else otherwise)


#: Replace a reason and a remedy that may quote a secret value.
WITHHELD_REASON = "its value is not valid; the reason is not shown because the value is secret"
WITHHELD_REMEDY = "Correct the secret value."


@dataclass(frozen=True, slots=True)
class Finding:
    """One error in a request or document.

    place: a path such as ``resources.web.properties.size``; empty for the whole document.
    code: the class name in the Orchestration API. file: the file of the request that has the error,
    TEMPLATE, ENVIRONMENT or BODY. inner_place: the place in that file, if it is not `place`. line,
    column: where that is, from 1; 0: unknown. quote: that line and a caret below the column.
    secret: the line may have a secret value, and is not quoted. sentence: Heat's message, if it is
    not the reason. heat_reason: what Heat writes instead of the reason, after the same place.
    """

    place: str
    reason: str
    remedy: str
    code: str = "StackValidationFailed"
    file: str = ""
    inner_place: str | None = None
    line: int = 0
    column: int = 0
    quote: str = field(default="", repr=False)
    secret: bool = False
    sentence: str = ""
    heat_reason: str = ""

    def __post_init__(self) -> None:
        """Truncate texts, which may quote the request."""
        for name, limit in MAX_LENGTHS.items():
            if len(text := getattr(self, name)) > limit:
                object.__setattr__(self, name, f"{text[:limit]}...")

    @property
    def shown_place(self) -> str:
        """The place for programs. `place` is empty where Heat's message names none."""
        return self.place or self.inner_place or self.file

    def without_values(self) -> "Finding":
        """Return the finding as it is shown if the value at its place is secret."""
        reason = without_value(self.reason, WITHHELD_REASON)
        remedy = without_value(self.remedy, WITHHELD_REMEDY)
        return replace(self, reason=reason, remedy=remedy, secret=True, sentence="", heat_reason="")

    def in_file(self, file: str) -> "Finding":
        """Return the finding with the file that its place is in, unless it has one."""
        return self if self.file else replace(self, file=file)

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.place, self.reason) if part)
        return f"{text.rstrip('.')}. {self.remedy}" if self.remedy else text


class HeadgateError(Exception):
    """The base of all expected errors. Any other exception is a bug. warnings: about the request
    that is refused.
    """

    def __init__(self, reason: str, *, place: str = "", remedy: str = "", code: str = "") -> None:
        self.warnings: tuple[Finding, ...] = ()
        self.finding = Finding(place, reason, remedy, code or type(self).__name__)
        super().__init__(str(self.finding))

    @property
    def code(self) -> str:
        return self.finding.code


class Invalid(HeadgateError):
    """The request is not valid. findings: all errors, not only the first. warnings: also found."""

    def __init__(self, findings: Sequence[Finding], warnings: Sequence[Finding] = ()) -> None:
        if not findings:
            raise ValueError("Invalid needs at least one finding")
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(first.reason, place=first.place, remedy=first.remedy, code=first.code)
        self.args = ("\n".join(str(finding) for finding in self.findings),)
        self.warnings = tuple(warnings)


class MissingTemplates(Invalid):
    """The request refers to templates at URLs that are not among its files. urls: of those that are
    known; the templates there may refer to more."""

    def __init__(
        self, findings: Sequence[Finding], urls: Collection[str], warnings: Sequence[Finding] = ()
    ) -> None:
        super().__init__(findings, warnings)
        self.urls = frozenset(urls)


class NotFound(HeadgateError):
    """The object does not exist, or belongs to another project."""

    def __init__(self, reason: str, *, place: str, remedy: str, code: str) -> None:
        super().__init__(reason, place=place, remedy=remedy, code=code)


class Conflict(HeadgateError):
    """The request contradicts the current state."""

    def __init__(self, reason: str, *, place: str, remedy: str, code: str = "") -> None:
        super().__init__(reason, place=place, remedy=remedy, code=code)


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
class HookDecision:
    """The decision of a hook, for the principal who answers too late."""

    decision: str | None
    by: str | None
    at: datetime | None


class AnswerRefused(Conflict):
    """The hook can no longer be answered this way.

    code is one of HookAlreadyAnswered, HookExpired, HookSuperseded, StackStopped, DigestChanged.
    """

    def __init__(self, code: str, reason: str, *, remedy: str = "", decided: HookDecision) -> None:
        super().__init__(reason, place="decision", remedy=remedy, code=code)
        self.decided = decided


#: Maximum number of findings in one error, and of warnings about one request.
MAX_FINDINGS = 100
MAX_WARNINGS = 100
#: Number of known names that are shown if none is similar, and characters of each.
MAX_SHOWN_NAMES = 8
MAX_SHOWN_LENGTH = 60
#: Maximum cost of the search for a similar name: some milliseconds. A comparison costs the number
#: of character pairs, and more.
MAX_COMPARISONS = 100_000
COST_OF_COMPARISON = 100


@dataclass(slots=True)
class Findings:
    """Collects errors, to report them together, and warnings. warned: each warning once, by its
    code, reason and place in its file.
    """

    all: list[Finding] = field(default_factory=list)
    warned: dict[tuple[str, ...], Finding] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(self.warned.values())

    def add(
        self,
        place: str,
        reason: str,
        remedy: str,
        code: str = "StackValidationFailed",
        *,
        at: str | None = None,
        sentence: str = "",
        heat_reason: str = "",
    ) -> None:
        """at: where the text has it, if that is not `place`, which can be as in Heat. sentence,
        heat_reason: see `Finding`.

        Raises Invalid at the limit: to list a million findings costs too much. Parameters without
        a value may be many, and a validation lists all of them.
        """
        self.add_finding(
            Finding(
                place, reason, remedy, code,
                inner_place=at, sentence=sentence, heat_reason=heat_reason,
            )
        )  # fmt: skip

    def add_finding(self, finding: Finding) -> None:
        """As `add`."""
        self.all.append(finding)
        if len(self.all) >= MAX_FINDINGS and finding.code != "UserParameterMissing":
            reason = f"There may be more than these {len(self.all)}; the check stopped there."
            raise Invalid([*self.all, Finding("", reason, "Correct these first.")], self.warnings)

    def extend(self, others: "Findings") -> None:
        """Add other findings and warnings. Raises Invalid as `add` does."""
        if others.warned:
            self.warn_all(others.warned.values())
        for one in others.all:
            self.add_finding(one)

    def warn(self, place: str, reason: str, remedy: str, code: str) -> None:
        """Add a warning: something that is accepted and has probably not the meant effect."""
        self.warn_all([Finding(place, reason, remedy, code)])

    def warn_all(self, warnings: Iterable[Finding]) -> None:
        """Add warnings up to the limit; the last one says that there may be more."""
        for one in warnings:
            if len(self.warned) >= MAX_WARNINGS:
                more = f"There may be more than these {MAX_WARNINGS} warnings."
                one = Finding("", more, "Correct these first.", "MoreWarnings")
            place = one.place if one.inner_place is None else one.inner_place
            self.warned.setdefault((one.file, place, one.code, one.reason), one)

    def raise_if_any(self) -> None:
        """Raise Invalid if there are findings."""
        if self.all:
            raise Invalid(self.all, self.warnings)


def as_errors(warnings: Sequence[Finding]) -> list[Finding]:
    """The errors that warnings are for a strict request."""
    return [replace(one, code="StackValidationFailed") for one in warnings]


def quote_value(value: Json) -> str:
    """Return a value for a message: JSON text, shortened to 80 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys of other types, from YAML
        text = '"..."'
    return text if len(text) <= 80 else f"{text[:77]}..."


def beginning_of(text: str) -> str:
    """Return the first 200 characters of a text for a message, with "..." in place of more."""
    return text if len(text) <= 200 else text[:200] + "..."


def nearest(name: str, known: Sequence[str]) -> str:
    """Return ``Did you mean "x"?`` for the nearest known name, or an empty text.

    Of very many names, only those of similar length are compared.
    """
    folded = name.casefold()
    if same := next((one for one in known if one.casefold() == folded), ""):
        return f'Did you mean "{same}"?'
    if sum(map(len, known)) * len(name) + COST_OF_COMPARISON * len(known) > MAX_COMPARISONS:
        known = sorted(known, key=lambda one: abs(len(one) - len(name)))
        sums = accumulate(len(one) * len(name) + COST_OF_COMPARISON for one in known)
        known = known[: bisect_right(list(sums), MAX_COMPARISONS)]
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f'Did you mean "{near[0]}"?' if near else ""


def one_of(name: str, known: Sequence[str], what: str) -> str:
    """Return the nearest known name or, if none is similar, the known ones. what: their kind."""
    if near := nearest(name, known):
        return near
    shown = ", ".join(one[:MAX_SHOWN_LENGTH] for one in known[:MAX_SHOWN_NAMES])
    more = f", and {len(known) - MAX_SHOWN_NAMES} more" if len(known) > MAX_SHOWN_NAMES else ""
    return f"{what}: {shown or 'none'}{more}."
