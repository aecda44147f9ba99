"""How long a worker waits between two claims."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.work.nodes.claim_pace import MAX_PAUSE, MAX_SHARED_PAUSE, MAX_TURN, TURN, ClaimPace

SECONDS = st.floats(0, 100)
COUNTS = st.integers(0, 1000)


def pace_after(took: float, others: int) -> ClaimPace:
    pace = ClaimPace(others)
    pace.record_claim(10.0, 10.0 + took)
    return pace


@pytest.mark.parametrize(
    ("took", "others", "write", "claim"),
    [
        (0.004, 0, 0.008, 0.008),
        (0.004, 3, 0.008, 0.032),
        (0.5, 0, MAX_PAUSE, MAX_PAUSE),
        (0.5, 3, MAX_PAUSE, 4 * MAX_PAUSE),
        (0.5, 63, MAX_PAUSE, MAX_SHARED_PAUSE),
    ],
)
def test_only_a_worker_without_steps_waits_for_the_other_processes(
    took: float, others: int, write: float, claim: float
) -> None:
    pace, ended = pace_after(took, others), 10.0 + took
    assert pace.seconds_to_write(ended) == pytest.approx(write)
    assert pace.seconds_to_claim(ended) == pytest.approx(claim)
    assert pace.seconds_to_write(ended + write + 0.001) < 0 < pace.seconds_to_write(ended)
    assert pace.seconds_to_claim(ended + claim + 0.001) < 0 < pace.seconds_to_claim(ended)


@given(SECONDS, COUNTS)
def test_pauses_are_bounded_and_those_without_steps_are_no_shorter(
    took: float, others: int
) -> None:
    pace, ended = pace_after(took, others), 10.0 + took
    write, claim = pace.seconds_to_write(ended), pace.seconds_to_claim(ended)
    assert 0 <= write <= claim + 1e-9
    assert write <= MAX_PAUSE + 1e-9 and claim <= MAX_SHARED_PAUSE + 1e-9


def test_a_new_worker_claims_at_once() -> None:
    assert ClaimPace(7).seconds_to_claim(0.0) <= 0 and ClaimPace(7).seconds_to_write(0.0) <= 0


def test_the_process_that_runs_longest_claims_at_once_and_each_later_one_later() -> None:
    turns = [ClaimPace(7, earlier).seconds_to_turn for earlier in range(5)]
    assert turns == pytest.approx([0, TURN, 2 * TURN, 3 * TURN, 3 * TURN])
    assert turns[0] == 0


@given(COUNTS, COUNTS)
def test_turns_are_bounded_and_in_the_order_of_processes(one: int, more: int) -> None:
    earlier, later = ClaimPace(one + more, one), ClaimPace(one + more, one + more)
    assert 0 <= earlier.seconds_to_turn <= later.seconds_to_turn <= MAX_TURN <= 0.05
