"""The interface of lifecycle plug-ins, version 1.

A plug-in is a class under the entry point group ``headgate.lifecycle``, instantiated without
arguments, once per process. It is called before and after each action of a stack. It may refuse the
action before it begins, and cannot change it. Its arguments are frozen. Within version 1, fields
are added, and none is removed or renamed.

A change that must wait for a person or for another program needs no plug-in: use a breakpoint at
``pre-stack-<action>`` (docs/how-to/guard-every-stack.md).
"""

from abc import ABC
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from engine.words import Json

#: Increased when the arguments of plug-ins get a new field.
VERSION = 1


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What the plan does to one resource.

    change: added, updated, replaced, deleted or unchanged; for check, suspend, resume and snapshot
    the operation. properties: those known, hidden ones masked. unknown: names of properties whose
    values are not known yet. certain: False if an unknown value, or the content of a nested stack,
    may change the operation. nested: it has a nested stack, whose resources are not in this plan.
    """

    name: str
    type: str
    change: str
    physical_id: str | None = None
    properties: Mapping[str, Json] = field(default_factory=dict)
    changes: Mapping[str, Json] = field(default_factory=dict)
    unknown: Sequence[str] = ()
    certain: bool = True
    nested: bool = False


@dataclass(frozen=True, slots=True)
class StackView:
    """A stack, its action and plan, and who requested them.

    action: CREATE, UPDATE, DELETE, ROLLBACK, ADOPT, CHECK, SUSPEND, RESUME, SNAPSHOT, RESTORE.
    parameters: hidden ones masked. version: the template version of the action. only: names of
    the resources that a partial update may change, None if the update is not partial.
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
    only: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of an action. state: complete, failed, stopped or superseded. accepted: False if
    `before` refused it.
    """

    state: str
    reason: str
    accepted: bool = True

    @property
    def failed(self) -> bool:
        return self.state != "complete"


class Refused(Exception):
    """Raise it in `before` to refuse the action. The requester gets its text."""


class LifecyclePlugin(ABC):  # noqa: B024 - both methods are optional
    """ordinal: `before` is called in ascending order, `after` in descending order."""

    ordinal: int = 100

    def before(self, view: StackView) -> Awaitable[None] | None:
        """Called before the action begins; may be called again after a crash.

        Raise Refused to refuse the action. Any other exception refuses it as well.
        """
        return None

    def after(self, view: StackView, ended: Ended) -> Awaitable[None] | None:
        """Called at least once after the action has ended in any state, also after a crash.

        Also called at once, in descending order, if a later plug-in refuses an action that this one
        accepted (``ended.accepted`` is False). It cannot change the result.
        """
        return None
