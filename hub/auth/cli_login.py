"""Logins of the command line through a browser that has signed in with OpenID Connect. Pure.

`headgate login --web` opens a page of the dashboard. There, the user types the code that the
terminal shows, the user code. The server issues a login code, which the command exchanges for a
token (RFC 8252, RFC 7636). A login code is not stored: it contains an HMAC over everything that
belongs to the login. So only the command can use it: it has the verifier of the challenge in the
address of the page, and knows which user code it has shown. The exchange creates the token whose
ID is in the code, which is possible once.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from engine.hooks.derived_tokens import base64_text
from hub.auth.login_secrets import challenge_of, is_user_code, plain_user_code

#: Seconds until a login code must have been exchanged: enough to paste it.
CODE_TIME = 300
#: Valid logins through one sign-in in a browser.
MAX_LOGINS = 20
#: Of SHA-256 in URL-safe base64.
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_CODE = re.compile(r"[A-Za-z0-9_-]{96}")
_PURPOSE = b"headgate command line login "
_TIME_BYTES = 8


@dataclass(frozen=True, slots=True)
class CliLogin:
    """What a login code is issued for. challenge: of PKCE. user_code: as typed in the browser."""

    project: str
    challenge: str
    user_code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoginCode:
    """sign_in: the token behind the session of the browser. token_id: of the token to create.
    expires: seconds since the epoch."""

    sign_in: UUID
    token_id: UUID
    expires: int


def write_login_code(key: bytes, code: LoginCode, login: CliLogin) -> str:
    """The login must be valid (`is_valid`)."""
    content = code.sign_in.bytes + code.token_id.bytes + code.expires.to_bytes(_TIME_BYTES)
    return base64_text(content + _mac(key, content, login))


def read_login_code(keys: Iterable[bytes], text: str, login: CliLogin) -> LoginCode | None:
    """The code if it was issued for exactly this login; it may have expired."""
    if not _CODE.fullmatch(text) or not is_valid(login):
        return None
    raw = base64.urlsafe_b64decode(text)
    content, mac = raw[:-32], raw[-32:]
    if not any(hmac.compare_digest(mac, _mac(key, content, login)) for key in keys):
        return None
    expires = int.from_bytes(content[32:])
    return LoginCode(UUID(bytes=content[:16]), UUID(bytes=content[16:32]), expires)


def is_valid(login: CliLogin) -> bool:
    return bool(CHALLENGE.fullmatch(login.challenge)) and is_user_code(login.user_code)


def login_of(project: str, verifier: str, user_code: str) -> CliLogin:
    """The login of a command with this verifier."""
    return CliLogin(project, challenge_of(verifier), user_code)


def _mac(key: bytes, content: bytes, login: CliLogin) -> bytes:
    """All parts have fixed lengths, except the last one."""
    parts = (login.challenge, plain_user_code(login.user_code), login.project)
    return hmac.digest(key, _PURPOSE + content + "".join(parts).encode(), hashlib.sha256)
