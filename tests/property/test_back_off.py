""""""

from hypothesis import given
from hypothesis import strategies as st

from engine.back_off import BackOff

SECONDS = st.floats(0.001, 10_000)


CHANCES = st.floats(0, 1, exclude_max=True)


SCHEDULES = st.builds(
    lambda bounds, factor: BackOff(min(bounds), max(bounds), factor),
    st.tuples(SECONDS, SECONDS), st.floats(1.0, 4.0),
)  # fmt: skip


@given(SCHEDULES, st.integers(1, 10**9), CHANCES)
def test_pauses_stay_within_their_bounds_and_never_shrink(
    back_off: BackOff, failures: int, chance: float
) -> None:
    ceiling = back_off.ceiling(failures)
    assert back_off.first <= ceiling <= back_off.ceiling(failures + 1) <= back_off.max_pause
    assert ceiling / 2 <= back_off.pause(failures, chance) <= ceiling


@given(SCHEDULES, st.integers(1, 300), CHANCES, CHANCES)
def test_more_chance_is_a_longer_pause(
    back_off: BackOff, failures: int, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    assert back_off.pause(failures, less) <= back_off.pause(failures, more)
