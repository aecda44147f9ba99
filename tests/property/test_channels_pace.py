"""No subscription gets more than its rate, and none waits longer than it must."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from channels.rate_limiter import Paces

ME, OTHER = UUID(int=1), UUID(int=2)
rates = st.floats(0.1, 50)
pauses = st.lists(st.floats(0, 3), min_size=1, max_size=40)


@given(rates, pauses)
def test_never_more_than_the_rate_allows(rate: float, pauses: list[float]) -> None:
    paces, now, begun = Paces(lambda _: rate), 0.0, 0
    paces.spend([(ME, "webhook")], now)
    begun += 1
    for pause in pauses:
        now += pause
        many = paces.left(now).get(ME)
        for _ in range(int(rate) + 1 if many is None else many):
            paces.spend([(ME, "webhook")], now)
            begun += 1
        assert begun <= rate * now + max(rate, 1.0) + 1


@given(rates, st.integers(1, 100))
def test_what_is_held_back_may_go_when_it_is_said(rate: float, attempts: int) -> None:
    paces = Paces(lambda _: rate)
    paces.spend([(ME, "webhook")] * attempts, 10.0)
    wait = paces.until_more(10.0)
    left = paces.left(10.0).get(ME)
    assert (wait is None) == (left is None or left > 0)
    if wait is not None:
        again = paces.left(10.0 + wait + 1e-6).get(ME)
        assert again is None or again >= 1


@given(st.lists(st.sampled_from([ME, OTHER]), max_size=20))
def test_without_a_rate_nobody_is_held_back(who: list[UUID]) -> None:
    paces = Paces(lambda channel: 0.0 if channel == "amqp" else 1.0)
    paces.spend([(one, "amqp") for one in who], 0.0)
    assert paces.left(0.0) == {} and paces.until_more(0.0) is None


def test_one_that_pays_off_is_forgotten() -> None:
    paces = Paces(lambda _: 2.0)
    paces.spend([(ME, "webhook"), (OTHER, "webhook")], 0.0)
    assert paces.left(0.1) == {ME: 1, OTHER: 1}
    assert paces.left(5.0) == {}
