"""Secrets that let somebody in: how they are written, hashed and compared.

A token holds 256 random bits, so one round of SHA-256 hides it. People choose passwords: scrypt
(RFC 7914) with the parameters that OWASP recommends makes each guess cost 128 MiB and some tenths
of a second. A hash carries its parameters, so that older ones are still compared.
"""

import base64
import hashlib
import hmac
import re
from uuid import UUID

SALT_BYTES = 16
#: Shown in front of every token, so that one is known where it should not be.
PREFIX = "hgt_"
_TOKEN = re.compile(PREFIX + r"([0-9a-f]{32})_([A-Za-z0-9_-]{43})")
_COST, _BLOCK, _LANES = 2**17, 8, 1
#: Characters of a password.
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 1024


def write_token(token_id: UUID, random_bytes: bytes) -> str:
    """``hgt_`` the id, and what only its holder knows. random_bytes: 32 of them."""
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
    """Takes some tenths of a second and 128 MiB: see `PasswordHasher`."""
    return _hash(password, salt, (_COST, _BLOCK, _LANES))


def is_password(password: str, hashed: str) -> bool:
    """Takes as long as making the hash took."""
    return hmac.compare_digest(_hash(password, *_read(hashed)), hashed)


def is_weak(hashed: str) -> bool:
    """Whether the hash of a password is cheaper to guess than one that is made now."""
    cost, block, lanes = _read(hashed)[1]
    return cost * block * lanes < full_cost()


def full_cost() -> int:
    """What a hash that is made now costs: N * r * p."""
    return _COST * _BLOCK * _LANES


def _read(hashed: str) -> tuple[bytes, tuple[int, int, int]]:
    """Salt and parameters."""
    _, cost, block, lanes, salt, _ = hashed.split("$")
    return _bytes(salt), (int(cost), int(block), int(lanes))


def _hash(password: str, salt: bytes, parameters: tuple[int, int, int]) -> str:
    cost, block, lanes = parameters
    digest = hashlib.scrypt(
        password.encode(errors="surrogateescape"),
        salt=salt, n=cost, r=block, p=lanes, dklen=32,
        maxmem=256 * cost * block * lanes,  # twice what it needs
    )  # fmt: skip
    return f"scrypt${cost}${block}${lanes}${_text(salt)}${_text(digest)}"


#: Compared where there is no such name, so that time does not tell; no password has this hash.
NO_PASSWORD = f"scrypt${_COST}${_BLOCK}${_LANES}$bm9ib2R5$"


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
