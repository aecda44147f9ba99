"""Rolling updates: how many members change at a time, so that enough stay in service."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """most: members that change in one batch. in_service: the minimum number of members that do not
    change meanwhile, if there are that many. pause: seconds between two batches."""

    most: int
    in_service: int = 0
    pause: float = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """size: of the group after the batch. changes: members that it creates or changes."""

    size: int
    changes: int


def next_batch(target: int, current: int, up_to_date: int, policy: Policy) -> Batch | None:
    """Return the next batch toward a size and a definition; None if the group has both.

    current: the number of members. up_to_date: those that already have the new definition.

    If a batch would leave too few members in service, the group grows temporarily: the new members
    are up to date, and a later batch removes the surplus.
    """
    if up_to_date >= current == target:
        return None
    changes = min(policy.most, max(target - up_to_date, 0))
    untouched = max(min(current, target - changes), min(policy.in_service, target, current))
    return Batch(untouched + changes, changes)
