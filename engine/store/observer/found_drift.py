"""Resources in which observations that have ended now have found drift.

Unchanged drift is not written again, so its row does not say that an observation has found it once
more: the observer hands that over to what follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class FoundDrift:
    """Of one stack. root_id: of its tree. resources: their IDs. at: when the observation began."""

    root_id: UUID
    stack_id: UUID
    resources: Sequence[UUID]
    at: datetime


def split_found(found: Sequence[FoundDrift]) -> tuple[list[UUID], list[UUID], list[datetime]]:
    """As columns: stack, resource, and when its observation began."""
    rows = [(one.stack_id, key, one.at) for one in found for key in one.resources]
    return [one[0] for one in rows], [one[1] for one in rows], [one[2] for one in rows]
