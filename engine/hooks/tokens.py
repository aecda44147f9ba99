"""Tokens made for one thing: derived from a key of the instance, so that they are stored nowhere.

The key is rotated: new tokens derive from the newest version. Tokens of an older one are accepted
as long as that version is kept (engine/store/token_keys.py).
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class TokenKey(NamedTuple):
    """One version of the key. retired_at: when a newer one took its place; None: it is the newest.
    signals: whether it still opens for signals and servers."""

    version: int
    key: bytes
    retired_at: datetime | None = None
    signals: bool = True


class TokenKeys:
    """The versions that are accepted, the newest first; replaced when the key is rotated."""

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
    """The token with which a subscription answers a hook, and nothing else: the subscription's id
    and a message authentication code over both ids, in URL-safe base64 with a dot between."""
    given = hook_id.bytes + subscription_id.bytes
    return f"{_text(subscription_id.bytes)}.{_token(key, b'headgate hook answer ' + given)}"


def holder_of(key: bytes, hook_id: UUID, token: str) -> UUID | None:
    """The subscription that a hook's token was given to; None: it is no token of this hook."""
    try:
        given = UUID(bytes=base64.urlsafe_b64decode(token.partition(".")[0] + "=="))
    except ValueError:
        return None
    right = hook_token(key, hook_id, given)
    return given if hmac.compare_digest(token.encode(), right.encode()) else None


def signal_token(key: bytes, stack_id: UUID, resource_id: UUID) -> str:
    """In the same form; whoever shows it may send data to this resource and nothing else."""
    return _token(key, b"headgate signal " + stack_id.bytes + resource_id.bytes)


def server_secret(key: bytes, stack_id: UUID, resource_id: UUID) -> str:
    """In the same form; whoever signs with it may read what is deployed to this server."""
    return _token(key, b"headgate server " + stack_id.bytes + resource_id.bytes)


def _token(key: bytes, what: bytes) -> str:
    digest = hmac.digest(key, what, hashlib.sha256)
    return _text(digest)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
