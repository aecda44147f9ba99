"""A token or a password that is to be given out: whether it may be, and how it is kept.

Pure: ids and randomness are handed in.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from engine.errors import Findings, nearest
from engine.hooks.durations import parse_span
from engine.store.tokens import MODE, NewToken
from hub.auth import secrets
from hub.auth.roles import Role

#: Roles of one's own, for `answer_by` in rules.
OTHER_ROLE = re.compile(r"[a-z][a-z0-9_.-]{0,99}")
LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """project: ``*`` for all. password: None asks for a token. expires_in: ``90d``; empty: never.
    random_bytes: 32 of them, for the token or the salt. mode: of [auth]."""

    id: UUID
    project: str
    name: str
    roles: Sequence[str]
    by: str
    password: str | None = field(default=None, repr=False)
    expires_in: str = ""
    random_bytes: bytes = field(default=b"", repr=False)
    mode: str = MODE


def given(wish: TokenRequest) -> tuple[NewToken, str | None]:
    """What is kept, and the token itself, which is shown this once; None for a password.

    Takes tens of milliseconds for a password: call it in a thread. Raises Invalid.
    """
    lasts = _checked(wish)
    if wish.password is None:
        token = secrets.write_token(wish.id, wish.random_bytes)
        hashed = secrets.hash_token(token)
    else:
        token = None
        hashed = secrets.hash_password(wish.password, wish.random_bytes[: secrets.SALT_BYTES])
    kept = NewToken(
        id=wish.id,
        project=wish.project,
        name=wish.name,
        roles=list(dict.fromkeys(wish.roles)),
        kind="token" if token else "password",
        hash=hashed,
        created_by=wish.by,
        lasts=lasts,
        mode=wish.mode,
    )
    return kept, token


def _checked(wish: TokenRequest) -> timedelta | None:
    """How long it holds. Raises Invalid with all that is wrong."""
    findings = Findings()
    if not wish.name.isprintable() or not 0 < len(wish.name.strip()) <= LONGEST_NAME:
        findings.add("name", "is not a valid name", "Write 1 to 255 printable letters.", "Invalid")
    if wish.password is not None and ":" in wish.name:
        reason = "contains a colon, which HTTP basic authentication does not allow in user names"
        remedy = "Choose a name without a colon, or create a token instead of a password."
        findings.add("name", reason, remedy, "Invalid")
    _check_roles(wish.roles, findings)
    lasts = parse_span(wish.expires_in) if wish.expires_in else None
    if wish.expires_in and not lasts:
        reason = f'"{wish.expires_in}" is not a valid time'
        findings.add("expires_in", reason, "Write 12h, 90d or the like.", "Invalid")
    shortest, longest = secrets.SHORTEST_PASSWORD, secrets.LONGEST_PASSWORD
    if wish.password is not None and not shortest <= len(wish.password) <= longest:
        reason = f"has {len(wish.password)} characters"
        findings.add("password", reason, f"Choose one of {shortest} to {longest}.", "Invalid")
    elif wish.password is not None and secrets.id_in(wish.password):
        findings.add("password", "has the form of a token", "Choose another one.", "Invalid")
    findings.raise_if_any()
    return lasts


def _check_roles(roles: Sequence[str], findings: Findings) -> None:
    known = [role.value for role in Role]
    for place, role in enumerate(roles):
        if not OTHER_ROLE.fullmatch(role):
            remedy = "Use lower-case letters, digits, dots and dashes."
            findings.add(f"roles[{place}]", f'"{role}" is not a valid role', remedy, "Invalid")
    if not set(roles) & set(known):
        near = next((said for role in roles if (said := nearest(role, known))), "")
        reason = "none of these roles grants any permission"
        findings.add("roles", reason, near or f"Known: {', '.join(known)}.", "Invalid")
