"""The secrets of a login of the command line, for the command and for the server. Pure."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.hooks.derived_tokens import base64_text

#: Consonants, so that no words result: RFC 8628, section 6.1.
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
LENGTH = 8
_USER_CODE = re.compile(f"[{LETTERS}]{{{LENGTH}}}")
_SEPARATORS = re.compile(r"[\s-]")
_RANDOM_BYTES = 32


@dataclass(frozen=True, slots=True)
class LoginSecrets:
    """verifier: of PKCE. state: of the response to the command. user_code: shown in the terminal,
    and typed in the browser."""

    verifier: str = field(repr=False)
    state: str = field(repr=False)
    user_code: str = field(repr=False)

    @property
    def challenge(self) -> str:
        return challenge_of(self.verifier)


def new_login_secrets(
    random_bytes: Callable[[int], bytes], random_letter: Callable[[str], str]
) -> LoginSecrets:
    """random_letter: one of a text."""
    letters = "".join(random_letter(LETTERS) for _ in range(LENGTH))
    half = LENGTH // 2
    return LoginSecrets(
        base64_text(random_bytes(_RANDOM_BYTES)),
        base64_text(random_bytes(_RANDOM_BYTES)),
        f"{letters[:half]}-{letters[half:]}",
    )


def challenge_of(verifier: str) -> str:
    """RFC 7636, method S256."""
    return base64_text(hashlib.sha256(verifier.encode()).digest())


def is_user_code(text: str) -> bool:
    return bool(_USER_CODE.fullmatch(plain_user_code(text)))


def plain_user_code(text: str) -> str:
    """In capital letters, without dashes and spaces."""
    return _SEPARATORS.sub("", text).upper()
