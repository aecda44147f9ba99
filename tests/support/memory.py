"""Where tests put what they throw away: in memory, where there is room for it.

A database that is made from a template is a few hundred files; on a disk that takes ten times as
long.
"""

import os
import shutil
import tempfile
from pathlib import Path

#: A file system in memory, where the machine has one.
MEMORY = Path("/dev/shm")
#: Bytes that are to be free in it; a whole run takes less.
ENOUGH = 4 << 30


def prefer_memory() -> None:
    """Have this process, and those that it starts, make temporary files there.

    Whoever says TMPDIR says where.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(MEMORY).free >= ENOUGH:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
