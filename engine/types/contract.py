"""The resource type interface: what every type, built in or from a plug-in, is written against.

An operation is called with a frozen `Call` and ends with an `Outcome`. It is re-entrant: after a
crash it is called again with the same ``operation_key`` and the progress it saved last, and must
find what the lost call had already made. It never sleeps: to wait is to return `Wait`.

An operation may be a plain function (it computes) or a coroutine function (it does I/O).

Values of properties, attributes, data and progress may be secret: they are left out of every repr
here, and a type keeps them out of its reasons.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from engine.errors import Findings
from engine.hot.schema.type_schema import TypeSchema
from engine.types.custom_constraints import Asker, CustomConstraint, Verdict
from engine.types.group_size import Adjust
from engine.types.nested_stack_view import Child, Member
from engine.types.operation_outcomes import (
    Away,
    Confirm,
    Done,
    Failed,
    Goal,
    Nest,
    Outcome,
    Replace,
    Stopped,
    Toward,
    Visit,
    Wait,
)
from engine.types.signal_urls import SignalUrl
from engine.words import Json, ResourceId, StackId

__all__ = [
    "Away", "Call", "Child", "Confirm", "Confirmation", "Done", "Failed", "Goal", "Member", "Nest",
    "Outcome", "Replace", "ResourceType", "Stopped", "Toward", "Visit", "Wait",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operation.

    properties: resolved, as they should be; defaults filled in. For delete: as they were.
    previous: resolved, as they were applied last; None for a create.
    changed: names of top-level properties that differ between the two; empty in an update that
    is tried again after it failed half way, when what is wanted is what was there before.
    attributes: as they are recorded now.
    progress: what the operation returned with `Wait` before, or None at the first call.
    attempts: how often this operation has failed and is tried again.
    kept: for an update or create that restores a snapshot, what `snapshot` gave; else None.
    confirmed: the answer to what the operation asked last with `Confirm`, or None.
    answers: data that people gave when they answered hooks of this node, by point.
    credential: what came with the request or the answer that let it go on, to act with in the
    cloud; "" for none. Not to be kept anywhere.
    signals: data that was sent to the resource so far, oldest first; early ones, too. A type that
    says so in its schema is called again when one comes while it waits.
    door: where to send it, for a type that takes signals. Its token is a secret. After
    ``Wait.awaits``, signals are those of that resource.
    awaited: the type of the resource whose signals are waited for; None: the stack has none.
    update_policy: of the template, resolved: how a group changes its members.
    child: for a type that holds a stack of its own, that stack; None when there is none (yet).
    superseded: the change that it is part of was ended early. What has begun may go on to its end;
    what only waits for somebody had better end with `Failed`, for something newer may wait for it.
    named: the properties of the resource that `ResourceType.names` names; None: there is none.
    hides: something among the properties is to be shown to nobody.
    adjusted: for an update that scales a group, how; else None.
    now: the database's time.
    """

    project: str
    stack_id: StackId
    stack_name: str
    resource_id: ResourceId
    resource_name: str
    operation_key: UUID
    now: datetime
    properties: Mapping[str, Json] = field(repr=False)
    previous: Mapping[str, Json] | None = field(default=None, repr=False)
    changed: frozenset[str] = frozenset()
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict, repr=False)
    attributes: Mapping[str, Json] = field(default_factory=dict, repr=False)
    progress: Json | None = field(default=None, repr=False)
    attempts: int = 0
    kept: Mapping[str, Json] | None = field(default=None, repr=False)
    confirmed: "Confirmation | None" = None
    answers: Mapping[str, Json] = field(default_factory=dict, repr=False)
    credential: str = field(default="", repr=False)
    signals: Sequence[Json] = field(default=(), repr=False)
    door: SignalUrl = field(default=SignalUrl(), repr=False)
    awaited: str | None = None
    update_policy: Mapping[str, Json] = field(default_factory=dict)
    child: Child | None = None
    superseded: bool = False
    named: Mapping[str, Json] | None = field(default=None, repr=False)
    hides: bool = False
    adjusted: Mapping[str, Json] | None = None

    @property
    def own_name(self) -> str:
        """A name for what is made; the same whenever this operation is called again."""
        return f"{self.stack_name}-{self.resource_name}-{self.operation_key.hex[:12]}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """accepted: go on; else undo what the step did, if that can be, and end with `Failed`."""

    step: str
    accepted: bool
    by: str
    reason: str = ""


class ResourceType(ABC):
    """A kind of resource: a schema and the operations on it.

    replaces_broken: after an update that failed half way, the next update makes a new one (as Heat
    does); False: it tries the update again. mends: an update mends whatever failed in it, even its
    making; it is never replaced for that. uses_credential: False: it acts on nothing outside, and
    its calls carry no credential. nests: it holds a stack of its own
    (engine/types/nested_commands.py), and may end its operations with `Nest`. gives_up: while it
    waits it is called again when its change is ended early (`Call.superseded`), to give up waiting.
    constraints: custom constraints that come with this type, for parameters of templates and
    properties of any type.
    """

    schema: TypeSchema
    replaces_broken: bool = True
    mends: bool = False
    uses_credential: bool = True
    nests: bool = False
    gives_up: bool = False
    constraints: Sequence[CustomConstraint] = ()

    @abstractmethod
    def create(self, call: Call) -> Outcome | Awaitable[Outcome]: ...

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Change in place. Called only when properties differ and all of them allow it."""
        return Replace()

    @abstractmethod
    def delete(self, call: Call) -> Outcome | Awaitable[Outcome]: ...

    def check(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Compare the real thing with what is recorded; Failed when it is not well.

        Done carries the attributes as they really are.
        """
        reason = f"CHECK not supported for {self.schema.name}"
        return Done(call.physical_id, call.attributes, call.data, reason)

    def adopt(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Take over what exists as ``call.physical_id``, and find out its attributes."""
        return self.check(call)

    def suspend(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Put it to rest without losing anything."""
        return Done(call.physical_id, call.attributes, call.data)

    def resume(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Wake it up again."""
        return Done(call.physical_id, call.attributes, call.data)

    def snapshot(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Keep what is needed to restore it: the ``data`` of Done, given back as ``call.kept``.

        Attributes and the resource's own data stay as they are.
        """
        return Done(call.physical_id, call.attributes)

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        """What ``get_resource`` gives: the physical id, or the name while there is none."""
        return physical_id or resource_name

    def needs_replace(self, call: Call) -> bool:
        """Whether this change of properties wants a new resource though the schema allows it."""
        return False

    def take_signal(self, data: Json, number: int) -> Json:
        """What is kept of data that is sent to a resource of this type.

        number: how many it has with this one. Raises Invalid; then nothing is kept, and whoever
        sent it is told.
        """
        return data

    def names(self, properties: Mapping[str, Json]) -> str | None:
        """For a type that nests: what get_resource gives of another resource of the stack whose
        properties it needs (`Call.named`); None: of none."""
        return None

    def adjust(self, properties: Mapping[str, Json]) -> Adjust | None:
        """For a type to which a signal means that a group is to get another size: how. The signal
        is not kept then."""
        return None

    def check_external(self, physical_id: str, asker: Asker) -> Verdict:
        """Say why a template's ``external_id`` cannot be taken, or None; asked before anything is
        stored. May be a coroutine function, like a constraint's `broken`."""
        return None

    def longest(self, properties: Mapping[str, Json]) -> float:
        """Seconds that an operation is told to take at most; 0: nothing is said of that.

        Values not known before creation are absent, and defaults are not filled in.
        """
        return 0

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        """Rules across properties; values not known before creation are absent from the map.

        place: of the properties, such as ``resources.a.properties``. Defaults are not filled in.
        """
