"""What a process of this machine uses."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path


async def settled(look: Callable[[], float]) -> float:
    """The smallest of some seconds: what is held, not what was just used."""
    seen = []
    for _ in range(5):
        await asyncio.sleep(0.5)
        seen.append(look())
    return min(seen)


def memory(pid: int) -> float:
    """Resident MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu(pid: int) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
