"""How many nodes a worker claims, and whether nodes that ended their workers are among them."""

import pytest

from engine.work.nodes.claim_limits import ClaimLimits


@pytest.fixture
def limits() -> ClaimLimits:
    return ClaimLimits(batch=50, operations=8, lease=30.0)


def capacity(limits: ClaimLimits, running: int = 0, now: float = 100.0) -> int:
    return limits.free_capacity(running, None, now)


@pytest.mark.parametrize(("running", "expected"), [(0, 8), (5, 3), (8, 0), (9, 0)])
def test_operations_with_io_leave_the_rest_to_other_processes(
    limits: ClaimLimits, running: int, expected: int
) -> None:
    assert capacity(limits, running) == expected


def test_a_batch_is_claimed_if_the_last_operations_only_computed(limits: ClaimLimits) -> None:
    limits.record_started(0)
    assert capacity(limits) == 50
    assert capacity(limits, running=8) == 0
    limits.record_started(1)
    assert capacity(limits) == 8


def test_after_a_failed_claim_single_nodes_are_claimed_for_a_batch(limits: ClaimLimits) -> None:
    limits.record_failed_claim(want=8)
    for _ in range(50):
        assert (capacity(limits), limits.claims_runs, limits.reads_documents) == (1, False, True)
        limits.record_claim()
    assert (capacity(limits), limits.claims_runs) == (8, True)


def test_after_a_failed_claim_of_one_node_its_documents_are_not_read_once(
    limits: ClaimLimits,
) -> None:
    limits.record_failed_claim(want=1)
    assert not limits.reads_documents
    limits.record_claim()
    assert limits.reads_documents


def test_failures_in_a_row_that_an_upgrade_can_cause_are_tolerated(limits: ClaimLimits) -> None:
    for _ in range(2):
        for _ in range(3):
            limits.record_failed_claim(want=1, tolerated=3)
            assert (capacity(limits), limits.reads_documents) == (8, True)
        limits.record_claim()
    for _ in range(4):
        limits.record_failed_claim(want=8, tolerated=3)
    assert capacity(limits) == 1


def test_no_other_node_is_claimed_during_the_first_lease_of_a_last_try(
    limits: ClaimLimits,
) -> None:
    assert limits.free_capacity(0, last_try_since=100.0, now=129.9) == 0
    assert limits.free_capacity(0, last_try_since=100.0, now=130.0) == 8


def test_one_claim_at_a_time_may_return_nodes_that_ended_their_workers(
    limits: ClaimLimits,
) -> None:
    with limits.may_claim_suspects(1, None, 0.0) as first:
        with limits.may_claim_suspects(1, None, 0.0) as second:
            assert (first, second) == (True, False)
        with limits.may_claim_suspects(1, None, 0.0) as third:
            assert not third
    with limits.may_claim_suspects(1, None, 0.0) as later:
        assert later


@pytest.mark.parametrize(("want", "last_try_since"), [(0, None), (1, 5.0)])
def test_a_claim_of_nothing_or_during_a_last_try_returns_no_such_node(
    limits: ClaimLimits, want: int, last_try_since: float | None
) -> None:
    with limits.may_claim_suspects(want, last_try_since, 10.0) as allowed:
        assert not allowed


def test_after_a_last_try_other_nodes_come_first_for_as_long_as_it_took(
    limits: ClaimLimits,
) -> None:
    limits.record_last_try(since=100.0, now=140.0)
    for now, expected in ((179.9, False), (180.0, True)):
        with limits.may_claim_suspects(1, None, now) as allowed:
            assert allowed is expected
