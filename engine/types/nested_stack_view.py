"""The nested stack of a resource, as the resource's type sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.words import Json, StackId, TraversalState


@dataclass(frozen=True, slots=True)
class Member:
    """A current resource of the nested stack. Replaced resources are not included.

    status: of its action. created_at: when it was first planned. secret: the names of its secret
    attributes, "" for its reference and "*" for all attributes.
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
    """The nested stack of a resource.

    step: the last step of this operation that ran on it (`RunNested.step`); "" before the first.
    state: the result of that step, or of an earlier operation: COMPLETE, FAILED or STOPPED. RUNNING
    means that the stack runs an action of its own, which the next step supersedes. members: in the
    order of their creation. outputs: by name; None for an output that cannot be evaluated.
    secret_outputs: the names of outputs computed from secrets. template, parameters: of the last
    step, even if it failed: as in `ReconcileNested`, or as the template file defines them.
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
