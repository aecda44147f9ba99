"""What size a group gets when a policy adjusts it."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from math import ceil, floor


class Adjustment(StrEnum):
    CHANGE = "change_in_capacity"
    EXACT = "exact_capacity"
    PERCENT = "percent_change_in_capacity"


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
