"""The schedule of repeated attempts."""

from engine.back_off import BackOff


def test_pauses_double_up_to_the_longest_and_half_of_each_is_chance() -> None:
    back_off = BackOff(0.5, 30.0)
    assert [back_off.ceiling(number) for number in (1, 2, 3, 100)] == [0.5, 1.0, 2.0, 30.0]
    assert [back_off.pause(number, 0.0) for number in (1, 2, 3, 100)] == [0.25, 0.5, 1.0, 15.0]
    assert [back_off.pause(number, 0.5) for number in (1, 2, 3)] == [0.375, 0.75, 1.5]
