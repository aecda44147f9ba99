"""What a request brings to say who it is from. Pure: headers in, what they say out."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """token: ``X-Auth-Token``. bearer: of ``Authorization: Bearer``. user, password: of HTTP
    basic, or ``X-Auth-User`` and ``X-Auth-Key``. said_roles: believed in mode none alone.
    named: ``X-Headgate-Credential``, what a change is to act with in the cloud, where that is not
    what lets one in here. block: of the sender's address, by which attempts are counted.
    session_token: id of the token or password that the browser's session began with.
    """

    token: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    said_roles: tuple[str, ...] = ()
    named: str = field(default="", repr=False)
    block: str = ""
    session_token: UUID | None = None

    @property
    def nothing(self) -> bool:
        return not (self.token or self.bearer or self.password or self.session_token)


def cache_key(presented: RequestCredentials, project: str = "") -> str:
    """A hash, so that caches hold no credential. That of a password includes the address block:
    from elsewhere the same password counts as a new attempt."""
    block = presented.block if presented.password else ""
    parts = "\0".join(
        (presented.token, presented.bearer, presented.user, presented.password, project, block)
    )
    return hashlib.sha256(parts.encode(errors="surrogateescape")).hexdigest()


def request_credentials(headers: Mapping[str, str], block: str = "") -> RequestCredentials:
    """What is no base64, or no text, presents nothing."""
    scheme, _, rest = headers.get("Authorization", "").partition(" ")
    user, password = _basic(rest) if scheme.lower() == "basic" else ("", "")
    roles = map(str.strip, headers.get("X-Roles", "").split(","))
    return RequestCredentials(
        token=headers.get("X-Auth-Token", ""),
        bearer=rest.strip() if scheme.lower() == "bearer" else "",
        user=headers.get("X-Auth-User", "") or user,
        password=headers.get("X-Auth-Key", "") or password,
        said_roles=tuple(filter(None, roles)),
        named=headers.get("X-Headgate-Credential", ""),
        block=block,
    )


def _basic(encoded: str) -> tuple[str, str]:
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password
