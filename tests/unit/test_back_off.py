"""The schedule of repeated attempts."""

from hypothesis import given
from hypothesis import strategies as st

from engine.back_off import BackOff

SECONDS = st.floats(0.001, 10_000)
CHANCES = st.floats(0, 1, exclude_max=True)
SCHEDULES = st.builds(
    lambda bounds, factor: BackOff(min(bounds), max(bounds), factor),
    st.tuples(SECONDS, SECONDS), st.floats(1.0, 4.0),
)  # fmt: skip


def test_pauses_double_up_to_the_longest_and_half_of_each_is_chance() -> None:
    back_off = BackOff(0.5, 30.0)
    assert [back_off.ceiling(number) for number in (1, 2, 3, 100)] == [0.5, 1.0, 2.0, 30.0]
    assert [back_off.pause(number, 0.0) for number in (1, 2, 3, 100)] == [0.25, 0.5, 1.0, 15.0]
    assert [back_off.pause(number, 0.5) for number in (1, 2, 3)] == [0.375, 0.75, 1.5]


@given(SCHEDULES, st.integers(1, 10**9), CHANCES)
def test_pauses_stay_within_their_bounds_and_never_shrink(
    back_off: BackOff, failures: int, chance: float
) -> None:
    ceiling = back_off.ceiling(failures)
    assert back_off.first <= ceiling <= back_off.ceiling(failures + 1) <= back_off.longest
    assert ceiling / 2 <= back_off.pause(failures, chance) <= ceiling


@given(SCHEDULES, st.integers(1, 300), CHANCES, CHANCES)
def test_more_chance_is_a_longer_pause(
    back_off: BackOff, failures: int, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    assert back_off.pause(failures, less) <= back_off.pause(failures, more)
