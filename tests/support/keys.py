"""The encryption key of tests, for fixtures and processes."""

import os
import tempfile
from pathlib import Path

from engine.store.encryption.secret_values import Keyring

KEY = b"k" * 32
KEYRING = Keyring(KEY, random_bytes=os.urandom)


def key_file() -> Path:
    """A file that contains the key."""
    path = Path(tempfile.gettempdir()) / f"headgate-tests-{os.getuid()}.key"
    if not path.exists():
        path.write_bytes(KEY)
    return path
