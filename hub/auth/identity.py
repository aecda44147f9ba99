"""Who is asking. One authenticator a mode; handlers see only the `Identity`."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

#: What a nameless requester is called in records.
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Identity:
    """name: who it is, for the record. project: the one in the path, which they may see."""

    name: str
    project: str


class Authenticator(Protocol):
    def identify(self, headers: Mapping[str, str], project: str) -> Identity:
        """Raises Forbidden when they may not."""
        ...


class Nobody:
    """Mode ``none``: everybody may do everything in every project, and is believed their name."""

    def identify(self, headers: Mapping[str, str], project: str) -> Identity:
        return Identity(headers.get("X-Auth-User") or _basic_user(headers) or ANONYMOUS, project)


def _basic_user(headers: Mapping[str, str]) -> str:
    kind, _, encoded = headers.get("Authorization", "").partition(" ")
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return ""
