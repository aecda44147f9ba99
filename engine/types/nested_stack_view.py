"""The stack inside of a resource, as the type that holds it sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.words import Json, StackId, TraversalState


@dataclass(frozen=True, slots=True)
class Member:
    """A resource of the stack inside one, as it is now; what was replaced is not among them.

    status: of its action. created_at: when it was planned for the first time. secret: names of its
    secret attributes, "" for its reference and "*" for all attributes.
    """

    name: str
    type: str
    action: str
    status: str
    physical_id: str | None
    reference: Json = field(repr=False)
    attributes: Mapping[str, Json] = field(repr=False)
    created_at: datetime
    secret: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """The stack inside of a resource.

    step: what it was brought to last by this very operation (`Nest.step`); "" when this operation
    has not had it do anything yet. state: what became of that, or of whatever it did before: a type
    sees COMPLETE, FAILED or STOPPED; or RUNNING, while the stack does something of its own, which
    the next step supersedes. members: in the order of their creation. outputs: by name; None where
    one cannot be worked out. secret_outputs: names of those made from secrets. template,
    parameters: what it was brought to last, well or not, as `Toward` had them, or as the file says.
    """

    id: StackId
    name: str
    step: str
    state: TraversalState
    reason: str
    members: Sequence[Member] = field(default=(), repr=False)
    outputs: Mapping[str, Json] = field(default_factory=dict, repr=False)
    template: Mapping[str, Json] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Json] = field(default_factory=dict, repr=False)
    secret_outputs: frozenset[str] = frozenset()
