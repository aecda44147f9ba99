"""The cache whose entries expire, with time as an argument."""

from hypothesis import given
from hypothesis import strategies as st

from engine.ttl_cache import TtlCache


def test_an_entry_expires_at_its_time() -> None:
    cache: TtlCache[str, int] = TtlCache()
    cache.keep("a", 1, 10.0)
    assert (cache.get("a", 9.9), cache.get("a", 10.0), len(cache)) == (1, None, 0)
    assert cache.get("b", 0.0) is None


def test_at_most_so_many_are_kept_and_the_oldest_goes() -> None:
    cache: TtlCache[int, int] = TtlCache(most=3)
    for number in range(5):
        cache.keep(number, number, 10.0)
    cache.keep(2, 20, 10.0)  # stored again: the newest
    cache.keep(5, 5, 10.0)
    assert [cache.get(number, 0.0) for number in range(6)] == [None, None, 20, None, 4, 5]
    cache.clear()
    assert len(cache) == 0


@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 10), st.floats(0, 3)), max_size=50),
    st.integers(1, 5),
)
def test_it_never_returns_an_expired_or_replaced_value(
    steps: list[tuple[int, float, float]], most: int
) -> None:
    cache: TtlCache[int, int] = TtlCache(most=most)
    known: dict[int, tuple[int, float]] = {}
    now = 0.0
    for number, (key, lifetime, gap) in enumerate(steps):
        cache.keep(key, number, now + lifetime)
        known[key] = number, now + lifetime
        assert len(cache) <= most
        now += gap
        for name, (value, expires_at) in known.items():
            found = cache.get(name, now)
            assert found in (None, value)
            assert found is None or now < expires_at
        value, expires_at = known[key]
        assert cache.get(key, now) == (value if now < expires_at else None)
