"""What the reference says about one type of errors, with an example that the server formats."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.errors import AnswerRefused, Finding, HeadgateError, HookDecision, Invalid

#: The decision in examples of answers that came too late.
_DECIDED = HookDecision("continue", "user:ada", datetime(2026, 3, 2, 9, 30, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class ErrorType:
    """One `type` of errors.

    family: the class that the example is of. meaning, remedy: Markdown of docs/reference. place,
    reason, fix: the example; `fix` is its remedy. as_heat: the example is a response of the
    Orchestration API.
    """

    name: str
    family: type[HeadgateError]
    meaning: str
    remedy: str
    place: str
    reason: str
    fix: str
    as_heat: bool = False

    @property
    def example(self) -> HeadgateError:
        if issubclass(self.family, Invalid):
            return Invalid([Finding(self.place, self.reason, self.fix, self.name)])
        if issubclass(self.family, AnswerRefused):
            return AnswerRefused(self.name, self.reason, remedy=self.fix, decided=_DECIDED)
        return self.family(self.reason, place=self.place, remedy=self.fix, code=self.name)


@dataclass(frozen=True, slots=True)
class ErrorTypeGroup:
    """Error types about one subject. at_start: they end a process or a command, and no request
    gets them."""

    title: str
    types: Sequence[ErrorType]
    introduction: str = ""
    at_start: bool = False
