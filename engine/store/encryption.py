"""Encryption of secret values with the operator's keys, which are in files and never in the
database.

A secret value inside a jsonb document is stored as ``{"$sealed:v2:KEY": "..."}``, KEY being the id
of the key, the text being nonce and ciphertext. The ciphertext is bound to a `Scope`: project,
owner (a stack, subscription, software config or deployment) and column. A value that was copied or
moved to another project, owner or column does not decrypt there.

A document from a user may have keys that look like that. `escape_keys` renames them before they are
written, so only this module writes the stored form.

Earlier versions wrote ``{"$sealed:TAG": "..."}``, without a scope. Such values are still read;
re-encrypting them (engine/store/reencryption.py) binds them.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.errors import Conflict
from engine.words import Json

KEY_BYTES = 32
_NONCE_BYTES = 12
_KEY_ID_BYTES = 8
#: Prefix of reserved keys in stored documents.
PREFIX = "$sealed:"
_ESCAPED = f"{PREFIX}user:"
_STORED = re.compile(r"\$sealed:v2:([0-9a-f]{16})")
_UNBOUND = re.compile(r"\$sealed:([0-9a-f]{16})")
#: The first byte of what `Sealer.seal` returns.
_VERSION = b"\x02"


class Scope(NamedTuple):
    """What an encrypted value belongs to. column: ``table.column``."""

    project: str
    owner: UUID
    column: str

    def encode(self) -> bytes:
        return f"headgate\0{self.project}\0{self.owner.hex}\0{self.column}".encode()


class Sealed(Conflict):
    """An encrypted value that cannot be decrypted with the configured keys."""


class Hidden:
    """A value that the jsonb codec encrypts when it is written.

    No dataclass: orjson would serialize one by itself, without asking the codec.
    """

    __slots__ = ("scope", "value")

    def __init__(self, value: Json, scope: Scope) -> None:
        self.value = value
        self.scope = scope


class Encrypted:
    """An encrypted value as it was read; written back, it stays as it is."""

    __slots__ = ("_sealer", "field", "text")

    def __init__(self, field: str, text: str, sealer: "Sealer | None") -> None:
        self.field = field
        self.text = text
        self._sealer = sealer

    def open(self, scope: Scope) -> Json:
        """Raises Sealed."""
        if self._sealer is None:
            raise _undecryptable(scope, "no key is configured", _NO_KEY)
        return self._sealer.decrypt(self, scope)

    def stored(self) -> dict[str, str]:
        return {self.field: self.text}


class SealedDocument:
    """A document with encrypted values inside; `reveal` makes the plain one of it."""

    __slots__ = ("document",)

    def __init__(self, document: Json) -> None:
        self.document = document

    def reveal(self, scope: Scope) -> Json:
        """Raises Sealed."""
        return _opened(self.document, scope)


def reveal(value: Json, scope: Scope) -> Json:
    """The plain form of a jsonb value that was read from `scope`. Raises Sealed."""
    return value.reveal(scope) if isinstance(value, SealedDocument) else value


def members(value: Json) -> Json:
    """The members of a composed document, each to be revealed by itself."""
    if not isinstance(value, SealedDocument):
        return value
    document = value.document
    if isinstance(document, dict):
        return {name: SealedDocument(member) for name, member in document.items()}
    if isinstance(document, list):
        return [SealedDocument(member) for member in document]
    return value


def _opened(document: Json, scope: Scope) -> Json:
    if isinstance(document, Encrypted):
        return document.open(scope)
    if isinstance(document, dict):
        return {name: _opened(value, scope) for name, value in document.items()}
    if isinstance(document, list):
        return [_opened(value, scope) for value in document]
    return document


def escape_keys(document: Json) -> Json:
    """The document, its keys that begin with PREFIX renamed; `read_document` undoes it."""
    if isinstance(document, Mapping):
        return {
            _ESCAPED + name if isinstance(name, str) and name.startswith(PREFIX) else name:
            escape_keys(value)
            for name, value in document.items()
        }  # fmt: skip
    if isinstance(document, list | tuple):
        return [escape_keys(value) for value in document]
    return document


def read_document(document: Json, sealer: "Sealer | None") -> Json:
    """A stored document: with its own keys, a SealedDocument if it has encrypted values."""
    found: list[Encrypted] = []
    plain = _read(document, sealer, found)
    return SealedDocument(plain) if found else plain


def _read(document: Json, sealer: "Sealer | None", found: list[Encrypted]) -> Json:
    if isinstance(document, dict):
        if len(document) == 1 and (one := _encrypted(document, sealer)) is not None:
            found.append(one)
            return one
        return {
            name.removeprefix(_ESCAPED): _read(value, sealer, found)
            for name, value in document.items()
        }
    if isinstance(document, list):
        return [_read(value, sealer, found) for value in document]
    return document


def _encrypted(document: dict[str, Json], sealer: "Sealer | None") -> Encrypted | None:
    ((field, text),) = document.items()
    if not isinstance(text, str) or not field.startswith(PREFIX):
        return None
    stored = _STORED.fullmatch(field) or _UNBOUND.fullmatch(field)
    return Encrypted(field, text, sealer) if stored else None


class _Key:
    """One key: AES-256-GCM. Equal values of one scope have one ciphertext, so that an unchanged
    value is not written again: the nonce is derived from scope and value."""

    def __init__(self, key: bytes) -> None:
        self.cipher = AESGCM(key)
        self._nonces = hmac.digest(key, b"nonces of scoped values", "sha256")
        tag = hmac.digest(key, b"tag of hidden values", "sha256").hex()[:16]
        self.unbound = f"{PREFIX}{tag}"
        #: Identifies a key without revealing it.
        self.check = hmac.digest(key, b"check of the key", "sha256")
        self.id = hmac.digest(key, b"id of the key", "sha256")[:_KEY_ID_BYTES]
        self.field = f"{PREFIX}v2:{self.id.hex()}"

    def nonce(self, scope: bytes, value: bytes) -> bytes:
        told = len(scope).to_bytes(4) + scope + value
        return hmac.digest(self._nonces, told, "sha256")[:_NONCE_BYTES]


class Sealer:
    """Encrypts with one key, and decrypts with that and the fallback keys."""

    def __init__(
        self,
        key: bytes,
        *,
        random_bytes: Callable[[int], bytes],
        fallbacks: Sequence[bytes] = (),
    ) -> None:
        self._key = _Key(key)
        self._keys = [self._key, *map(_Key, fallbacks)]
        self._random_bytes = random_bytes
        self._by_field = {one.field: one for one in self._keys}
        self._unbound = {one.unbound: one for one in self._keys}
        self._by_id = {one.id: one for one in self._keys}
        #: Of the key that encrypts.
        self.check = self._key.check
        self.field = self._key.field
        self.key_id = self._key.id.hex()

    @property
    def key_ids(self) -> list[str]:
        """The key that encrypts first."""
        return [one.id.hex() for one in self._keys]

    @property
    def forms(self) -> list[str]:
        """What may stand behind PREFIX in values that can be decrypted."""
        fields = (*self._by_field, *self._unbound)
        return [field.removeprefix(PREFIX) for field in fields]

    @property
    def checks(self) -> list[bytes]:
        return [one.check for one in self._keys]

    def hide(self, hidden: Hidden) -> dict[str, str]:
        """The stored form of a value in a document."""
        told, scope = orjson.dumps(hidden.value, default=str), hidden.scope.encode()
        nonce = self._key.nonce(scope, told)
        sealed = nonce + self._key.cipher.encrypt(nonce, told, scope)
        return {self._key.field: base64.b64encode(sealed).decode()}

    def decrypt(self, one: Encrypted, scope: Scope) -> Json:
        """Raises Sealed."""
        key, bound = self._by_field.get(one.field), scope.encode()
        if key is None:  # of an earlier version, or of a key that is not here
            key, bound = self._unbound.get(one.field), None  # type: ignore[assignment]
        if key is None:
            name = one.field.removeprefix(PREFIX).removeprefix("v2:")
            raise _undecryptable(scope, f"no key with the id {name} is configured", _NO_KEY)
        try:
            sealed = base64.b64decode(one.text, validate=True)
            told = key.cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
            return orjson.loads(told)
        except (InvalidTag, binascii.Error, ValueError):
            raise _undecryptable(scope, _DAMAGED, _RESTORE) from None

    def seal(self, scope: Scope, secret: str) -> bytes:
        """The stored form of a text in a column of bytes."""
        nonce = self._random_bytes(_NONCE_BYTES)
        sealed = self._key.cipher.encrypt(nonce, secret.encode(), scope.encode())
        return _VERSION + self._key.id + nonce + sealed

    def open(self, scope: Scope, sealed: bytes) -> str:
        """Raises Sealed."""
        start = 1 + _KEY_ID_BYTES
        key = self._by_id.get(sealed[1:start]) if sealed[:1] == _VERSION else None
        tries = [(key, sealed[start:], scope.encode())] if key else []
        # Earlier versions bound it to the stack alone.
        tries += [(one, sealed, scope.owner.bytes) for one in self._keys]
        for one, rest, bound in tries:
            try:
                nonce, told = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
                return one.cipher.decrypt(nonce, told, bound).decode()
            except (InvalidTag, ValueError):
                continue
        raise _undecryptable(scope, "it was encrypted with another key, or is damaged", _NO_KEY)

    def is_current(self, sealed: bytes) -> bool:
        """Whether `seal` would use the same key and form."""
        return sealed.startswith(_VERSION + self._key.id)


_DAMAGED = "it is damaged, or was moved here from another row"
_RESTORE = "Restore the row from a backup."
_NO_KEY = "Name the file with that key in [credentials] key_file or fallback_key_files."
_ABANDON = (
    "If neither the key nor the row can be restored, `headgate stack abandon` forgets the stack"
    " without deleting its resources."
)


def _undecryptable(scope: Scope, why: str, remedy: str) -> Sealed:
    table = scope.column.partition(".")[0]
    owner = "stack" if table in _OF_STACKS else table.replace("_", " ")
    if owner == "stack":
        remedy = f"{remedy} {_ABANDON}"
    return Sealed(
        f"an encrypted value in {scope.column} of {owner} {scope.owner} cannot be decrypted: {why}",
        remedy=remedy,
        code="Undecryptable",
    )


_OF_STACKS = frozenset({"template", "node", "resource", "resource_snapshot", "credential"})
