"""Counts that the processes of one server share, in a table in memory.

A row has a key, a number and the time at which it expires; an expired row is as none. The table is
made before the processes fork, which then lock it for each change; that takes microseconds. Keys
are stored as hashes, with a random key, so that a client cannot choose addresses that displace the
row of another.
"""

import fcntl
import hashlib
import mmap
import os
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

#: Rows of a table. Beyond them, a new row displaces the one of its set that expires first.
ROWS = 1 << 16
#: Rows of a set: those that a key can have.
SET = 8
_ROW = struct.Struct("=Qdd")
#: Attempts to lock a table. A process holds the lock for microseconds; if it is suspended at that
#: moment, the others count without it, and may miss an event.
_ATTEMPTS = 50


class Count(NamedTuple):
    """expires_at: in seconds of the monotonic clock, which all processes of a machine share."""

    number: float
    expires_at: float


class TableLock:
    """Excludes the other processes that have forked with it. shared: False: there are none."""

    def __init__(self, *, shared: bool) -> None:
        #: Without a name, so that nothing is left of it.
        self._file = tempfile.TemporaryFile() if shared else None  # noqa: SIM115  until `close`

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @contextmanager
    def hold(self) -> Iterator[None]:
        file = None if self._file is None else self._file.fileno()
        locked = file is not None and _try_lock(file)
        try:
            yield
        finally:
            if file is not None and locked:
                fcntl.lockf(file, fcntl.LOCK_UN)


class KeyHasher:
    """Hashes keys to positive numbers of 64 bits, with a random secret."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)

    def hash(self, key: str) -> int:
        digest = hashlib.blake2b(key.encode(), digest_size=8, key=self._secret).digest()
        return int.from_bytes(digest, sys.byteorder) or 1  # 0: a row that was never used


class SharedCounts:
    """locked: whether several processes count; False: this one alone."""

    def __init__(self, *, locked: bool = False, rows: int = ROWS) -> None:
        self._sets = max(rows // SET, 1)
        self._memory = mmap.mmap(-1, self._sets * SET * _ROW.size)
        self._hasher, self._lock = KeyHasher(), TableLock(shared=locked)

    def close(self) -> None:
        self._memory.close()
        self._lock.close()

    def get(self, key: str, now: float) -> Count | None:
        """None: there is no row, or it has expired."""
        with self._lock.hold():
            return self._find(self._hasher.hash(key), now)[1]

    def change(
        self, key: str, now: float, change: Callable[[Count | None], Count | None]
    ) -> Count | None:
        """Replace the row of a key by what `change` makes of it; None: leave it. Returns the row
        before."""
        hashed = self._hasher.hash(key)
        with self._lock.hold():
            at, found = self._find(hashed, now)
            new = change(found)
            if new is not None:
                _ROW.pack_into(self._memory, at, hashed, *new)
            return found

    def _find(self, wanted: int, now: float) -> tuple[int, Count | None]:
        """The position of a key's row, or of the one that it may displace, and the row."""
        start = wanted % self._sets * SET * _ROW.size
        free, earliest = start, float("inf")
        for at in range(start, start + SET * _ROW.size, _ROW.size):
            hashed, number, expires_at = _ROW.unpack_from(self._memory, at)
            if hashed == wanted:
                return at, Count(number, expires_at) if expires_at > now else None
            if expires_at < earliest:
                free, earliest = at, expires_at
        return free, None


def _try_lock(file: int) -> bool:
    for _ in range(_ATTEMPTS):
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            os.sched_yield()
    return False
