"""A budget of requests to one endpoint, divided fairly between projects. Pure: time is an argument.

Requests are paced as by `engine.rate_limiter`: after a burst of BURST seconds, there are as many as
the budget allows. A project that needs more than there are now gets a turn: a later time, and how
many requests it may send then. Turns are of one burst at most, and a project has one at a time, so
projects take turns, and one that needs little does not wait for all that another one needs.

No project has to come at the time of its turn: a turn that is used late is used when there are
requests, before those that come later, and one that is not used is given back. What a project sends
without a turn is of what no turn needs, or its debt, which its own next turns pay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

#: Seconds of the budget that may be used at once.
BURST = 10.0
#: Seconds after the time of a turn for which its requests are kept from others.
KEPT = 60.0
#: Seconds after the time of a turn for which it precedes new ones. Then the project begins anew.
HONOURED = 600.0
#: Seconds, or requests, for rounding.
_TOLERANCE = 1e-5


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
    """Of one endpoint. paid: until then, the budget is used, turns included. turns, debts
    (requests): by project."""

    paid: float = 0.0
    turns: Mapping[str, Turn] = field(default_factory=dict)
    debts: Mapping[str, float] = field(default_factory=dict)


def take(
    state: BudgetState, per_minute: float, project: str, need: int, now: float, *, spare: int = 0
) -> tuple[BudgetState, BudgetGrant]:
    """Take up to `need` requests; the rest gets a turn. The debt of the project is paid first.
    per_minute: above 0. now: seconds. spare: so many more are taken if they are there, and get no
    turn."""
    price, burst = 60.0 / per_minute, burst_of(per_minute)
    state, used = _at(state, price, now)
    turns, debts = dict(state.turns), dict(state.debts)
    turn = turns.pop(project, None)
    if turn is not None and turn.at > now + _TOLERANCE:
        return state, BudgetGrant(0, turn.at - now)
    debt = debts.pop(project, 0.0)
    owed = _whole(debt)
    wanted = need + owed
    room = _room(used, price, burst, now)
    may = room - _count_kept(turns, now) if turn is None else min(room, turn.count)
    count = max(min(wanted + spare, may), 0)
    used += price * count
    paid_back = min(owed, count)
    if debt > paid_back:
        debts[project] = debt - paid_back
    if count < wanted:
        later = min(wanted - count, max(int((burst + _TOLERANCE) / price), 1))
        if turn is not None and count < turn.count:
            # Others have used theirs late. It does not wait for those that are later than itself.
            later = min(later, turn.count - count)
            at = _next_at(used + price * later - burst, turns, price, now)
        else:
            at = used + price * (_count_kept(turns, now) + later) - burst
        turns[project] = Turn(max(at, now), later)
    paid = used + price * sum(one.count for one in turns.values())
    wait = turns[project].at - now if project in turns else 0.0
    return BudgetState(paid, turns, debts), BudgetGrant(count - paid_back, wait)


def charge(
    state: BudgetState, per_minute: float, project: str, count: int, now: float
) -> tuple[BudgetState, int]:
    """Count requests that a project has sent in addition to those taken; negative: that it has not
    sent. Returns how many of them are its debt now: those that the budget has not left after all
    turns."""
    price = 60.0 / per_minute
    state, used = _at(state, price, now)
    room = _room(used, price, burst_of(per_minute), now)
    free = max(min(count, room - _count_kept(state.turns, now)), 0)
    debt = max(count - free, 0)
    charged = min(count, free)
    promised = price * sum(one.count for one in state.turns.values())
    paid = max(used + price * charged, now) + promised
    debts = {**state.debts, project: state.debts.get(project, 0.0) + debt} if debt else state.debts
    return replace(state, paid=paid, debts=debts), debt


def burst_of(per_minute: float) -> float:
    """Seconds of the budget that may be used at once: at least for one request."""
    return max(BURST, 60.0 / per_minute)


def _at(state: BudgetState, price: float, now: float) -> tuple[BudgetState, float]:
    """The state without turns that are not honoured any more, and until when the budget is used,
    turns not included. Requests that were left unused pay debts. Times that are too far away for
    this budget are of a clock that was ahead, or of a lower budget."""
    promised = price * sum(turn.count for turn in state.turns.values())
    burst = max(BURST, price)
    used = min(state.paid - promised, now + burst)
    turns = {
        key: replace(turn, at=min(turn.at, now + burst + promised))
        for key, turn in state.turns.items()
        if turn.at + HONOURED >= now
    }
    unused, debts = max(now - used, 0.0) / price, dict[str, float]()
    for key, debt in state.debts.items():
        if debt > unused:
            debts[key] = debt - unused
        unused = max(unused - debt, 0.0)
    used = max(used, now)
    paid = used + price * sum(turn.count for turn in turns.values())
    return BudgetState(paid, turns, debts), used


def _room(used: float, price: float, burst: float, now: float) -> int:
    return max(int((now + burst - used + _TOLERANCE) / price), 0)


def _whole(debt: float) -> int:
    return -int(-(debt - _TOLERANCE) // 1)


def _count_kept(turns: Mapping[str, Turn], now: float) -> int:
    """Requests that are kept from projects without a turn."""
    return sum(turn.count for turn in turns.values() if turn.at + KEPT >= now)


def _next_at(at: float, turns: Mapping[str, Turn], price: float, now: float) -> float:
    """When a turn can be used of which the budget has not enough now, besides turns before it."""
    for turn in sorted((one for one in turns.values() if one.at > now), key=lambda one: one.at):
        if turn.at > at:
            break
        at += price * turn.count
    return at
