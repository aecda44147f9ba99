"""Counts of what clients have open now, such as connections, in all processes of one server.

A table in memory has a row for each client and a column for each process: what a killed process had
open is closed, so that its column no longer counts when the next process starts.
"""

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass

from hub.auth.shared_counts import SET, KeyHasher, TableLock

#: Rows of a table. Beyond them, what another client opens counts in its process alone.
ROWS = 1 << 14
#: Bytes of the ID of a process, of a hashed key and of a count.
_ID, _KEY, _COUNT = 8, 8, 4


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        pass
    return True


class SharedOpenCounts:
    """processes: how many count at the same time. locked: whether these are several."""

    def __init__(self, *, processes: int = 1, locked: bool = False, rows: int = ROWS) -> None:
        self._rows = max(rows // SET, 1) * SET
        ids, keys = processes * _ID, self._rows * _KEY
        memory = memoryview(mmap.mmap(-1, ids + keys + processes * self._rows * _COUNT))
        #: By column; 0: no process has it.
        self._processes = memory[:ids].cast("Q")
        self._keys = memory[ids : ids + keys].cast("Q")
        columns = memory[ids + keys :].cast("I")
        self._columns = [
            columns[start : start + self._rows] for start in range(0, len(columns), self._rows)
        ]
        self._hasher, self._lock = KeyHasher(), TableLock(shared=locked)

    def add_process(
        self, pid: int, is_running: Callable[[int], bool] = is_running
    ) -> "ProcessCounts | None":
        """The counts of a process; None: more processes count than the table has columns. The
        columns of processes that have ended become free."""
        with self._lock.hold():
            ids = self._processes
            for at, other in enumerate(ids):
                if other not in (0, pid) and not is_running(other):
                    ids[at] = 0
            column = next((at for at, other in enumerate(ids) if other == pid), None)
            if column is None:
                column = next((at for at, other in enumerate(ids) if other == 0), None)
                if column is None:
                    return None
                for row in range(self._rows):
                    if self._columns[column][row]:
                        self._columns[column][row] = 0
                ids[column] = pid
            return ProcessCounts(self, column)

    def enter(self, column: int, client: str, max_open: int) -> bool | None:
        """See `ProcessCounts`."""
        key = self._hasher.hash(client)
        with self._lock.hold():
            row = self._find(key)
            if row is None:
                return None
            if 0 < max_open <= self._total(row):
                return False
            self._keys[row] = key
            self._columns[column][row] += 1
            return True

    def leave(self, column: int, client: str) -> None:
        """See `ProcessCounts`."""
        with self._lock.hold():
            row = self._find(self._hasher.hash(client))
            if row is not None and self._columns[column][row] > 0:
                self._columns[column][row] -= 1

    def _find(self, key: int) -> int | None:
        """The row of a key, or one that is free for it."""
        start = key % (self._rows // SET) * SET
        rows = range(start, start + SET)
        found = next((row for row in rows if self._keys[row] == key), None)
        if found is not None:
            return found
        return next((row for row in rows if not self._total(row)), None)

    def _total(self, row: int) -> int:
        counted = zip(self._processes, self._columns, strict=True)
        return sum(counts[row] for pid, counts in counted if pid)


@dataclass(frozen=True, slots=True)
class ProcessCounts:
    """What clients have open in one process, within limits for all processes."""

    table: SharedOpenCounts
    column: int

    def enter(self, client: str, max_open: int) -> bool | None:
        """Count one more. Returns False, without counting, at the limit (0: there is none), and
        None, without counting, if the table has no row for the client."""
        return self.table.enter(self.column, client, max_open)

    def leave(self, client: str) -> None:
        self.table.leave(self.column, client)
