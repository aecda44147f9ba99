"""What an operation of a resource type ends with. A closed union: `Outcome`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from engine.words import Json, Operation


@dataclass(frozen=True, slots=True)
class Done:
    """The operation has ended well.

    attributes: what ``get_attr`` reads from now on. data: what the type wants back at its next
    operation on this resource; never shown. reason: said with the resource's state. secret: names
    of the attributes that are secret, "" for the reference; None: those that the schema declares,
    and all that are not `public` where the properties hold secrets.
    """

    physical_id: str | None
    attributes: Mapping[str, Json] = field(default_factory=dict, repr=False)
    data: Mapping[str, Json] = field(default_factory=dict, repr=False)
    reason: str = ""
    secret: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Call me again at `until`, with this progress; sooner when I am woken, which a signal does.

    until: None: only when I am woken. awaits: another resource of the stack, whose signals wake me,
    and are in ``Call.signals`` then. reason: what is waited for, for people; no secret is in it.
    """

    until: datetime | None
    progress: Json = field(repr=False)
    reason: str = ""
    awaits: UUID | None = None


@dataclass(frozen=True, slots=True)
class Confirm:
    """Somebody may want to look before I go on: hold me at ``confirm-<step>``, if a rule says so.

    I am called again with this progress, and with the answer in ``Call.confirmed``; at once when
    nothing holds me. seen: what there is to look at, for the notice. Steps are named in
    ``TypeSchema.steps``.
    """

    step: str
    progress: Json = field(repr=False)
    seen: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Replace:
    """An update that cannot be done in place: make a new one instead."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The operation has ended badly. physical_id: what may have been left behind, if anything.

    retry: trying again helps (a conflict, a service that is away): the operation is called again,
    with the same key, after a pause, up to ``[engine] action_retry_limit`` times.
    """

    reason: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict, repr=False)
    retry: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """What the operation waited for was stopped: so is the traversal, and an update resumes it."""

    reason: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Toward:
    """Bring the stack inside to this template; make it, if there is none.

    template: a document, as it would be read from a file; None: the template that the resource's
    type names. parameters: by name. The environment is what the environment around says of what is
    inside the resource.
    """

    template: Mapping[str, Json] | None = field(repr=False)
    parameters: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Away:
    """Delete the stack inside, with all that is in it."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Check, suspend or resume the stack inside."""

    operation: Operation


Goal = Toward | Away | Visit


@dataclass(frozen=True, slots=True)
class Nest:
    """The stack inside is to be brought somewhere first: call me again when it has ended.

    step: names this within the operation (such as ``create`` or ``batch-2``). One step is carried
    out once, whoever crashes meanwhile: I am called again with ``Call.child.step`` equal to it when
    it has ended, well or not.
    """

    step: str
    goal: Goal
    progress: Json = field(default=None, repr=False)


Outcome = Done | Wait | Confirm | Replace | Failed | Stopped | Nest
