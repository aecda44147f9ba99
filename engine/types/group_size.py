"""What size a group gets when a policy adjusts it, or why it keeps the one it has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil, floor


class Adjustment(StrEnum):
    CHANGE = "change_in_capacity"
    EXACT = "exact_capacity"
    PERCENT = "percent_change_in_capacity"


@dataclass(frozen=True, slots=True)
class Adjust:
    """What a policy does to a group at each signal.

    group: what get_resource gives of it. amount, least_step: see `adjusted`. cooldown: seconds for
    which no policy adjusts the group again; None: what the group says.
    """

    group: str
    kind: Adjustment
    amount: float
    least_step: int = 0
    cooldown: float | None = None

    @property
    def words(self) -> str:
        return f"{self.kind}: {self.amount:g}"


@dataclass(frozen=True, slots=True)
class Adjustable:
    """A group as it is. busy: why nothing may change it now, or "". size: of members that did not
    fail. least, most: its bounds. rests_until: until when no policy adjusts it."""

    busy: str
    size: int
    least: int
    most: int
    rests_until: datetime | None = None


def judge(adjust: Adjust, group: Adjustable, now: datetime) -> int | str:
    """Return the group's new size, or why it stays as it is."""
    if group.busy:
        return group.busy
    if group.rests_until is not None and now < group.rests_until:
        return f"it is in cooldown until {group.rests_until:%Y-%m-%d %H:%M:%S} UTC"
    size = adjusted(
        group.size, adjust.kind, adjust.amount, least_step=adjust.least_step,
        least=group.least, most=group.most,
    )  # fmt: skip
    if size == group.size:
        return f"it has {size} members, and is to have {size}"
    return size


def adjusted(
    current: int, kind: Adjustment, amount: float, *, least_step: int = 0, least: int, most: int
) -> int:
    """Return the new size, within bounds.

    amount: members, or per cent of those there are. least_step: members that a change by per cent
    comes to at the least. least, most: the bounds of the size.
    """
    size = _SIZES[kind](current, amount, least_step)
    return max(least, min(most, size))


def _percent(current: int, amount: float, least_step: int) -> int:
    """A part of a member counts as a whole one only where it is all there is."""
    exact = current * amount / 100
    outward = abs(exact) < 1
    change = (ceil if (exact > 0) == outward else floor)(exact)
    if least_step > abs(change) and amount:
        change = least_step if amount > 0 else -least_step
    return current + change


_SIZES: Mapping[Adjustment, Callable[[int, float, int], int]] = {
    Adjustment.CHANGE: lambda current, amount, least_step: current + int(amount),
    Adjustment.EXACT: lambda current, amount, least_step: int(amount),
    Adjustment.PERCENT: _percent,
}
