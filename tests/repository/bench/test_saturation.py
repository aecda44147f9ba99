"""The simulation of many engines and cells, against what is known of such queues."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.saturation import WORKERS, Costs, cost_at, simulate

#: Seconds of CPU time of a resource.
ENGINE, DATABASE, FLUSH, BATCH = 400e-6, 800e-6, 2e-3, 10.0
COSTS = Costs({1: ENGINE}, {1: DATABASE}, BATCH, FLUSH)


def test_a_cost_between_two_numbers_of_engines_is_interpolated() -> None:
    costs = {2: 10.0, 4: 20.0}
    assert [cost_at(costs, number) for number in (1, 2, 3, 4, 100)] == [10, 10, 15, 20, 20]


def test_one_engine_waits_for_its_own_core() -> None:
    """Its two workers compute in turn: what the other one waits for is shorter."""
    costs = Costs({1: ENGINE}, {1: ENGINE / 100}, BATCH, ENGINE / 100)
    load = simulate(costs, 1, 1, 16)
    assert load.limit == "engines"
    assert load.rate == pytest.approx(1 / ENGINE, rel=0.05)


def test_many_engines_wait_for_the_database() -> None:
    load = simulate(COSTS, 100, 1, 16)
    assert load.limit == "database" and load.engines < 0.5
    assert load.rate == pytest.approx(16 / DATABASE, rel=0.05)


def test_slow_commits_are_shared_by_those_that_wait() -> None:
    """Each flush takes all workers along that waited for the one before, so a slow disk costs time,
    and limits the rate only by the number of workers."""
    slow = Costs({1: ENGINE}, {1: DATABASE}, BATCH, 0.5)
    load = simulate(slow, 10, 1, 16, seconds=30.0)
    assert load.limit == "commits" and load.database < 0.1
    flushes = 1 / 0.5
    assert load.rate <= 10 * WORKERS * BATCH * flushes
    assert load.rate >= 10 * WORKERS * BATCH * flushes / 2.5


def test_a_worker_alone_waits_for_one_thing_after_the_other() -> None:
    """One batch takes the sum of its services; a second worker of the engine fills the gaps."""
    load = simulate(COSTS, 1, 1, 16, seconds=20.0)
    turn = BATCH * (ENGINE + DATABASE) + FLUSH
    assert load.limit == "latency"
    assert BATCH / turn < load.rate < WORKERS * BATCH / turn


def test_cells_share_nothing() -> None:
    one, many = simulate(COSTS, 4, 1, 16), simulate(COSTS, 64, 16, 16)
    assert many.rate == pytest.approx(16 * one.rate)
    assert (many.engines, many.database) == (one.engines, one.database)
    # A cell without an engine carries nothing.
    assert simulate(COSTS, 10, 64, 16).rate == pytest.approx(10 * simulate(COSTS, 1, 1, 16).rate)


def test_idle_engines_take_time_of_the_database() -> None:
    idle = Costs({1: ENGINE}, {1: DATABASE}, BATCH, FLUSH, idle=0.01)
    assert simulate(idle, 800, 1, 16).rate == pytest.approx(8 / DATABASE, rel=0.05)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 64), st.sampled_from([1, 2, 4]), st.integers(1, 32))
def test_no_station_carries_more_than_it_can(engines: int, cells: int, cores: int) -> None:
    load = simulate(COSTS, engines * cells, cells, cores, seconds=3.0)
    assert load.rate <= 1.1 * min(engines * cells / ENGINE, cells * cores / DATABASE)
    assert max(load.engines, load.database, load.log) <= 1.1
