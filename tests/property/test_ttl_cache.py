""""""

from hypothesis import given
from hypothesis import strategies as st

from engine.ttl_cache import TtlCache


@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 10), st.floats(0, 3)), max_size=50),
    st.integers(1, 5),
)
def test_it_never_returns_an_expired_or_replaced_value(
    steps: list[tuple[int, float, float]], max_entries: int
) -> None:
    cache: TtlCache[int, int] = TtlCache(max_entries=max_entries)
    known: dict[int, tuple[int, float]] = {}
    now = 0.0
    for number, (key, lifetime, gap) in enumerate(steps):
        cache.keep(key, number, now + lifetime)
        known[key] = number, now + lifetime
        assert len(cache) <= max_entries
        now += gap
        for name, (value, expires_at) in known.items():
            found = cache.get(name, now)
            assert found in (None, value)
            assert found is None or now < expires_at
        value, expires_at = known[key]
        assert cache.get(key, now) == (value if now < expires_at else None)
