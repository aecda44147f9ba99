"""Sealing credentials with the operator's key, which is in a file and never in the database."""

import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.errors import HeadgateError, Unavailable

KEY_BYTES = 32
_NONCE_BYTES = 12


class Sealed(HeadgateError):
    """What is sealed cannot be opened with the key that is here."""


class Sealer:
    """AES-256-GCM. What is sealed for one stack opens for no other."""

    def __init__(self, key: bytes, *, random_bytes: Callable[[int], bytes]) -> None:
        self._cipher = AESGCM(key)
        self._random_bytes = random_bytes

    def seal(self, stack_id: UUID, secret: str) -> bytes:
        nonce = self._random_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret.encode(), stack_id.bytes)

    def open(self, stack_id: UUID, sealed: bytes) -> str:
        """Raises Sealed."""
        nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, rest, stack_id.bytes).decode()
        except InvalidTag:
            raise Sealed(
                "the credential of this stack was sealed with another key",
                remedy="Give all processes one [credentials] key_file.",
            ) from None


def read_key(path: Path, fresh: bytes) -> bytes:
    """The key in a file that only its owner may read; `fresh` becomes it when there is none.

    Raises Unavailable.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(made, "wb") as file:
                file.write(fresh)
        key = path.read_bytes()
    except OSError as error:
        raise Unavailable(
            f"cannot read or make the key of credentials {path}: {error.strerror}",
            place="[credentials] key_file",
            remedy="Name a file that the server may write, or one that holds 32 bytes.",
        ) from error
    if len(key) != KEY_BYTES:
        raise Unavailable(
            f"the key of credentials {path} has {len(key)} bytes, not {KEY_BYTES}",
            place="[credentials] key_file",
            remedy="Restore it, or remove it: what was sealed with it is lost then.",
        )
    return key
