"""The machine that measures, and what its processes use. CPU times need Linux."""

import asyncio
import contextlib
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Samples of memory, half a second apart.
SAMPLES = 5


def load() -> float:
    """Processes that ran or waited for a core, on average of the last minute."""
    return os.getloadavg()[0]


def describe(folder: Path) -> dict[str, Any]:
    """folder: the directory of the databases."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1_000_000,
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "file_system": file_system(folder),
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def file_system(folder: Path) -> str:
    """Its type, such as ext4; tmpfs keeps nothing when the power fails."""
    file_system_type, longest = "", -1
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount_point, type_, *_ = line.split()
        if folder.resolve().is_relative_to(mount_point) and len(mount_point) > longest:
            file_system_type, longest = type_, len(mount_point)
    return file_system_type


def memory(pid: int) -> float:
    """MB of a process; a page that several processes share counts in parts (PSS of proc(5))."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError(f"process {pid} has no memory")


async def lowest_sample(read_value: Callable[[], float]) -> float:
    """The lowest of several samples."""
    samples = [read_value()]
    for _ in range(SAMPLES):
        await asyncio.sleep(0.5)
        samples.append(read_value())
    return min(samples)


def cpu(pid: int) -> float:
    """Seconds of CPU time of a process with its threads, also of those that have ended."""
    clock = (~pid << 3) | 2  # as clock_getcpuclockid(3) computes it
    return time.clock_gettime_ns(clock) / 1e9


def children(pid: int) -> list[int]:
    """The processes that its main thread has started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def processes_memory(pid: int) -> list[float]:
    """MB of a process and of each of its children; memory that they share counts in parts."""
    return [memory(pid), *map(memory, children(pid))]


def process_tree_memory(pid: int) -> float:
    """MB of a process and its children; memory that they share counts once."""
    return sum(processes_memory(pid))


def process_tree_cpu(pid: int) -> float:
    """Seconds of CPU time of a process, its children, and its children that have ended."""
    used = cpu(pid)
    for child in children(pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            used += cpu(child)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return used + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds of CPU time: of the server's processes, of PostgreSQL, and of this process."""

    server: float
    postgres: float
    client: float

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.server - other.server,
            self.postgres - other.postgres,
            self.client - other.client,
        )

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.server + other.server,
            self.postgres + other.postgres,
            self.client + other.client,
        )

    def each(self, count: int) -> dict[str, float]:
        """Microseconds of one of `count` units, as measures."""
        each = 1e6 / count
        return {
            "server_cpu": self.server * each,
            "postgres_cpu": self.postgres * each,
            "client_cpu": self.client * each,
        }
