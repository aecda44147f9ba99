"""Secrets that let somebody in: how they are written, hashed and compared.

A token holds 256 random bits, so one round of SHA-256 hides it. People choose passwords: scrypt
(RFC 7914) makes each guess cost 16 MB and tens of milliseconds.
"""

import base64
import hashlib
import hmac
import re
from uuid import UUID

TOKEN_BYTES, SALT_BYTES = 32, 16
#: Shown in front of every token, so that one is known where it should not be.
PREFIX = "hgt_"
_TOKEN = re.compile(PREFIX + r"([0-9a-f]{32})_([A-Za-z0-9_-]{43})")
_COST, _BLOCK, _LANES = 2**14, 8, 1
#: Characters of a password.
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 1024


def write_token(token_id: UUID, random_bytes: bytes) -> str:
    """``hgt_`` the id, and what only its holder knows. random_bytes: TOKEN_BYTES of them."""
    return f"{PREFIX}{token_id.hex}_{_text(random_bytes)}"


def id_in(token: str) -> UUID | None:
    """Whose token this says it is; None: it is no token of ours."""
    found = _TOKEN.fullmatch(token)
    return UUID(hex=found[1]) if found else None


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def is_token(token: str, hashed: str) -> bool:
    return hmac.compare_digest(hash_token(token), hashed)


def hash_password(password: str, salt: bytes) -> str:
    """Takes tens of milliseconds: call it in a thread."""
    return f"scrypt${_COST}${_BLOCK}${_LANES}${_text(salt)}${_text(_scrypt(password, salt))}"


def is_password(password: str, hashed: str) -> bool:
    """Takes as long as `hash_password`."""
    _, _, _, _, salt, _ = hashed.split("$")
    return hmac.compare_digest(hash_password(password, _bytes(salt)), hashed)


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_LANES, maxmem=64 * 2**20, dklen=32
    )


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
