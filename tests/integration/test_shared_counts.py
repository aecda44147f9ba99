"""Processes that fork from one, and count at the same time in one table."""

import os
import signal
from collections.abc import Callable

from hub.auth.shared_counts import Count, SharedCounts


def in_child(work: Callable[[], object]) -> int:
    """Start a process that does this; return its PID."""
    if pid := os.fork():
        return pid
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def count_one(found: Count | None) -> Count:
    return Count((found.number if found else 0) + 1, 1.0)


def test_no_event_of_a_process_is_lost() -> None:
    processes, events = 4, 2_000
    counts = SharedCounts(locked=True)

    def count_events() -> None:
        for _ in range(events):
            counts.change("a", 0.0, count_one)

    pids = [in_child(count_events) for _ in range(processes)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * processes
    assert counts.get("a", 0.0) == Count(processes * events, 1.0)
    counts.close()


def test_a_suspended_process_does_not_block_the_others() -> None:
    counts = SharedCounts(locked=True)
    reading, writing = os.pipe()

    def hold_the_lock(_: Count | None) -> None:
        os.write(writing, b".")
        signal.pause()

    pid = in_child(lambda: counts.change("a", 0.0, hold_the_lock))
    try:
        assert os.read(reading, 1)
        counts.change("a", 0.0, count_one)
        assert counts.get("a", 0.0) == Count(1, 1.0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)
        counts.close()
