"""What a handler returns: the answers to a hook."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Json = Any


class HookAnswer(ABC):
    """An answer that decides a hook. reason: for the audit log. data: for the resource type and
    later hooks; it must match `ask` of the rule."""

    decision: ClassVar[str]
    reason: str
    data: Json

    def body(self) -> dict[str, Json]:
        """The request body, without the digest."""
        body: dict[str, Json] = {"decision": self.decision, "reason": self.reason, **self.fields()}
        return body if self.data is None else {**body, "data": self.data}

    @abstractmethod
    def fields(self) -> Mapping[str, Json]:
        """The fields of this decision alone."""


class _PlainAnswer(HookAnswer):
    def fields(self) -> Mapping[str, Json]:
        return {}


@dataclass(frozen=True, slots=True)
class Continue(_PlainAnswer):
    """Approve: continue the operation. At a drift hook: the same as `Repair`."""

    decision: ClassVar[str] = "continue"
    reason: str = ""
    data: Json = None


@dataclass(frozen=True, slots=True)
class Reject(_PlainAnswer):
    """Fail the operation. At a drift hook: leave the resource as it is."""

    decision: ClassVar[str] = "reject"
    reason: str
    data: Json = None


@dataclass(frozen=True, slots=True)
class Patch(HookAnswer):
    """Continue with changed properties, if the rule allows it."""

    decision: ClassVar[str] = "patch"
    properties: Mapping[str, Json]
    reason: str = ""
    data: Json = None

    def fields(self) -> Mapping[str, Json]:
        return {"properties": dict(self.properties)}


@dataclass(frozen=True, slots=True)
class Run(_PlainAnswer):
    """Continue, and skip later breakpoints of the change."""

    decision: ClassVar[str] = "run"
    reason: str = ""
    data: Json = None


@dataclass(frozen=True, slots=True)
class SingleStep(HookAnswer):
    """Continue, and stop before the next operation of each resource."""

    decision: ClassVar[str] = "step"
    how: Literal["over", "into", "out"] = "over"
    reason: str = ""
    data: Json = None

    def fields(self) -> Mapping[str, Json]:
        return {"how": self.how}


@dataclass(frozen=True, slots=True)
class Repair(_PlainAnswer):
    """At a drift hook: repair the resource and those that depend on it."""

    decision: ClassVar[str] = "repair"
    reason: str = ""
    data: Json = field(default=None)


@dataclass(frozen=True, slots=True)
class Ignore(HookAnswer):
    """At a drift hook: leave all drift of the resource for a time. time: such as 2h."""

    decision: ClassVar[str] = "ignore"
    time: str
    reason: str = ""
    data: Json = field(default=None, init=False)

    def fields(self) -> Mapping[str, Json]:
        return {"data": {"for": self.time}}


@dataclass(frozen=True, slots=True)
class Adopt(_PlainAnswer):
    """At a drift hook: make the observed values the desired ones."""

    decision: ClassVar[str] = "adopt"
    reason: str = ""
    data: Json = field(default=None)
