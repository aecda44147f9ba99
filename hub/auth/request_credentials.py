"""The credentials of a request, read from its headers. Pure."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """token: ``X-Auth-Token``. bearer: of ``Authorization: Bearer``. user, password: of HTTP
    basic, or ``X-Auth-User`` and ``X-Auth-Key``. claimed_roles: accepted in mode none only.
    cloud_credential: ``X-Headgate-Credential``, with which a change acts in the cloud. block: of
    the sender's address; attempts are counted by it. session_token: the ID of the token or
    password with which the browser's session began.
    """

    token: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    claimed_roles: tuple[str, ...] = ()
    cloud_credential: str = field(default="", repr=False)
    block: str = ""
    session_token: UUID | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.token or self.bearer or self.password or self.session_token)


def cache_key(credentials: RequestCredentials, project: str = "") -> str:
    """A hash, so that caches hold no credential. For a password it includes the address block: the
    same password from another block is a new attempt."""
    block = credentials.block if credentials.password else ""
    parts = "\0".join(
        (
            credentials.token,
            credentials.bearer,
            credentials.user,
            credentials.password,
            project,
            block,
        )
    )
    return hashlib.sha256(parts.encode(errors="surrogateescape")).hexdigest()


def request_credentials(headers: Mapping[str, str], block: str = "") -> RequestCredentials:
    """Headers that cannot be decoded count as missing."""
    scheme, _, rest = headers.get("Authorization", "").partition(" ")
    user, password = _basic(rest) if scheme.lower() == "basic" else ("", "")
    roles = map(str.strip, headers.get("X-Roles", "").split(","))
    return RequestCredentials(
        token=headers.get("X-Auth-Token", ""),
        bearer=rest.strip() if scheme.lower() == "bearer" else "",
        user=headers.get("X-Auth-User", "") or user,
        password=headers.get("X-Auth-Key", "") or password,
        claimed_roles=tuple(filter(None, roles)),
        cloud_credential=headers.get("X-Headgate-Credential", ""),
        block=block,
    )


def _basic(encoded: str) -> tuple[str, str]:
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password
