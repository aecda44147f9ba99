"""The key that tests seal hidden values with: one for fixtures and programs, so that both read."""

import os
import tempfile
from pathlib import Path

from engine.store.encryption import Sealer

KEY = b"k" * 32
A_SEALER = Sealer(KEY, random_bytes=os.urandom)


def key_file() -> Path:
    """A file that holds it."""
    path = Path(tempfile.gettempdir()) / f"headgate-tests-{os.getuid()}.key"
    if not path.exists():
        path.write_bytes(KEY)
    return path
