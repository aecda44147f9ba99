"""A budget of requests to one endpoint, divided fairly between projects. Pure: time is an argument.

Requests are paced as by `engine.rate_limiter`: after a burst of BURST seconds, there are as many as
the budget allows. A project that needs more than there are now gets a turn: a later time, and how
many requests it may send then. Turns are of one burst at most, and a project has one at a time, so
projects take turns, and one that needs little does not wait for all that another one needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

#: Seconds of the budget that may be used at once.
BURST = 10.0
#: Seconds after the time of a turn for which it is kept. Then the project begins anew.
KEPT = 60.0
#: Seconds, for rounding.
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Turn:
    """From `at` on, a project may send `count` requests."""

    at: float
    count: int


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """count: requests that may be sent now. wait: seconds until more may be; 0.0: all may be sent
    now."""

    count: int
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class BudgetState:
    """Of one endpoint. paid: until then, the budget is used, turns included. turns: by project."""

    paid: float = 0.0
    turns: Mapping[str, Turn] = field(default_factory=dict)


def take(
    state: BudgetState, per_minute: float, project: str, need: int, now: float, *, spare: int = 0
) -> tuple[BudgetState, BudgetGrant]:
    """Take up to `need` requests; the rest gets a turn. per_minute: above 0. now: seconds. spare:
    so many more are taken if they are there, and get no turn."""
    turns = {key: turn for key, turn in state.turns.items() if turn.at + KEPT >= now}
    turn = turns.pop(project, None)
    if turn is not None and turn.at > now + _TOLERANCE:
        unchanged = replace(state, turns=turns | {project: turn})
        return unchanged, BudgetGrant(0, turn.at - now)
    price, burst, paid = 60.0 / per_minute, burst_of(per_minute), max(state.paid, now)
    if turn is not None:
        count = min(need + spare, turn.count)
        paid = max(paid - price * (turn.count - count), now)
    else:
        count = min(need + spare, max(int((now + burst - paid + _TOLERANCE) / price), 0))
        paid += price * count
    if count >= need:
        return BudgetState(paid, turns), BudgetGrant(count)
    later = min(need - count, max(int((burst + _TOLERANCE) / price), 1))
    paid += price * later
    at = max(paid - burst, now)
    return BudgetState(paid, turns | {project: Turn(at, later)}), BudgetGrant(count, at - now)


def charge(state: BudgetState, per_minute: float, count: int, now: float) -> BudgetState:
    """Count requests that were sent in addition to those taken; negative: that were not sent."""
    paid = max(state.paid, now) + 60.0 / per_minute * count
    return replace(state, paid=max(paid, now))


def burst_of(per_minute: float) -> float:
    """Seconds of the budget that may be used at once: at least for one request."""
    return max(BURST, 60.0 / per_minute)
