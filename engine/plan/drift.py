"""Drift: resources whose observed state differs from the recorded one, and how `converge` repairs
them. Pure.
"""

from collections.abc import Mapping
from types import MappingProxyType

from engine.words import ObservedState, ResourceAction

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
