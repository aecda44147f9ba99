"""Budgets of requests: never exceeded, used up if there is demand, and fair between projects."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.request_budget import BudgetGrant, BudgetState, burst_of, charge, take

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


@pytest.mark.parametrize("count", [5, -5])
def test_requests_beyond_those_taken_are_paid_later(count: int) -> None:
    state, grant = take(BudgetState(), 60.0, "a", 10, 0.0)
    assert grant == BudgetGrant(10)
    _, later = take(charge(state, 60.0, count, 0.0), 60.0, "b", 1, 0.0)
    assert (later.count, later.wait) == ((0, pytest.approx(count + 1)) if count > 0 else (1, 0.0))


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
