"""Encryption of secret values. The keys are in files of the operator, never in the database.

A secret value in a jsonb document is stored as ``{"$sealed:v2:KEY": "..."}``: the ID of the key,
and nonce and ciphertext in base64. The ciphertext is bound to a `Scope`: project, owner (a stack,
subscription, software config or deployment) and column. A value that is copied to another project,
owner or column cannot be decrypted there.

`escape_keys` renames keys in documents of users that look like this form.

Earlier versions wrote ``{"$sealed:TAG": "..."}`` without a scope. Such values can still be read;
re-encryption (engine/store/maintenance/reencryption.py) binds them.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
#: The first byte of the result of `Keyring.encrypt`.
_VERSION = b"\x02"


class Scope(NamedTuple):
    """Where an encrypted value is stored. column: ``table.column``."""

    project: str
    owner: UUID
    column: str

    def encode(self) -> bytes:
        return f"headgate\0{self.project}\0{self.owner.hex}\0{self.column}".encode()


class DecryptionFailed(Conflict):
    """An encrypted value that cannot be decrypted with the configured keys. place: its column, or
    what was requested. The reason names the column too, and also the remedy if it is that of an
    earlier error."""

    def __init__(self, reason: str, *, place: str, remedy: str = "", code: str) -> None:
        super().__init__(reason, place=place, remedy=remedy, code=code)

    def __str__(self) -> str:
        return str(replace(self.finding, place=""))


class Secret:
    """A value that the jsonb codec encrypts when it writes it.

    Not a dataclass, because orjson would serialize one without calling the codec.
    """

    __slots__ = ("scope", "value")

    def __init__(self, value: Json, scope: Scope) -> None:
        self.value = value
        self.scope = scope


class EncryptedValue:
    """An encrypted value that was read. It is written back unchanged."""

    __slots__ = ("_keyring", "field", "text")

    def __init__(self, field: str, text: str, keyring: "Keyring | None") -> None:
        self.field = field
        self.text = text
        self._keyring = keyring

    def decrypt(self, scope: Scope) -> Json:
        """Raises DecryptionFailed."""
        if self._keyring is None:
            raise _undecryptable(scope, "no key is configured", _NO_KEY)
        return self._keyring.decrypt_value(self, scope)

    def as_document(self) -> dict[str, str]:
        return {self.field: self.text}


class EncryptedDocument:
    """A document that contains encrypted values."""

    __slots__ = ("document",)

    def __init__(self, document: Json) -> None:
        self.document = document

    def decrypt(self, scope: Scope) -> Json:
        """Raises DecryptionFailed."""
        return _decrypt_all(self.document, scope)


def decrypt(value: Json, scope: Scope) -> Json:
    """A jsonb value that was read from `scope`, in plain text. Raises DecryptionFailed."""
    return value.decrypt(scope) if isinstance(value, EncryptedDocument) else value


def encrypted_members(value: Json) -> Json:
    """The members of a document, each to be decrypted with a scope of its own."""
    if not isinstance(value, EncryptedDocument):
        return value
    document = value.document
    if isinstance(document, dict):
        return {name: EncryptedDocument(member) for name, member in document.items()}
    if isinstance(document, list):
        return [EncryptedDocument(member) for member in document]
    return value


def _decrypt_all(document: Json, scope: Scope) -> Json:
    if isinstance(document, EncryptedValue):
        return document.decrypt(scope)
    if isinstance(document, dict):
        return {name: _decrypt_all(value, scope) for name, value in document.items()}
    if isinstance(document, list):
        return [_decrypt_all(value, scope) for value in document]
    return document


def escape_keys(document: Json) -> Json:
    """Rename the keys of a document that begin with PREFIX; `read_document` restores them."""
    if isinstance(document, Mapping):
        return {
            _ESCAPED + name if isinstance(name, str) and name.startswith(PREFIX) else name:
            escape_keys(value)
            for name, value in document.items()
        }  # fmt: skip
    if isinstance(document, list | tuple):
        return [escape_keys(value) for value in document]
    return document


def read_document(document: Json, keyring: "Keyring | None") -> Json:
    """Parse a stored document; returns an EncryptedDocument if it has encrypted values."""
    found: list[EncryptedValue] = []
    plain = _read(document, keyring, found)
    return EncryptedDocument(plain) if found else plain


def _read(document: Json, keyring: "Keyring | None", values: list[EncryptedValue]) -> Json:
    if isinstance(document, dict):
        if len(document) == 1 and (one := _read_encrypted(document, keyring)) is not None:
            values.append(one)
            return one
        return {
            name.removeprefix(_ESCAPED): _read(value, keyring, values)
            for name, value in document.items()
        }
    if isinstance(document, list):
        return [_read(value, keyring, values) for value in document]
    return document


def _read_encrypted(document: dict[str, Json], keyring: "Keyring | None") -> EncryptedValue | None:
    ((field, text),) = document.items()
    if not isinstance(text, str) or not field.startswith(PREFIX):
        return None
    stored = _STORED.fullmatch(field) or _UNBOUND.fullmatch(field)
    return EncryptedValue(field, text, keyring) if stored else None


class _Key:
    """An AES-256-GCM key. The nonce of a jsonb value is derived from its scope and content: an
    unchanged value has the same ciphertext, so its row is not written again."""

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
        message = len(scope).to_bytes(4) + scope + value
        return hmac.digest(self._nonces, message, "sha256")[:_NONCE_BYTES]


class Keyring:
    """Encrypts with one key, and decrypts with this key and the fallback keys."""

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
        """IDs of all keys. The first one encrypts."""
        return [one.id.hex() for one in self._keys]

    def key_id_of(self, check: bytes) -> str | None:
        """The ID of the key with a check; None: it is not configured."""
        return next((one.id.hex() for one in self._keys if one.check == check), None)

    @property
    def forms(self) -> list[str]:
        """The suffixes of PREFIX in the values that these keys can decrypt."""
        fields = (*self._by_field, *self._unbound)
        return [field.removeprefix(PREFIX) for field in fields]

    @property
    def checks(self) -> list[bytes]:
        return [one.check for one in self._keys]

    def encrypt_value(self, secret: Secret) -> dict[str, str]:
        """The stored form of a value in a document."""
        plain, scope = orjson.dumps(secret.value, default=str), secret.scope.encode()
        nonce = self._key.nonce(scope, plain)
        ciphertext = nonce + self._key.cipher.encrypt(nonce, plain, scope)
        return {self._key.field: base64.b64encode(ciphertext).decode()}

    def decrypt_value(self, encrypted: EncryptedValue, scope: Scope) -> Json:
        """Raises DecryptionFailed."""
        field = encrypted.field
        key, bound = self._by_field.get(field), scope.encode()
        if key is None:  # written by an earlier version, or with a key that is not configured
            key, bound = self._unbound.get(field), None  # type: ignore[assignment]
        if key is None:
            name = field.removeprefix(PREFIX).removeprefix("v2:")
            raise _undecryptable(scope, f"no key with the id {name} is configured", _NO_KEY)
        try:
            stored = base64.b64decode(encrypted.text, validate=True)
            nonce, ciphertext = stored[:_NONCE_BYTES], stored[_NONCE_BYTES:]
            return orjson.loads(key.cipher.decrypt(nonce, ciphertext, bound))
        except (InvalidTag, binascii.Error, ValueError):
            raise _undecryptable(scope, _DAMAGED, _RESTORE) from None

    def encrypt(self, scope: Scope, text: str) -> bytes:
        """The stored form of a text in a column of bytes."""
        nonce = self._random_bytes(_NONCE_BYTES)
        ciphertext = self._key.cipher.encrypt(nonce, text.encode(), scope.encode())
        return _VERSION + self._key.id + nonce + ciphertext

    def decrypt(self, scope: Scope, encrypted: bytes) -> str:
        """Raises DecryptionFailed."""
        start = 1 + _KEY_ID_BYTES
        key = self._by_id.get(encrypted[1:start]) if encrypted[:1] == _VERSION else None
        tries = [(key, encrypted[start:], scope.encode())] if key else []
        # Earlier versions bound it to the stack alone.
        tries += [(one, encrypted, scope.owner.bytes) for one in self._keys]
        for one, rest, bound in tries:
            try:
                nonce, ciphertext = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
                return one.cipher.decrypt(nonce, ciphertext, bound).decode()
            except (InvalidTag, ValueError):
                continue
        raise _undecryptable(scope, "it was encrypted with another key, or is damaged", _NO_KEY)

    def is_current(self, encrypted: bytes) -> bool:
        """Whether `encrypt` would use the same key and form."""
        return encrypted.startswith(_VERSION + self._key.id)


_DAMAGED = "it is damaged, or was moved here from another row"
_RESTORE = "Restore the row from a backup."
_NO_KEY = "Name the file with that key in [credentials] key_file or fallback_key_files."
_ABANDON = (
    "If neither the key nor the row can be restored, `headgate stack abandon` forgets the stack"
    " without deleting its resources."
)


def _undecryptable(scope: Scope, why: str, remedy: str) -> DecryptionFailed:
    table = scope.column.partition(".")[0]
    owner = "stack" if table in _OF_STACKS else table.replace("_", " ")
    if owner == "stack":
        remedy = f"{remedy} {_ABANDON}"
    return DecryptionFailed(
        f"an encrypted value in {scope.column} of {owner} {scope.owner} cannot be decrypted: {why}",
        place=scope.column,
        remedy=remedy,
        code="Undecryptable",
    )


_OF_STACKS = frozenset({"template", "node", "resource", "resource_snapshot", "credential"})
