"""Drift: resources whose observed state differs from the recorded one, and how `converge` repairs
them. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
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


#: Actions that change nothing: the recorded state holds also if they fail.
UNCHANGING = frozenset({ResourceAction.CHECK, ResourceAction.SNAPSHOT})


def is_applied(action: ResourceAction, status: Status, *, marked: bool) -> bool:
    """Whether the recorded state of a resource was applied, so that differences from it are drift.
    Otherwise, its last operation failed, and the next update repeats it.

    marked: a converge has marked it (`DriftMarks`), which is recorded as a failure, and no
    operation on it has begun since (`is_marked_after`).
    """
    return status is Status.COMPLETE or action in UNCHANGING or marked


def is_marked_after(*, marked: bool, begun: bool) -> bool:
    """Whether a resource stays marked after a write of its row. begun: by a node whose operation
    has begun, which can have changed the resource. All other writes leave it as it was: of a node
    that a hook refused, of a user who protects the resource, of the next converge."""
    return marked and not begun


def last_look(
    state: ObservedState,
    written_at: datetime,
    stack_observed_at: datetime | None,
    operated_since: datetime | None,
) -> datetime:
    """Return when a resource that differs was observed last. Only a change of its observed state is
    written, at `written_at`; an observation of its stack in which it was the same is not.

    stack_observed_at: start of the last observation of the whole stack that asked a provider; None:
    there was none. It has observed every resource but those whose provider got no requests, which
    are unknown, and those with an operation under way. operated_since: the start of that; None:
    there is none.
    """
    if state is ObservedState.UNKNOWN or not in_observation(stack_observed_at, operated_since):
        return written_at
    return max(written_at, stack_observed_at or written_at)


def in_observation(started_at: datetime | None, operated_since: datetime | None) -> bool:
    """Whether an observation of a stack has included a resource. started_at: of the observation;
    None: there was none. operated_since: start of the operation under way, which excludes the
    resource; None: there is none."""
    return started_at is not None and (operated_since is None or started_at < operated_since)


@dataclass(frozen=True, slots=True)
class DriftMarks:
    """The resources that a converge repairs, and the actions that they get.

    actions: by ID; by_name: by stack and name. owners: IDs of the resources that own the nested
    stacks of these. drift: by ID, a text that changes with the state and the differences.
    """

    actions: Mapping[UUID, ResourceAction] = field(default_factory=dict)
    by_name: Mapping[tuple[UUID, str], ResourceAction] = field(default_factory=dict)
    owners: frozenset[UUID] = frozenset()
    drift: Mapping[UUID, str] = field(default_factory=dict)

    def cover(self, plan_digest: str) -> str:
        """The digest of a plan that covers the drift that it repairs, so that a converge with the
        digest repairs nothing else."""
        if not self.drift:
            return plan_digest
        drift = sorted(f"{one} {text}" for one, text in self.drift.items())
        return sha256("\n".join((plan_digest, *drift)).encode()).hexdigest()

    def mark(self, row: ExistingResource) -> ExistingResource:
        """The row as the converge plans it."""
        digest = "" if row.id in self.owners else row.digest
        action = self.actions.get(row.id)
        if action is None:
            return row if digest == row.digest else replace(row, digest=digest)
        return replace(row, action=action, status=Status.FAILED, digest=digest)


#: Without a converge.
NO_MARKS = DriftMarks()


@dataclass(frozen=True, slots=True)
class ConvergeRound:
    """A round of a converge, from 1, and how many there may be."""

    round: int
    rounds: int

    def __str__(self) -> str:
        return f"round {self.round} of {self.rounds}"

    @property
    def is_last(self) -> bool:
        return self.round >= self.rounds

    @property
    def next(self) -> "ConvergeRound":
        return ConvergeRound(self.round + 1, self.rounds)

    def as_json(self) -> dict[str, int]:
        return {"round": self.round, "rounds": self.rounds}


#: Resources that a sentence lists.
MAX_LISTED = 5


def describe_resources(found: Sequence[tuple[str, str]], what: tuple[str, str]) -> str:
    """``2 resources still differ: a (changed), b (missing)``. found: (path, state). what: for one
    resource, and for several."""
    count = f"1 resource {what[0]}" if len(found) == 1 else f"{len(found)} resources {what[1]}"
    return f"{count}: {list_resources(found)}"


def list_resources(found: Sequence[tuple[str, str]]) -> str:
    """``a (changed), b (missing) and 3 more``. found: as in `describe_resources`."""
    listed = ", ".join(f"{path} ({state})" for path, state in found[:MAX_LISTED])
    return listed + (f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else "")
