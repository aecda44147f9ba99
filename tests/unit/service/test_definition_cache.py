"""The cache of definitions has a bounded size."""

from typing import Any, cast
from uuid import UUID

from engine.hot.definition.reuse import NONE_REUSABLE, ReusableResource, ReusableResources
from engine.service.requests.definition_cache import CacheKey, DefinitionCache


def key(number: int, timeout: int | None = None) -> CacheKey:
    return CacheKey(UUID(int=number), timeout)


def entry(count: int, size: int = 0) -> ReusableResources:
    """size: bytes of each resource."""
    one = ReusableResource(b"", cast(Any, None), cast(Any, None), size)
    return ReusableResources("", dict.fromkeys(map(str, range(count)), one))


def test_the_entries_used_longest_ago_are_dropped() -> None:
    cache = DefinitionCache(max_resources=10, min_resources=2)
    for number in (1, 2, 3):
        cache.put(key(number), entry(4))
    assert cache.get(key(1)) is NONE_REUSABLE
    assert len(cache.get(key(2)).resources) == len(cache.get(key(3)).resources) == 4
    cache.put(key(2), entry(6))
    assert len(cache.get(key(2)).resources) == 6 and cache.get(key(3)).resources
    cache.put(key(4), entry(5))
    assert cache.get(key(3)) is NONE_REUSABLE is cache.get(key(2))


def test_small_and_too_large_stacks_are_not_kept() -> None:
    cache = DefinitionCache(max_resources=10, min_resources=2)
    cache.put(key(1), entry(1))
    cache.put(key(2), entry(11))
    assert cache.get(key(1)) is cache.get(key(2)) is NONE_REUSABLE
    cache.put(key(3), entry(10))
    cache.put(key(3), entry(11))
    assert cache.get(key(3)) is NONE_REUSABLE


def test_another_timeout_is_another_entry() -> None:
    cache = DefinitionCache(max_resources=10, min_resources=2)
    cache.put(key(1), entry(2))
    assert cache.get(key(1, 60)) is NONE_REUSABLE


def test_the_bytes_of_all_entries_are_limited() -> None:
    cache = DefinitionCache(max_resources=10, min_resources=2, max_bytes=100)
    cache.put(key(1), entry(2, 20))
    cache.put(key(2), entry(2, 30))
    assert cache.get(key(1)).resources and cache.get(key(2)).resources
    cache.put(key(3), entry(2, 10))
    assert cache.get(key(1)) is NONE_REUSABLE
    assert cache.get(key(2)).resources and cache.get(key(3)).resources
    cache.put(key(2), entry(2, 51))
    assert cache.get(key(2)) is NONE_REUSABLE
    cache.put(key(4), entry(2, 40))
    assert cache.get(key(3)).resources and cache.get(key(4)).resources
