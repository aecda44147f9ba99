"""The outcomes of an operation of a resource type. A closed union: `Outcome`.

public_reason: the part of `reason` that is shown if the resource depends on a secret, "" for none.
It contains only the type's own words: no property, response, output, exception text or value
computed from one. public_seen: the entries of `seen` to which the same applies.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from engine.back_off import BackOff
from engine.words import Json, Operation


@dataclass(frozen=True, slots=True)
class Done:
    """The operation succeeded.

    attributes: the new values for ``get_attr``. data: private data of the type, passed to its next
    operation on this resource. reason: the reason of the resource's status. secret: the names of
    secret attributes, "" for the reference; None: those that the schema declares, and all that are
    not `public` if a property is secret.
    """

    physical_id: str | None
    attributes: Mapping[str, Json] = field(default_factory=dict, repr=False)
    data: Mapping[str, Json] = field(default_factory=dict, repr=False)
    reason: str = ""
    secret: Collection[str] | None = None
    public_reason: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Call the operation again at `until` with this progress, or earlier when a signal arrives.

    until: None: only when a signal arrives. signal_resource_id: another resource of the stack,
    whose signals wake the operation and are then in ``Call.signals``. reason: what the operation
    waits for; must not contain secrets.
    """

    until: datetime | None
    progress: Json = field(repr=False)
    reason: str = ""
    signal_resource_id: UUID | None = None
    public_reason: str = ""


@dataclass(frozen=True, slots=True)
class Confirm:
    """Open the hooks at ``confirm-<step>``, if a rule matches.

    The operation is called again with this progress and the answer in ``Call.confirmation``; at
    once if no rule matches. seen: data for the reviewer, in the event. ``TypeSchema.steps`` lists
    the steps of a type.
    """

    step: str
    progress: Json = field(repr=False)
    seen: Mapping[str, Json] = field(default_factory=dict, repr=False)
    public_seen: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Replace:
    """An update is impossible in place: replace the resource."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The operation failed. physical_id: of the physical resource that may exist, if any.

    retry: the failure is temporary (a conflict, an unavailable service). The operation is called
    again with the same key after a pause, at most ``[engine] action_retry_limit`` times.
    """

    reason: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict, repr=False)
    retry: bool = False
    public_reason: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The nested or remote stack was stopped. The traversal stops, too."""

    reason: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict, repr=False)
    public_reason: str = ""


@dataclass(frozen=True, slots=True)
class ReconcileNested:
    """Update the nested stack to this template, or create it.

    template: the parsed template; None: the template file that the resource's type names, or that
    with the URL `file`. parameters: by name. The environment is the part of the parent's
    environment that applies to the resource. adopts: `resources` of an exported nested stack: their
    physical resources are adopted. certain: in a dry run, False if unknown values decide which
    resources the template has.
    """

    template: Mapping[str, Json] | None = field(repr=False)
    parameters: Mapping[str, Json] = field(default_factory=dict, repr=False)
    adopts: Mapping[str, Json] | None = field(default=None, repr=False)
    certain: bool = True
    file: str = ""


@dataclass(frozen=True, slots=True)
class RestoreNested:
    """Return the nested stack to a snapshot of it. parameters: as in `ReconcileNested`, for the
    template file that the resource's type names, or `file`; None: the template and the parameters
    of the snapshot."""

    snapshot_id: UUID
    parameters: Mapping[str, Json] | None = field(default=None, repr=False)
    file: str = ""


@dataclass(frozen=True, slots=True)
class DeleteNested:
    """Delete the nested stack with all its resources."""


@dataclass(frozen=True, slots=True)
class ActOnNested:
    """Check, suspend, resume or snapshot the nested stack. The ID of a snapshot is the operation
    key."""

    operation: Operation


NestedCommand = ReconcileNested | RestoreNested | DeleteNested | ActOnNested


@dataclass(frozen=True, slots=True)
class RunNested:
    """Run a command on the nested stack, and call the operation again when it has ended.

    step: the name of the command within the operation, such as ``create`` or ``batch-2``. Each step
    runs once, even after a crash. When it has succeeded or failed, the operation is called again
    with ``Call.child.step`` equal to it.
    """

    step: str
    goal: NestedCommand
    progress: Json = field(default=None, repr=False)


#: The reason of a cancelled operation.
CANCELLED = "the change was cancelled before the operation ended"

Outcome = Done | Wait | Confirm | Replace | Failed | Stopped | RunNested


#: Seconds before the first poll; each further interval is 1.5 times as long, up to the longest.
FIRST = 0.2
_GROWTH = 1.5


def next_poll(now: datetime, tries: int, max_pause: float) -> datetime:
    """The time of the next poll. tries: polls so far. max_pause: in seconds."""
    return now + timedelta(seconds=BackOff(FIRST, max_pause, _GROWTH).ceiling(tries + 1))
