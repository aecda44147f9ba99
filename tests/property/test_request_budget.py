"""Budgets of requests: never exceeded, used up if there is demand, and fair between projects."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.request_budget import HONOURED, KEPT, BudgetGrant, BudgetState, burst_of, charge, take

RATES = st.floats(0.5, 600.0)
PROJECTS = "abcd"


class Asking:
    """A project that wants many requests, and asks again when it may."""

    def __init__(self, name: str, wants: int) -> None:
        self.name, self.wants, self.sent, self.at = name, wants, 0, 0.0


def run(rate: float, projects: list[Asking], seconds: float) -> list[tuple[float, str, int]]:
    """Simulate; return when each project sent how many requests."""
    state, sent = BudgetState(), list[tuple[float, str, int]]()
    while left := [one for one in projects if one.sent < one.wants]:
        one = min(left, key=lambda other: other.at)
        if one.at > seconds:
            break
        state, grant = take(state, rate, one.name, one.wants - one.sent, one.at)
        one.sent += grant.count
        sent.append((one.at, one.name, grant.count))
        assert grant.wait > 0 or one.sent == one.wants
        one.at += grant.wait
    return sent


@given(RATES, st.dictionaries(st.sampled_from(PROJECTS), st.integers(1, 300), min_size=1))
def test_no_minute_has_more_requests_than_the_budget_and_a_burst(
    rate: float, wants: dict[str, int]
) -> None:
    sent = run(rate, [Asking(name, count) for name, count in wants.items()], 3_600)
    for start, _, _ in sent:
        within = sum(count for at, _, count in sent if start <= at < start + 60)
        assert within <= rate * (60 + burst_of(rate)) / 60 + 1


@given(RATES, st.dictionaries(st.sampled_from(PROJECTS), st.integers(1, 300), min_size=1))
def test_the_budget_is_used_while_there_is_demand(rate: float, wants: dict[str, int]) -> None:
    projects = [Asking(name, count) for name, count in wants.items()]
    run(rate, projects, 1e9)
    assert all(one.sent == one.wants for one in projects)
    # The last request is sent when the budget allows it, not a turn later.
    total = sum(wants.values())
    assert max(one.at for one in projects) <= total * 60 / rate + 0.001


@given(st.floats(6.0, 600.0), st.integers(2, 4), st.integers(3, 20))
def test_projects_with_demand_get_equal_shares(rate: float, count: int, rounds: int) -> None:
    projects = [Asking(name, 1_000_000) for name in PROJECTS[:count]]
    seconds = rounds * count * burst_of(rate)
    run(rate, projects, seconds)
    shares = [one.sent for one in projects]
    assert max(shares) - min(shares) <= 2 * rate * burst_of(rate) / 60 + 1


def test_a_small_demand_does_not_wait_for_all_of_a_large_one() -> None:
    large, small = Asking("large", 10_000), Asking("small", 5)
    small.at = 60.0
    sent = run(60.0, [large, small], 600)
    (first, *_), total = (
        [at for at, name, count in sent if name == "small" and count],
        Counter[str](),
    )
    for _, name, count in sent:
        total[name] += count
    assert total["small"] == 5
    assert first <= 60.0 + 3 * burst_of(60.0)


def test_a_project_that_does_not_come_loses_its_turn() -> None:
    state, _ = take(BudgetState(), 60.0, "a", 1_000, 0.0)
    assert set(state.turns) == {"a"}
    state, grant = take(state, 60.0, "b", 1, 1_000.0)
    assert grant == BudgetGrant(1) and state.turns == {}


def test_a_project_that_comes_early_keeps_its_turn() -> None:
    state, first = take(BudgetState(), 60.0, "a", 1_000, 0.0)
    again, second = take(state, 60.0, "a", 1_000, first.wait / 2)
    assert second == BudgetGrant(0, first.wait / 2) and again == state


def test_requests_that_were_not_sent_are_given_back() -> None:
    state, _ = take(BudgetState(), 60.0, "a", 10, 0.0)
    state, debt = charge(state, 60.0, "a", -5, 0.0)
    assert debt == 0
    assert take(state, 60.0, "b", 5, 0.0)[1] == BudgetGrant(5)


def test_requests_without_a_turn_are_of_what_no_turn_needs() -> None:
    state, _ = take(BudgetState(), 60.0, "a", 4, 0.0)
    state, debt = charge(state, 60.0, "a", 5, 0.0)
    assert (debt, state.debts) == (0, {})
    state, grant = take(state, 60.0, "b", 2, 0.0)
    assert grant.count == 1 and grant.wait == pytest.approx(1.0)
    # The next request is that of b.
    state, debt = charge(state, 60.0, "a", 3, 1.0)
    assert debt == 3
    assert take(state, 60.0, "b", 1, 1.0)[1] == BudgetGrant(1)


def test_a_project_pays_its_debt_before_its_next_request() -> None:
    state, _ = take(BudgetState(), 60.0, "a", 10, 0.0)
    state, debt = charge(state, 60.0, "a", 25, 0.0)
    assert debt == 25
    at, waits = 0.0, list[float]()
    while True:
        state, grant = take(state, 60.0, "a", 1, at)
        if grant.count:
            break
        waits.append(grant.wait)
        at += grant.wait
    assert at == pytest.approx(26.0) and waits == pytest.approx([10, 10, 6])
    assert state.debts == {}


def test_a_budget_that_is_not_used_pays_debts() -> None:
    state, _ = take(BudgetState(), 60.0, "a", 10, 0.0)
    for project in "ab":
        state, _ = charge(state, 60.0, project, 10, 0.0)
    # It is used until 10.0; 15 seconds later, as many requests were left.
    state, _ = take(state, 60.0, "c", 1, 25.0)
    assert state.debts == {"b": pytest.approx(5.0)}


@given(
    st.floats(6.0, 600.0),
    st.integers(1, 6_000),
    st.integers(1, 100),
    st.floats(0.0, 1_000.0),
    st.integers(1, 3),
)
def test_debts_of_others_delay_a_project_by_their_turns_at_most(
    rate: float, sent: int, wants: int, begins: float, debtors: int
) -> None:
    state, price = BudgetState(), 60.0 / rate
    others = [Asking(f"o{number}", 1_000_000) for number in range(debtors)]
    for other in others:
        state, _ = charge(state, rate, other.name, sent, 0.0)
    one = Asking("one", wants)
    one.at = begins
    while one.sent < one.wants:
        next_one = min([one, *others], key=lambda asking: asking.at)
        state, grant = take(state, rate, next_one.name, next_one.wants - next_one.sent, next_one.at)
        next_one.sent += grant.count
        next_one.at += grant.wait
    rounds = wants / max(int(burst_of(rate) / price), 1) + 2
    assert one.at - begins <= (debtors + 1) * rounds * burst_of(rate)


@given(
    st.floats(6.0, 600.0),
    st.dictionaries(st.sampled_from(PROJECTS), st.integers(1, 100), min_size=1),
    st.lists(st.integers(0, 50), min_size=1, max_size=20),
)
def test_debts_are_paid(rate: float, wants: dict[str, int], extras: list[int]) -> None:
    """What all projects have sent is within the budget, but for what they owe."""
    state, sent = BudgetState(), 0
    projects = [Asking(name, count) for name, count in wants.items()]
    last = 0.0
    while left := [one for one in projects if one.sent < one.wants]:
        one = min(left, key=lambda other: other.at)
        last = one.at
        state, grant = take(state, rate, one.name, one.wants - one.sent, last)
        one.sent += grant.count
        sent += grant.count
        if grant.count:
            extra = extras[one.sent % len(extras)]
            state, _ = charge(state, rate, one.name, extra, last)
            sent += extra
        one.at += grant.wait
        allowed = rate * (last + burst_of(rate)) / 60 + sum(state.debts.values())
        assert sent <= allowed + 1


@given(
    st.floats(6.0, 600.0),
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
    st.floats(0.0, HONOURED - 1),
    st.randoms(use_true_random=False),
)
def test_projects_that_come_late_exceed_no_budget_and_are_all_served(
    rate: float, wants: list[int], late: float, random: Random
) -> None:
    state, sent = BudgetState(), list[tuple[float, int]]()
    projects = [Asking(f"p{number}", count) for number, count in enumerate(wants)]
    for one in projects:
        one.at = random.random()
    turns = Counter[str]()
    while left := [one for one in projects if one.sent < one.wants]:
        one = min(left, key=lambda other: other.at)
        state, grant = take(state, rate, one.name, one.wants - one.sent, one.at)
        sent.append((one.at, grant.count))
        one.sent += grant.count
        turns[one.name] += 1
        one.at += grant.wait + late * random.random()
    per_turn = max(int(burst_of(rate) * rate / 60), 1)
    for start, _ in sent:
        within = sum(count for at, count in sent if start <= at < start + 60)
        assert within <= rate * (60 + burst_of(rate)) / 60 + 1
    for one in projects:
        rounds = one.wants // per_turn + 2
        assert one.at <= 2 * sum(wants) * 60 / rate + rounds * (late + burst_of(rate)) + 1


@pytest.mark.parametrize("late", [0.0, KEPT / 2, HONOURED / 2, HONOURED - 1])
def test_all_of_many_projects_are_served(late: float) -> None:
    """Their turns are up to five hours later than their first requests."""
    projects = [Asking(f"p{number}", 60) for number in range(300)]
    random, state = Random(1), BudgetState()
    while left := [one for one in projects if one.sent < one.wants]:
        one = min(left, key=lambda other: other.at)
        assert one.at < 12 * 3_600
        state, grant = take(state, 60.0, one.name, one.wants - one.sent, one.at)
        one.sent += grant.count
        one.at += grant.wait + late * random.random()


def test_turns_that_are_not_used_are_given_back() -> None:
    state, price, absent = BudgetState(), 1.0, 20
    for number in range(absent):
        state, _ = take(state, 60.0, f"absent{number}", 20, 0.0)
    sent, seconds = 0, 3 * HONOURED
    projects = [Asking(name, 1_000_000) for name in "ab"]
    while (one := min(projects, key=lambda other: other.at)).at < seconds:
        state, grant = take(state, 60.0, one.name, one.wants - one.sent, one.at)
        one.sent += grant.count
        sent += grant.count
        one.at += grant.wait
    # The time of these turns is lost, with that for which the last ones are kept, and no more.
    assert sent >= seconds / price - absent * burst_of(60.0) - KEPT - 20


def test_the_state_stays_small() -> None:
    state = BudgetState()
    for number in range(1_000):
        state, _ = take(state, 60.0, f"p{number}", 5, float(number * 10))
    assert len(state.turns) < 50


def test_spare_requests_are_of_what_is_there_and_get_no_turn() -> None:
    state, grant = take(BudgetState(), 60.0, "a", 1, 0.0, spare=100)
    assert grant == BudgetGrant(10) and state.turns == {}
    state, grant = take(state, 60.0, "a", 20, 0.0)
    assert grant.count == 0 and state.turns["a"].count == 10
    # Of a turn, too; the rest of it is refilled.
    _, whole = take(state, 60.0, "a", 1, grant.wait, spare=100)
    assert whole == BudgetGrant(10)
    left, few = take(state, 60.0, "a", 1, grant.wait, spare=2)
    assert few == BudgetGrant(3) and left.turns == {} and left.paid == state.paid - 7


@given(
    RATES,
    RATES,
    st.dictionaries(st.sampled_from(PROJECTS), st.integers(1, 300)),
    st.integers(1, 50),
)
def test_a_clock_that_was_ahead_and_a_lower_budget_keep_no_project_waiting(
    before: float, rate: float, wants: dict[str, int], need: int
) -> None:
    """No longer than the requests that are promised, and a burst."""
    state, year, now = BudgetState(), 1e9, 1e9 - 365 * 86_400
    for name, count in wants.items():
        state, _ = take(state, before, name, count, year)
        state, _ = charge(state, before, name, count, year)
    # Debts are paid by turns, too.
    promised = sum(turn.count for turn in state.turns.values()) + sum(state.debts.values())
    for name in ("new", *wants):
        _, grant = take(state, rate, name, need, now)
        assert grant.wait <= 2 * burst_of(rate) + 60 / rate * (promised + need) + 1


@given(RATES, st.lists(st.tuples(st.sampled_from(PROJECTS), st.integers(1, 50), st.floats(0, 700))))
def test_turns_are_not_later_than_the_budget_needs_for_what_is_promised(
    rate: float, steps: list[tuple[str, int, float]]
) -> None:
    """So that times beyond that are of another clock or budget."""
    state, now, price = BudgetState(), 0.0, 60 / rate
    for name, need, later in steps:
        now += later
        state, _ = take(state, rate, name, need, now)
        state, _ = charge(state, rate, name, need % 7 - 3, now)
        promised = price * sum(turn.count for turn in state.turns.values())
        assert state.paid - promised <= now + burst_of(rate) + 0.001
        assert all(
            turn.at <= now + burst_of(rate) + promised + 0.001 for turn in state.turns.values()
        )
