"""A cache whose entries expire. Pure: time is an argument."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

#: Maximum number of entries. Above it, the entry that was stored first is removed.
MAX_ENTRIES = 10_000


class TtlCache(Generic[Key, Value]):
    """All times are seconds of one clock."""

    def __init__(self, *, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[Key, tuple[Value, float]] = OrderedDict()
        #: How often the cache was cleared. A value that was read before may be out of date.
        self.clears = 0

    def __len__(self) -> int:
        """The number of stored entries, including expired ones that were not read since."""
        return len(self._entries)

    def get(self, key: Key, now: float) -> Value | None:
        """Return the value; None: there is no entry, or it has expired."""
        found = self._entries.get(key)
        if found is None:
            return None
        value, expires_at = found
        if now < expires_at:
            return value
        del self._entries[key]
        return None

    def values(self, now: float) -> list[Value]:
        """The values that have not expired."""
        return [value for value, expires_at in self._entries.values() if now < expires_at]

    def keep(self, key: Key, value: Value, expires_at: float) -> None:
        self._entries[key] = value, expires_at
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def drop(self, key: Key) -> None:
        self._entries.pop(key, None)

    def clear(self) -> None:
        self.clears += 1
        self._entries.clear()
