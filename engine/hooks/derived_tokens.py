"""Tokens for a single purpose, derived from a key of the installation. They are not stored.

After a rotation, new tokens derive from the newest version of the key. Tokens of an older version
are accepted as long as that version is stored (engine/store/access/token_keys.py).
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class TokenKey(NamedTuple):
    """One version of the key. retired_at: when a newer one replaced it; None: it is the newest.
    signals: whether tokens of signals and servers that derive from it are still accepted.
    """

    version: int
    key: bytes
    retired_at: datetime | None = None
    signals: bool = True


class TokenKeys:
    """The accepted versions, the newest first. A rotation replaces them."""

    def __init__(self, versions: Sequence[TokenKey]) -> None:
        self._versions = tuple(versions)

    @classmethod
    def single(cls, key: bytes) -> "TokenKeys":
        return cls([TokenKey(1, key)])

    def __iter__(self) -> Iterator[TokenKey]:
        return iter(self._versions)

    @property
    def newest(self) -> bytes:
        return self._versions[0].key

    @property
    def for_signals(self) -> list[bytes]:
        return [one.key for one in self._versions if one.signals]

    def replace(self, versions: Sequence[TokenKey]) -> None:
        self._versions = tuple(versions)


def hook_token(key: bytes, hook_id: UUID, subscription_id: UUID) -> str:
    """Return the token with which a subscription answers this hook only: the subscription's ID and
    an HMAC-SHA256 over both IDs, each in URL-safe base64, separated by a dot.
    """
    ids = hook_id.bytes + subscription_id.bytes
    return f"{base64_text(subscription_id.bytes)}.{_token(key, b'headgate hook answer ' + ids)}"


def holder_of(key: bytes, hook_id: UUID, token: str) -> UUID | None:
    """Return the subscription of a hook's token; None if the token is not valid for this hook."""
    try:
        subscription_id = UUID(bytes=base64.urlsafe_b64decode(token.partition(".")[0] + "=="))
    except ValueError:
        return None
    expected = hook_token(key, hook_id, subscription_id)
    return subscription_id if hmac.compare_digest(token.encode(), expected.encode()) else None


def button_token(key: bytes, hook_id: UUID, subscription_id: UUID, digest: str) -> str:
    """Return the token of a button in a chat, in the form of `hook_token`. It proves that this
    server made the button for this hook and digest, and authorizes nothing.
    """
    what = hook_id.bytes + subscription_id.bytes + digest.encode()
    return f"{base64_text(subscription_id.bytes)}.{_token(key, b'headgate hook button ' + what)}"


def is_button_token(key: bytes, hook_id: UUID, digest: str, token: str) -> bool:
    try:
        subscription_id = UUID(bytes=base64.urlsafe_b64decode(token.partition(".")[0] + "=="))
    except ValueError:
        return False
    expected = button_token(key, hook_id, subscription_id, digest)
    return hmac.compare_digest(token.encode(), expected.encode())


def signal_token(key: bytes, stack_id: UUID, resource_id: UUID) -> str:
    """Return the token that permits signals to this resource only: an HMAC in URL-safe base64."""
    return _token(key, b"headgate signal " + stack_id.bytes + resource_id.bytes)


def server_secret(key: bytes, stack_id: UUID, resource_id: UUID) -> str:
    """Return the secret that signs requests for the metadata of this server, in the same form."""
    return _token(key, b"headgate server " + stack_id.bytes + resource_id.bytes)


def container_key(key: bytes, project: str, container: str) -> str:
    """Return the key of the temporary URLs of a container that Headgate creates in a project."""
    return _token(key, b"headgate container " + f"{project}/{container}".encode())


def _token(key: bytes, what: bytes) -> str:
    digest = hmac.digest(key, what, hashlib.sha256)
    return base64_text(digest)


def base64_text(raw: bytes) -> str:
    """In base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
