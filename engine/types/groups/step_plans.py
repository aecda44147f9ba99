"""The plans of groups: scale in, then change in batches or all at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.types.groups.group import Policy, next_batch
from engine.types.groups.group_steps import GroupStep, Progress
from engine.types.groups.member_changes import (
    BodyOf,
    aged_change,
    by_index,
    change_all,
    indexed_change,
    indexed_names,
    is_old,
    keep_only,
)
from engine.types.groups.member_template import CurrentMembers
from engine.words import Json, Point

#: Kinds of steps.
SCALE_IN: Final = "scale-in"
BATCH: Final = "batch"
MEMBERS: Final = "members"
#: In the group's records: names that are never used again.
REMOVED: Final = "removed"
#: In the group's records: the final size.
SIZE: Final = "size"


@dataclass(frozen=True, slots=True)
class IndexedPlan:
    """The plan of a group whose members are numbered.

    find_removed(current members): the names that must not be used (again). has_secrets: the members
    may have secrets. policy: None: all members change at once. creates: the operation is create.
    """

    target: int
    body_of: BodyOf
    find_removed: Callable[[CurrentMembers], Sequence[str]]
    has_secrets: bool = False
    policy: Policy | None = None
    creates: bool = False

    def compute_records(self, current: CurrentMembers) -> Mapping[str, Json]:
        return {REMOVED: by_index({*self.find_removed(current)})}

    def step(
        self, current: CurrentMembers, at: Progress, names: Sequence[str] | None
    ) -> GroupStep | None:
        removed = at.kept[REMOVED]
        wanted = indexed_names(self.target, removed)
        counted = [name for name in by_index([*current.bodies]) if name not in removed]
        old = {
            name
            for name in current.healthy.intersection(wanted)
            if is_old(current, name, self.body_of)
        }
        policy = self.policy if self.creates or old or at.last == BATCH else None
        if len(counted) > self.target and at.last != BATCH:
            return self._scale_in(current, counted, removed, names, rolls=policy is not None)
        if policy is not None:
            up_to_date = len(current.healthy.intersection(wanted)) - len(old)
            batch = next_batch(self.target, len(counted), up_to_date, policy)
            if batch is not None:
                size = indexed_names(batch.size, removed)
                change = indexed_change(current, size, wanted, batch.changes, self.body_of, names)
                return GroupStep(
                    BATCH, change, "" if self.creates else Point.PRE_BATCH, policy.pause
                )
        change = change_all(current, wanted, self.body_of)
        return GroupStep(MEMBERS, change) if change.any else None

    def _scale_in(
        self, current: CurrentMembers, counted: Sequence[str], removed: Sequence[str],
        names: Sequence[str] | None, *, rolls: bool,
    ) -> GroupStep:  # fmt: skip
        """Remove the highest numbers, or the chosen members, whose numbers are not used again."""
        if names is not None:
            last = by_index({*counted}.difference(names))[-1:]
            early = [one for one in names if last and by_index([one, *last])[0] == one]
            removed = by_index({*removed, *early})
        wanted = indexed_names(self.target, removed)
        change = keep_only(current, wanted) if rolls else change_all(current, wanted, self.body_of)
        return GroupStep(
            SCALE_IN, change.with_open(counted), Point.PRE_SCALE_IN, kept={REMOVED: removed}
        )


@dataclass(frozen=True, slots=True)
class AgedPlan:
    """The plan of a group whose members have random names and are ordered by age.

    find_size(current members): the final size of the group. new_names(number of the step, current
    members): names for new members.
    """

    find_size: Callable[[CurrentMembers], int]
    body_of: BodyOf
    new_names: Callable[[int, CurrentMembers], Iterator[str]]
    has_secrets: bool = False
    policy: Policy | None = None

    def compute_records(self, current: CurrentMembers) -> Mapping[str, Json]:
        return {SIZE: self.find_size(current)}

    def step(
        self, current: CurrentMembers, at: Progress, names: Sequence[str] | None
    ) -> GroupStep | None:
        target = at.kept[SIZE]
        old = {name for name in current.healthy if is_old(current, name, self.body_of)}
        policy = self.policy if old or at.last == BATCH else None
        going = [*current.bodies]
        if len(going) > target and at.last != BATCH:
            victims = going[: len(going) - target] if names is None else names
            stay = [name for name in going if name not in victims]
            rolls = policy is not None
            change = keep_only(current, stay) if rolls else change_all(current, stay, self.body_of)
            return GroupStep(SCALE_IN, change.with_open(going), Point.PRE_SCALE_IN)
        fresh = self.new_names(at.number, current)
        if policy is not None:
            up_to_date = len(current.healthy) - len(old)
            batch = next_batch(target, len(going), up_to_date, policy)
            if batch is not None:
                change = aged_change(current, batch.size, batch.changes, self.body_of, fresh, names)
                return GroupStep(BATCH, change, Point.PRE_BATCH, policy.pause)
        whole = [*going, *(next(fresh) for _ in range(target - len(going)))]
        change = change_all(current, whole, self.body_of)
        return GroupStep(MEMBERS, change) if change.any else None
