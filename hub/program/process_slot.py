"""The place of a process among the processes of one `headgate serve`."""

import math
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hub.auth.request_counts import RequestCounts
from hub.settings.settings import Settings

#: Bytes of memory for each process that `headgate serve` starts unless the settings name a number:
#: what one needs with large templates, and as much for PostgreSQL and others.
MEMORY_PER_PROCESS = 600_000_000
#: Maximum number of connections of these processes to a database server that is not embedded: by
#: default, PostgreSQL accepts 100.
MAX_CONNECTIONS = 90
#: Connections of a process in addition to its pool.
MORE_CONNECTIONS = 2
#: The mount point of control groups: of version 2, or of the controllers of version 1.
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class ProcessSlot:
    """One of `count` processes with the same settings and listening sockets.

    number: from 1. api, metrics: listening sockets that all of them share; none: this process opens
    its own. directory: of the sockets at which the processes exchange their metrics. counts: of
    the requests to all processes; None: this one counts its own. replaces:
    another process serves the sockets until this one is ready.
    """

    number: int = 1
    count: int = 1
    api: Sequence[socket.socket] = ()
    metrics: Sequence[socket.socket] = ()
    directory: Path | None = None
    counts: RequestCounts | None = None
    replaces: bool = False

    def share(self, total: int) -> int:
        """The part of a limit of the whole server that this process may use; at least 1."""
        return math.ceil(total / self.count)


def count_processes(settings: Settings, *, has_all_roles: bool) -> int:
    """The configured number of processes. By default, if they have all roles, one for each usable
    core, as far as there are memory and database connections for them."""
    if settings.server.processes:
        return settings.server.processes
    if not has_all_roles:
        return 1
    database = settings.database
    counts = [usable_cores(), usable_memory() // MEMORY_PER_PROCESS]
    if database.url.get_secret_value() and not database.pooler_url.get_secret_value():
        # One more process is connected while it replaces another one.
        counts.append(MAX_CONNECTIONS // (database.pool + MORE_CONNECTIONS) - 1)
    return max(1, min(counts))


def usable_memory(cgroups: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> int:
    """Bytes of memory that this process may use: those of the machine, within the limits of its
    control group and the groups above."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # the system does not say
        return UNKNOWN_MEMORY
    for folder in _control_groups(cgroups, membership, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # "max" is no number
                memory = min(memory, int((folder / name).read_text()))
    return memory


def usable_cores(cgroups: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> int:
    """The cores that this process may use: those of its affinity, within the CPU quota of its
    control group and the groups above."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, int(_cpu_quota(cgroups, membership))))


def _cpu_quota(cgroups: Path, membership: Path) -> float:
    """The lowest quota in cores of the control groups of this process."""
    lowest = _UNLIMITED
    for folder in _control_groups(cgroups, membership, "cpu"):
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            # In version 2, one file has both. No quota: "max", or -1 in version 1.
            with suppress(OSError, ValueError):
                quota, period = " ".join((folder / name).read_text() for name in names).split()
                if int(quota) > 0:
                    lowest = min(lowest, int(quota) / int(period))
    return lowest


def _control_groups(cgroups: Path, membership: Path, controller: str) -> list[Path]:
    """The folders of the control group of this process and of the groups above, in version 2, and
    in version 1 for a controller. In a container, a folder can be missing; the limits of the
    container are in the topmost one."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return []
    found: list[Path] = []
    for number, controllers, group in lines:
        if number == "0" and not controllers:
            top = cgroups
        elif controller in controllers.split(","):
            top = cgroups / controller
        else:
            continue
        path = top / group.strip("/")
        found += [one for one in (path, *path.parents) if one.is_relative_to(top)]
    return found


_UNLIMITED = 1_000_000.0
#: Bytes that are assumed on a system that does not say how much it has.
UNKNOWN_MEMORY = 4 * MEMORY_PER_PROCESS
