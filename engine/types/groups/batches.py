"""How many members change at a time, so that enough of them stay in service."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """most: members that change in one batch. in_service: members that are to be there untouched
    meanwhile, as far as there are so many. pause: seconds between two batches."""

    most: int
    in_service: int = 0
    pause: float = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """size: of the group after it. changes: members that are new or changed in it."""

    size: int
    changes: int


def next_batch(target: int, current: int, up_to_date: int, policy: Policy) -> Batch | None:
    """Return the next batch of a group on its way to a size and a definition; None: it is there.

    current: members there are. up_to_date: those of them that already are as they should be.

    Where changing so many would leave too few in service, the group grows for a while: the new ones
    are up to date, and a later batch takes away what is too much.
    """
    if up_to_date >= current == target:
        return None
    changes = min(policy.most, max(target - up_to_date, 0))
    untouched = max(min(current, target - changes), min(policy.in_service, target, current))
    return Batch(untouched + changes, changes)
