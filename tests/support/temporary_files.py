"""Puts temporary files into memory if there is room.

Creating a database from a template copies a few hundred files, which takes ten times as long on a
disk.
"""

import os
import shutil
import tempfile
from pathlib import Path

#: A file system in memory, on Linux.
MEMORY = Path("/dev/shm")
#: The free space in bytes that it must have; a full test run needs less.
MIN_FREE_BYTES = 4 << 30


def prefer_memory() -> None:
    """Use it for the temporary files of this process and its children, unless TMPDIR is set."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(MEMORY).free >= MIN_FREE_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
