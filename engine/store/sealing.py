"""Sealing what nobody is shown with the operator's key, which is in a file and never in the
database.

Credentials are sealed for their stack. Hidden values inside of documents are sealed where they
stand: ``{"$sealed:TAG": "..."}``. Only who has the key knows the tag, so nobody can bring such a
document in from outside.
"""

import base64
import hmac
import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.errors import HeadgateError, Unavailable
from engine.words import Json

KEY_BYTES = 32
_NONCE_BYTES = 12


class Sealed(HeadgateError):
    """What is sealed cannot be opened with the key that is here."""


class Hidden:
    """A value that is sealed when it is written, and plain again when it is read.

    No dataclass: orjson would write one out as it is, and ask nobody.
    """

    __slots__ = ("value",)

    def __init__(self, value: Json) -> None:
        self.value = value


class Sealer:
    """AES-256-GCM. What is sealed for one stack opens for no other.

    A hidden value's nonce is made from the value itself: the same one is sealed to the same text,
    so that what has not changed is not written again.
    """

    def __init__(self, key: bytes, *, random_bytes: Callable[[int], bytes]) -> None:
        self._cipher = AESGCM(key)
        self._random_bytes = random_bytes
        self._nonces = hmac.digest(key, b"nonces of hidden values", "sha256")
        tag = hmac.digest(key, b"tag of hidden values", "sha256").hex()[:16]
        self._field = f"$sealed:{tag}"
        #: Whether there may be something to open is seen by this.
        self.marker = f'"{self._field}"'.encode()
        #: Tells keys apart, and nothing about them.
        self.check = hmac.digest(key, b"check of the key", "sha256")

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

    def hide(self, hidden: Hidden) -> dict[str, str]:
        """What stands in the document."""
        said = orjson.dumps(hidden.value, default=str)
        nonce = hmac.digest(self._nonces, said, "sha256")[:_NONCE_BYTES]
        sealed = nonce + self._cipher.encrypt(nonce, said, None)
        return {self._field: base64.b64encode(sealed).decode()}

    def shown(self, document: Json) -> Json:
        """The document with its hidden values. Raises Sealed."""
        if isinstance(document, dict):
            if len(document) == 1 and self._field in document:
                return self._opened(document[self._field])
            return {name: self.shown(value) for name, value in document.items()}
        if isinstance(document, list):
            return [self.shown(value) for value in document]
        return document

    def _opened(self, text: str) -> Json:
        sealed = base64.b64decode(text)
        try:
            return orjson.loads(
                self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
            )
        except InvalidTag:
            raise Sealed(
                "a hidden value in the database is damaged",
                remedy="Restore the row from a backup.",
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
