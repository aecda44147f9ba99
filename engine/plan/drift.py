"""Drift: resources whose observed state differs from the recorded one, and how `converge` repairs
them. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from uuid import UUID

from engine.plan.draft import ExistingResource
from engine.words import ObservedState, ResourceAction, Status

#: The observed states that `converge` repairs, and the action that its resource then has, with the
#: status FAILED. After a failed check, an update replaces a resource; after a failed update, it
#: repeats the update, or replaces the resource if its type says so (`replaces_tainted`). An unknown
#: state is never repaired: the resource may be as it should be.
REPAIRED_AS: Mapping[ObservedState, ResourceAction] = MappingProxyType(
    {
        ObservedState.MISSING: ResourceAction.CHECK,
        ObservedState.CHANGED: ResourceAction.UPDATE,
        ObservedState.DEGRADED: ResourceAction.UPDATE,
    }
)


@dataclass(frozen=True, slots=True)
class DriftMarks:
    """The resources that a converge repairs, and the actions that they get.

    actions: by ID; by_name: by stack and name. owners: IDs of the resources that own the nested
    stacks of these.
    """

    actions: Mapping[UUID, ResourceAction] = field(default_factory=dict)
    by_name: Mapping[tuple[UUID, str], ResourceAction] = field(default_factory=dict)
    owners: frozenset[UUID] = frozenset()

    def mark(self, row: ExistingResource) -> ExistingResource:
        """The row as the converge plans it."""
        digest = "" if row.id in self.owners else row.digest
        action = self.actions.get(row.id)
        if action is None:
            return row if digest == row.digest else replace(row, digest=digest)
        return replace(row, action=action, status=Status.FAILED, digest=digest)


#: Without a converge.
NO_MARKS = DriftMarks()
