"""The new size of a group after the adjustment of a scaling policy."""

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
class SizeAdjustment:
    """The adjustment that a policy applies to a group at each signal.

    group: the value of get_resource for the group. amount, min_step: see `adjusted_size`.
    cooldown: seconds for which no policy adjusts the group again; None: the group's own cooldown.
    """

    group: str
    kind: Adjustment
    amount: float
    min_step: int = 0
    cooldown: float | None = None

    @property
    def description(self) -> str:
        return f"{self.kind}: {self.amount:g}"


@dataclass(frozen=True, slots=True)
class GroupSize:
    """The current size of a group. busy: the reason why nothing may change it now, or "". size: the
    number of members that have not failed. cooldown_until: the end of the cooldown."""

    busy: str
    size: int
    min_size: int
    max_size: int
    cooldown_until: datetime | None = None


def decide_size(adjustment: SizeAdjustment, group: GroupSize, now: datetime) -> int | str:
    """Return the group's new size, or the reason why it does not change."""
    if group.busy:
        return group.busy
    if group.cooldown_until is not None and now < group.cooldown_until:
        return f"it is in cooldown until {group.cooldown_until:%Y-%m-%d %H:%M:%S} UTC"
    size = adjusted_size(
        group.size, adjustment.kind, adjustment.amount, min_step=adjustment.min_step,
        min_size=group.min_size, max_size=group.max_size,
    )  # fmt: skip
    if size == group.size:
        return f"it already has {size} members"
    return size


def adjusted_size(
    current: int,
    kind: Adjustment,
    amount: float,
    *,
    min_step: int = 0,
    min_size: int,
    max_size: int,
) -> int:
    """Return the new size, within bounds.

    amount: members, or a percentage of the current size. min_step: the minimum number of members
    that a percentage adds or removes. least, max_size: the bounds of the size.
    """
    size = _SIZES[kind](current, amount, min_step)
    return max(min_size, min(max_size, size))


def _percent(current: int, amount: float, min_step: int) -> int:
    """Fractions are rounded toward zero; a change of less than one member counts as one."""
    exact = current * amount / 100
    outward = abs(exact) < 1
    change = (ceil if (exact > 0) == outward else floor)(exact)
    if min_step > abs(change) and amount:
        change = min_step if amount > 0 else -min_step
    return current + change


_SIZES: Mapping[Adjustment, Callable[[int, float, int], int]] = {
    Adjustment.CHANGE: lambda current, amount, min_step: current + int(amount),
    Adjustment.EXACT: lambda current, amount, min_step: int(amount),
    Adjustment.PERCENT: _percent,
}
