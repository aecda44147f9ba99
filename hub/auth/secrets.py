"""Formats, hashes and compares tokens and passwords.

A token has 256 random bits, so one round of SHA-256 is enough. For passwords, scrypt (RFC 7914)
with the parameters that OWASP recommends makes each guess cost 128 MiB and some tenths of a second.
A hash contains its parameters, so that older hashes can be compared.
"""

import base64
import hashlib
import hmac
import re
from uuid import UUID

from engine.hooks.derived_tokens import base64_text

SALT_BYTES = 16
#: The prefix of every token, so that secret scanners can recognize it.
PREFIX = "hgt_"
_TOKEN = re.compile(PREFIX + r"([0-9a-f]{32})_([A-Za-z0-9_-]{43})")
_COST, _BLOCK, _LANES = 2**17, 8, 1
#: Characters of a password.
MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 12, 1024


def write_token(token_id: UUID, random_bytes: bytes) -> str:
    """``hgt_``, the ID and the random bytes, 32 of them."""
    return f"{PREFIX}{token_id.hex}_{base64_text(random_bytes)}"


def id_in(token: str) -> UUID | None:
    """The ID in a token; None: the text is not a token."""
    found = _TOKEN.fullmatch(token)
    return UUID(hex=found[1]) if found else None


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def is_token(token: str, hashed: str) -> bool:
    return hmac.compare_digest(hash_token(token), hashed)


def hash_password(password: str, salt: bytes) -> str:
    """Takes some tenths of a second and 128 MiB; see `PasswordHasher`."""
    return _hash(password, salt, (_COST, _BLOCK, _LANES))


def is_password(password: str, hashed: str) -> bool:
    """Takes as long as computing the hash."""
    return hmac.compare_digest(_hash(password, *_read(hashed)), hashed)


def is_weak(hashed: str) -> bool:
    """Whether a hash has cheaper parameters than the current ones."""
    cost, block, lanes = _read(hashed)[1]
    return cost * block * lanes < full_cost()


def full_cost() -> int:
    """The cost of the current parameters: N * r * p."""
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
        maxmem=256 * cost * block * lanes,  # twice the required memory
    )  # fmt: skip
    return f"scrypt${cost}${block}${lanes}${base64_text(salt)}${base64_text(digest)}"


#: Compared if the name does not exist, so that the time does not reveal it. No password matches.
NO_PASSWORD = f"scrypt${_COST}${_BLOCK}${_LANES}$bm9ib2R5$"


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
