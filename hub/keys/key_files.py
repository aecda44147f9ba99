"""Key files, which only their owner can read. A file of an encryption key contains 32 bytes."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.errors import Unavailable
from engine.store.encryption.secret_values import KEY_BYTES


def read_or_create(path: Path, create: Callable[[], bytes], *, name: str, place: str) -> bytes:
    """The content of a key file. A file that does not exist is created with mode 0600.

    create: the content of a new file. name: of the key, and place: of its setting, for the error.
    Raises Unavailable.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _create_atomically(path, create())
        return path.read_bytes()
    except OSError as error:
        raise Unavailable(
            f"cannot read or create {name} {path}: {error.strerror}",
            place=place,
            remedy="Name a file that the server can read, or can create in its folder.",
        ) from error


def _create_atomically(path: Path, content: bytes) -> None:
    """Create a file with its whole content. If another process has created it, keep that one."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def read_key(path: Path, fresh: bytes) -> bytes:
    """The encryption key of a file, which is created with `fresh` if it does not exist. Raises
    Unavailable."""
    place = "[credentials] key_file"
    key = read_or_create(path, lambda: fresh, name="the key of credentials", place=place)
    if len(key) != KEY_BYTES:
        raise Unavailable(
            f"the key of credentials {path} has {len(key)} bytes, not {KEY_BYTES}",
            place=place,
            remedy="Restore it. If you remove it, the values encrypted with it are lost.",
        )
    return key


def read_fallback_key(path: Path) -> bytes:
    """The encryption key of an existing file. Raises Unavailable."""
    place = "[credentials] fallback_key_files"
    try:
        key = path.read_bytes()
    except OSError as error:
        raise Unavailable(
            f"the encryption key {path} cannot be read: {error.strerror}",
            place=place,
            remedy="Restore the file, or remove it from the list if no value needs it.",
        ) from error
    if len(key) != KEY_BYTES:
        raise Unavailable(
            f"the encryption key {path} has {len(key)} bytes, not {KEY_BYTES}",
            place=place,
            remedy="Restore the file; it must contain exactly the bytes of the key.",
        )
    return key
