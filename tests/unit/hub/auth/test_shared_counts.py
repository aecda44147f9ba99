"""The table of counts: rows, when they expire, and which are displaced."""

from collections.abc import Sequence

import pytest

from hub.auth.shared_counts import SET, Count, SharedCounts
from hub.auth.shared_rate import SharedRate


def keep(counts: SharedCounts, key: str, number: float, expires_at: float) -> None:
    counts.change(key, 0.0, lambda _: Count(number, expires_at))


@pytest.mark.parametrize("locked", [True, False])
def test_a_row_expires_and_none_leaves_it(locked: bool) -> None:
    counts = SharedCounts(locked=locked)
    keep(counts, "a", 1, 10.0)
    assert counts.get("a", 9.9) == Count(1, 10.0)
    assert counts.get("b", 9.9) is None
    assert counts.get("a", 10.0) is None
    assert counts.change("a", 5.0, lambda _: None) == Count(1, 10.0)
    assert counts.change("a", 10.0, lambda found: found) is None
    assert counts.get("a", 5.0) == Count(1, 10.0)
    counts.close()


def test_a_new_row_displaces_the_one_of_its_set_that_expires_first() -> None:
    counts = SharedCounts(rows=SET)
    for number in range(SET):
        keep(counts, str(number), number, 100.0 - number)
    keep(counts, "new", 1, 50.0)
    kept = [number for number in range(SET) if counts.get(str(number), 0.0) is not None]
    assert kept == [*range(SET - 1)]
    assert counts.get("new", 0.0) == Count(1, 50.0)
    counts.close()


def test_where_a_key_is_stored_cannot_be_known() -> None:
    """Each table has a random key, or a client could choose keys of the same set."""
    displaced = set[int]()
    for _ in range(30):
        counts = SharedCounts(rows=4 * SET)
        for number in range(4 * SET):
            keep(counts, str(number), number, 10.0)
        missing = [number for number in range(4 * SET) if counts.get(str(number), 0.0) is None]
        displaced.update(missing)
        counts.close()
    assert len(displaced) > SET


def test_limits_of_the_same_counts_are_one() -> None:
    counts = SharedCounts()
    first, second = (SharedRate(4.0, counts) for _ in range(2))
    assert [one.spend("a", 10.0) for one in (first, second, first, second)] == [0.0] * 4
    assert first.spend("a", 10.0) == second.wait("a", 10.0) == pytest.approx(0.25)
    assert second.spend("b", 10.0) == 0.0
    assert second.spend("a", 10.25) == 0.0
    assert first.spend_many("b", 10.0, 8) == pytest.approx(1.5)
    assert second.wait("b", 10.0) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("counts", "waits"),
    [
        ((4,), (0.0,)),
        ((5,), (0.5,)),
        ((1, 3, 0, 1), (0.0, 0.0, 0.0, 0.5)),
        ((3, 2, 1), (0.0, 0.5, 0.75)),
        ((100,), (24.25,)),
    ],
)
def test_many_events_are_allowed_up_to_the_limit_and_all_count(
    counts: Sequence[int], waits: Sequence[float]
) -> None:
    rate = SharedRate(4.0, SharedCounts())
    assert rate.at_once == 4
    assert [rate.spend_many("a", 10.0, one) for one in counts] == pytest.approx(list(waits))
    assert rate.spend_many("b", 10.0, 4) == 0.0
    paid = sum(counts) / 4.0
    assert rate.spend_many("a", 10.0 + paid, 4) == 0.0


def test_without_a_rate_nothing_is_counted() -> None:
    counts = SharedCounts()
    rate = SharedRate(0.0, counts)
    assert [rate.spend("a", 0.0) for _ in range(99)] == [0.0] * 99
    assert rate.spend_many("a", 0.0, 9) == 0.0
    assert rate.wait("a", 0.0) == 0.0
    assert counts.get("a", -1.0) is None
