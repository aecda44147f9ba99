"""The key that signs the audit log, and the append-only file of signed checkpoints."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from engine.errors import Unavailable
from engine.hooks.checkpoint import Checkpoint, Signer, Verify, as_document, from_document
from hub.keys.key_files import read_or_create

_PLACE = "[audit] key_file"


def signer_of(path: Path) -> Signer:
    """The signer of a key file, which is created if it is missing. Raises Unavailable."""
    key = _read_or_create(path)
    return Signer(key_id(key.public_key()), key.sign)


def _read_or_create(path: Path) -> Ed25519PrivateKey:
    text = read_or_create(path, _new_pem, name="the key that signs the audit log", place=_PLACE)
    try:
        key = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise Unavailable(
            f"{path} is not an Ed25519 private key in PEM without a password",
            place=_PLACE,
            remedy="Restore it, or remove it: the server then creates a new key.",
        )
    return key


def _new_pem() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def public_pem(path: Path) -> str:
    """The public key of a key file, in PEM. Raises Unavailable."""
    public = _read_or_create(path).public_key()
    return public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def key_id(key: Ed25519PublicKey) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of the public key's 32 bytes."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:16]


def read_public(paths: Iterable[Path]) -> Verify:
    """A function that verifies with these public or private keys in PEM. Raises Unavailable."""
    keys: dict[str, Ed25519PublicKey] = {}
    for path in paths:
        key = _public(path)
        keys[key_id(key)] = key
    return lambda name, message, signature: _verify(keys, name, message, signature)


def _public(path: Path) -> Ed25519PublicKey:
    try:
        text = path.read_bytes()
        if b"PRIVATE" in text:
            return _read_or_create(path).public_key()
        key = serialization.load_pem_public_key(text)
    except (OSError, ValueError):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise Unavailable(
            f"{path} is not an Ed25519 key in PEM",
            place="--public-key",
            remedy="Print the public key with `headgate admin audit-key` where the server runs.",
        )
    return key


def _verify(
    keys: Mapping[str, Ed25519PublicKey], name: str, message: bytes, signature: bytes
) -> bool | None:
    if name not in keys:
        return None
    try:
        keys[name].verify(signature, message)
    except InvalidSignature:
        return False
    return True


def checkpoint_exporter(path: Path) -> Callable[[Sequence[Checkpoint]], None]:
    """A function that appends a line of JSON for each checkpoint and syncs the file."""

    def export(checkpoints: Sequence[Checkpoint]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(as_document(one)) + "\n" for one in checkpoints).encode()
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                lines = b"\n" + lines  # the last line is incomplete after a crash; it is repeated
            os.write(file, lines)
            os.fsync(file)
        finally:
            os.close(file)

    return export


def read_checkpoints(path: Path) -> list[Checkpoint]:
    """The checkpoints of a file. Raises Unavailable.

    Skips a line that a crash left incomplete. The line is repeated after it; otherwise, the check
    of the next checkpoint fails.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        reason = f"cannot read {path}: {error.strerror}"
        raise Unavailable(
            reason, place="--signed", remedy="Name a file of signed checkpoints."
        ) from error
    found = []
    for line in lines:
        with suppress(ValueError):
            found.append(from_document(json.loads(line)))
    return found


def merge_checkpoints(files: Iterable[Iterable[Checkpoint]]) -> list[Checkpoint]:
    """Each checkpoint of these files once, by project and number."""
    found = {one.signature: one for file in files for one in file}
    return sorted(found.values(), key=lambda one: (one.project, one.number))
