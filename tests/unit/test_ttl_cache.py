"""The cache whose entries expire, with time as an argument."""

from engine.ttl_cache import TtlCache


def test_an_entry_expires_at_its_time() -> None:
    cache: TtlCache[str, int] = TtlCache()
    cache.keep("a", 1, 10.0)
    assert (cache.get("a", 9.9), cache.get("a", 10.0), len(cache)) == (1, None, 0)
    assert cache.get("b", 0.0) is None


def test_the_number_of_entries_is_limited_and_the_oldest_is_removed() -> None:
    cache: TtlCache[int, int] = TtlCache(max_entries=3)
    for number in range(5):
        cache.keep(number, number, 10.0)
    cache.keep(2, 20, 10.0)  # stored again: the newest
    cache.keep(5, 5, 10.0)
    assert [cache.get(number, 0.0) for number in range(6)] == [None, None, 20, None, 4, 5]
    cache.clear()
    assert len(cache) == 0
