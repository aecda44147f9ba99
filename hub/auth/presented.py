"""What a request brings to say who it is from. Pure: headers in, what they say out."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Presented:
    """token: ``X-Auth-Token``. bearer: of ``Authorization: Bearer``. user, password: of HTTP
    basic, or ``X-Auth-User`` and ``X-Auth-Key``. said_roles: believed in mode none alone.
    named: ``X-Headgate-Credential``, what a change is to act with in the cloud, where that is not
    what lets one in here.
    """

    token: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    said_roles: tuple[str, ...] = ()
    named: str = field(default="", repr=False)

    @property
    def nothing(self) -> bool:
        return not (self.token or self.bearer or self.password)


def presented_in(headers: Mapping[str, str]) -> Presented:
    """What is no base64, or no text, presents nothing."""
    scheme, _, rest = headers.get("Authorization", "").partition(" ")
    user, password = _basic(rest) if scheme.lower() == "basic" else ("", "")
    roles = map(str.strip, headers.get("X-Roles", "").split(","))
    return Presented(
        token=headers.get("X-Auth-Token", ""),
        bearer=rest.strip() if scheme.lower() == "bearer" else "",
        user=headers.get("X-Auth-User", "") or user,
        password=headers.get("X-Auth-Key", "") or password,
        said_roles=tuple(filter(None, roles)),
        named=headers.get("X-Headgate-Credential", ""),
    )


def _basic(encoded: str) -> tuple[str, str]:
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password
