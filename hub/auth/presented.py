"""What a request brings to say who it is from. Pure: headers in, what they say out."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Presented:
    """token: ``X-Auth-Token`` or ``Authorization: Bearer``. user, password: HTTP basic, or
    ``X-Auth-User`` and ``X-Auth-Key``. said_roles: what is believed in mode none alone.
    """

    token: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    said_roles: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        return not (self.token or self.password)


def presented_in(headers: Mapping[str, str]) -> Presented:
    """What is no base64, or no text, presents nothing."""
    scheme, _, rest = headers.get("Authorization", "").partition(" ")
    said = Presented(
        token=headers.get("X-Auth-Token", ""),
        user=headers.get("X-Auth-User", ""),
        password=headers.get("X-Auth-Key", ""),
        said_roles=tuple(filter(None, map(str.strip, headers.get("X-Roles", "").split(",")))),
    )
    match scheme.lower():
        case "bearer":
            return replace(said, token=said.token or rest.strip())
        case "basic":
            user, password = _basic(rest)
            return replace(said, user=said.user or user, password=said.password or password)
        case _:
            return said


def _basic(encoded: str) -> tuple[str, str]:
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password
