"""Keeps the resource definitions of large stacks that this process has built last, so that their
next update does not evaluate and validate unchanged resources again.

An entry is used only for what it equals: a resource's body, its type and the template version are
compared each time. So entries never have to be invalidated.
"""

from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

from engine.hot.definition.reuse import NONE_REUSABLE, ReusableResources

#: Definitions of smaller stacks are built in milliseconds.
MIN_RESOURCES = 200
#: Resources of all entries: some 1.5 kB each, in addition to their properties and metadata.
MAX_RESOURCES = 50_000
#: Bytes of the properties and metadata of all entries, as JSON. In memory, they take up to 25 times
#: as much.
MAX_BYTES = 8_000_000


class CacheKey(NamedTuple):
    """timeout: minutes, which the checks of some types depend on."""

    stack_id: UUID
    timeout: int | None


class _Entry(NamedTuple):
    found: ReusableResources
    resources: int
    size: int


class DefinitionCache:
    """The limits hold for all projects together, so one stack cannot exhaust the memory."""

    def __init__(
        self,
        max_resources: int = MAX_RESOURCES,
        min_resources: int = MIN_RESOURCES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._max_resources = max_resources
        self._min_resources = min_resources
        self._max_bytes = max_bytes
        self._entries: OrderedDict[CacheKey, _Entry] = OrderedDict()
        self._count = self._size = 0

    def get(self, key: CacheKey) -> ReusableResources:
        entry = self._entries.get(key)
        return NONE_REUSABLE if entry is None else entry.found

    def put(self, key: CacheKey, resources: ReusableResources) -> None:
        """Keep an entry in place of the earlier one; drop the oldest entries beyond the limits. One
        that exceeds a limit itself is not kept."""
        if (before := self._entries.pop(key, None)) is not None:
            self._forget(before)
        count = len(resources.resources)
        size = sum(one.size for one in resources.resources.values())
        if not self._min_resources <= count <= self._max_resources or size > self._max_bytes:
            return
        self._entries[key] = _Entry(resources, count, size)
        self._count += count
        self._size += size
        while self._count > self._max_resources or self._size > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self._forget(oldest)

    def _forget(self, entry: _Entry) -> None:
        self._count -= entry.resources
        self._size -= entry.size
