"""The place of a process among the processes of one `headgate serve`."""

import math
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hub.settings.settings import Settings

#: Maximum number of processes that `headgate serve` starts unless the settings name a number: each
#: has its own memory and database connections.
MAX_DEFAULT_PROCESSES = 4
#: The mount point of control groups, version 2.
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class ProcessSlot:
    """One of `count` processes with the same settings and listening sockets.

    number: from 1. api, metrics: listening sockets that all of them share; none: this process opens
    its own. directory: of the sockets at which the processes exchange their metrics.
    """

    number: int = 1
    count: int = 1
    api: Sequence[socket.socket] = ()
    metrics: Sequence[socket.socket] = ()
    directory: Path | None = None

    def share(self, total: int) -> int:
        """The part of a limit of the whole server that this process may use; at least 1."""
        return math.ceil(total / self.count)


def count_processes(settings: Settings, *, has_all_roles: bool) -> int:
    """The configured number of processes. By default, one for each usable core if they have all
    roles."""
    if settings.server.processes:
        return settings.server.processes
    return min(usable_cores(), MAX_DEFAULT_PROCESSES) if has_all_roles else 1


def usable_cores(cgroups: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> int:
    """The cores that this process may use: those of its affinity, within the CPU quota of its
    control group and the groups above."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, int(_cpu_quota(cgroups, membership))))


def _cpu_quota(cgroups: Path, membership: Path) -> float:
    """The lowest quota in cores of the control groups (version 2) of this process."""
    lowest = float("inf")
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return _UNLIMITED
    group = next((line[3:] for line in lines if line.startswith("0::")), "")
    path = cgroups / group.strip("/")
    for folder in (path, *path.parents):
        if not folder.is_relative_to(cgroups):
            break
        try:
            quota, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            lowest = min(lowest, int(quota) / int(period))
    return min(lowest, _UNLIMITED)


_UNLIMITED = 1_000_000.0
