"""The observed state of a resource that owns a nested stack, by what the database says about the
nested stack. Pure.

It is about the nested stack itself. What differs inside is drift of the resources inside
(`engine.plan.nested_drift`).
"""

from dataclasses import dataclass

from engine.types.observation import PRESENT, Observation
from engine.words import UNDER_WAY, Action, ObservedState, TraversalState

_IS_GONE = "its nested stack does not exist"
GONE = Observation(ObservedState.MISSING, (), _IS_GONE, _IS_GONE)
_IS_DELETED = "its nested stack is being deleted"
_PARTLY_DELETED = "the delete of its nested stack did not complete"


@dataclass(frozen=True, slots=True)
class NestedStackState:
    """A nested stack that exists. action, state: of its last traversal. members: how many resources
    it has, without those that are deleted or were never created."""

    action: str
    state: TraversalState
    members: int


@dataclass(frozen=True, slots=True)
class AllowedSize:
    """How many members the definition of a group allows."""

    smallest: int
    largest: int

    def __str__(self) -> str:
        if self.smallest == self.largest:
            return str(self.smallest)
        return f"{self.smallest} to {self.largest}"


def observe_nested_stack(
    found: NestedStackState | None, size: AllowedSize | None = None
) -> Observation:
    """found: None: there is none. size: of a group; None: any."""
    if found is None:
        return GONE
    if found.action == Action.DELETE:
        if found.state in UNDER_WAY:
            return Observation.unknown(_IS_DELETED, _IS_DELETED)
        if found.state is TraversalState.COMPLETE:
            return GONE
        return _observe_degraded(_PARTLY_DELETED)
    if size is not None and not size.smallest <= found.members <= size.largest:
        members = "1 member" if found.members == 1 else f"{found.members} members"
        return _observe_degraded(f"it has {members}, and its definition says {size}")
    return PRESENT


def _observe_degraded(reason: str) -> Observation:
    return Observation(ObservedState.DEGRADED, (), reason, reason)
