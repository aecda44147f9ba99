"""The interface of lifecycle plug-ins, version 1.

A plug-in is a class under the entry point group ``headgate.lifecycle``, made without arguments,
once in each process. It looks at a stack before and after each action on it. It may
refuse the action before anything is done; it can change nothing. What it is given is frozen, and
stays as it is described here within version 1: fields are added, none is removed or renamed.

A change that should wait for somebody, or that a program elsewhere should judge, needs no plug-in:
a breakpoint at ``pre-stack-<action>`` does that (docs/how-to/guard-every-stack.md).
"""

from abc import ABC
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from engine.words import Json

#: Grows when something is added to what plug-ins are given.
VERSION = 1


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What the plan does to one resource.

    change: added, updated, replaced, deleted or unchanged; for check, suspend, resume and snapshot
    the operation. properties: as far as they are known, hidden ones masked. unknown: names of
    properties that nobody can know yet. certain: False when an unknown value may change this.
    """

    name: str
    type: str
    change: str
    physical_id: str | None = None
    properties: Mapping[str, Json] = field(default_factory=dict)
    changes: Mapping[str, Json] = field(default_factory=dict)
    unknown: Sequence[str] = ()
    certain: bool = True


@dataclass(frozen=True, slots=True)
class StackView:
    """A stack, what is to be done to it, and at whose request.

    action: CREATE, UPDATE, DELETE, ROLLBACK, ADOPT, CHECK, SUSPEND, RESUME, SNAPSHOT, RESTORE.
    parameters: as people see them, hidden ones masked. version: of the template it goes toward.
    """

    project: str
    stack_id: UUID
    stack_name: str
    action: str
    traversal: int
    version: int
    requested_by: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    tags: Sequence[str] = ()
    plan: Sequence[PlannedChange] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended. state: complete, failed, stopped or superseded. began: False when it was
    refused before anything was done."""

    state: str
    reason: str
    began: bool = True

    @property
    def failed(self) -> bool:
        return self.state != "complete"


class Refused(Exception):
    """Raise it in `before`: the action is not to be done. The text is told to who asked for it."""


class LifecyclePlugin(ABC):  # noqa: B024 - both methods may be left out
    """ordinal: plug-ins are asked in ascending order, and told of the end in descending order."""

    ordinal: int = 100

    def before(self, view: StackView) -> Awaitable[None] | None:
        """Asked before anything is done. May be asked again after a crash. Raise Refused to refuse.

        Any other exception refuses, too: what cannot judge does not let pass.
        """
        return None

    def after(self, view: StackView, ended: Ended) -> Awaitable[None] | None:
        """Told when the action has ended, however it ended; at least once, also after a crash.

        Also told, at once and in descending order, when a later plug-in refused what this one let
        pass (``ended.began`` is False then). Nothing it says changes what was done.
        """
        return None
