"""Issues tokens and passwords: checks a request and creates its record. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from engine.errors import Findings, nearest
from engine.hooks.durations import parse_span
from engine.store.access.tokens import MODE, NewToken
from hub.auth import secrets
from hub.auth.roles import Role

#: Roles of the project, for `answer_by` in rules.
OTHER_ROLE = re.compile(r"[a-z][a-z0-9_.-]{0,99}")
MAX_NAME_LENGTH = 255


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """project: ``*`` for all. password: None for a token. expires_in: ``90d``; empty: never.
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


def issue(request: TokenRequest) -> tuple[NewToken, str | None]:
    """The record to store, and the token itself, which is shown only once; None for a password.

    Takes tenths of a second for a password: call it in a thread. Raises Invalid.
    """
    lasts = _check(request)
    if request.password is None:
        token = secrets.write_token(request.id, request.random_bytes)
        hashed = secrets.hash_token(token)
    else:
        token = None
        hashed = secrets.hash_password(request.password, request.random_bytes[: secrets.SALT_BYTES])
    record = NewToken(
        id=request.id,
        project=request.project,
        name=request.name,
        roles=list(dict.fromkeys(request.roles)),
        kind="token" if token else "password",
        hash=hashed,
        created_by=request.by,
        lasts=lasts,
        mode=request.mode,
    )
    return record, token


def _check(request: TokenRequest) -> timedelta | None:
    """The lifetime; None: until it is revoked. Raises Invalid with all errors."""
    findings = Findings()
    if not request.name.isprintable() or not 0 < len(request.name.strip()) <= MAX_NAME_LENGTH:
        remedy = "Write 1 to 255 printable characters."
        findings.add("name", "is not a valid name", remedy, "Invalid")
    if request.password is not None and ":" in request.name:
        reason = "contains a colon, which HTTP basic authentication does not allow in user names"
        remedy = "Choose a name without a colon, or create a token instead of a password."
        findings.add("name", reason, remedy, "Invalid")
    _check_roles(request.roles, findings)
    lasts = parse_span(request.expires_in) if request.expires_in else None
    if request.expires_in and not lasts:
        reason = f'"{request.expires_in}" is not a valid time'
        findings.add("expires_in", reason, "Write a duration such as 12h or 90d.", "Invalid")
    minimum, maximum = secrets.MIN_PASSWORD_LENGTH, secrets.MAX_PASSWORD_LENGTH
    if request.password is not None and not minimum <= len(request.password) <= maximum:
        reason = f"has {len(request.password)} characters"
        findings.add("password", reason, f"Choose one of {minimum} to {maximum}.", "Invalid")
    elif request.password is not None and secrets.id_in(request.password):
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
        near = next(filter(None, (nearest(role, known) for role in roles)), "")
        reason = "none of these roles grants any permission"
        findings.add("roles", reason, near or f"Known: {', '.join(known)}.", "Invalid")
