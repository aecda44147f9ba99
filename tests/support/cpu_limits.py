"""Limits of CPU time that follow the speed of the machine."""

import math
import resource
import statistics
import time


def seconds_of_calculations(count: int) -> float:
    """The CPU time, in seconds, that `count` reference calculations take on this machine now.

    One takes about 0.02 seconds; it is measured three times.
    """
    return count * statistics.median(_calculate() for _ in range(3))


def limit_cpu_time(seconds: float) -> None:
    """Let the kernel end this process after so many more seconds of CPU time, rounded up."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))


def _calculate() -> float:
    start = time.process_time()
    words: dict[str, int] = {}
    for number in range(60_000):
        word = f"word {number % 1_000}"
        words[word] = words.get(word, 0) + number
    return time.process_time() - start
