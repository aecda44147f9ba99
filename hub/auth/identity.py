"""Who is asking. One authenticator a mode; handlers see only the `Identity`."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

#: What a nameless requester is called in records.
ANONYMOUS = "anonymous"
#: Characters of a name that are kept.
LONGEST = 255


@dataclass(frozen=True, slots=True)
class Identity:
    """name: who it is, for the record. project: the one in the path, which they may see.

    roles: what they are, as in a rule's `answer_by`. credential: what they brought for the change
    to act with in the cloud (``X-Auth-Token``).
    """

    name: str
    project: str
    roles: tuple[str, ...] = ()
    credential: str = field(default="", repr=False)


class Authenticator(Protocol):
    def identify(self, headers: Mapping[str, str], project: str) -> Identity:
        """Raises Forbidden when they may not."""
        ...


class Nobody:
    """Mode ``none``: everybody may do everything in every project, and is believed their name and
    their roles (``X-Auth-User``, ``X-Roles: operator,dba``)."""

    def identify(self, headers: Mapping[str, str], project: str) -> Identity:
        said = headers.get("X-Auth-User") or _basic_user(headers)
        roles = [_writable(role) for role in headers.get("X-Roles", "").split(",")]
        token = headers.get("X-Auth-Token", "")
        return Identity(_writable(said) or ANONYMOUS, project, tuple(filter(None, roles)), token)


def _writable(name: str) -> str:
    """A name as it may be stored and shown: no control characters, no half ones, not endless."""
    return "".join(one if one.isprintable() else "?" for one in name.strip())[:LONGEST]


def _basic_user(headers: Mapping[str, str]) -> str:
    kind, _, encoded = headers.get("Authorization", "").partition(" ")
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return ""
