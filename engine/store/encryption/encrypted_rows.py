"""Decrypts rows with encrypted columns.

Encrypted values are bound to project, owner and column
(engine/store/encryption/secret_values.py). So the function that reads a row decrypts it: it knows
the scope.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar
from uuid import UUID

import asyncpg

from engine.store.encryption.secret_values import (
    DecryptionFailed,
    EncryptedDocument,
    Scope,
    decrypt,
    encrypted_members,
)
from engine.words import Json

T = TypeVar("T")
Row: TypeAlias = Mapping[str, Json] | asyncpg.Record

#: Key of the map that replaces a value that cannot be decrypted; its value is the reason.
UNDECRYPTABLE = "undecryptable"


def decrypt_row(
    row: Row, project: str, owner: UUID, table: str, columns: Iterable[str] = ()
) -> dict[str, Json]:
    """The row with its encrypted columns decrypted. columns: only these; empty: all.

    Raises DecryptionFailed.
    """
    plain = dict(row)
    for name in columns or tuple(plain):
        if isinstance(plain[name], EncryptedDocument):
            plain[name] = decrypt(plain[name], Scope(project, owner, f"{table}.{name}"))
    return plain


def decrypt_inputs(value: Json, project: str, stack_id: UUID) -> Json:
    """Name -> [reference, attributes, secret] of resources of a stack. Raises DecryptionFailed."""
    if not isinstance(value, EncryptedDocument):
        return value
    reference = Scope(project, stack_id, "resource.reference")
    attributes = Scope(project, stack_id, "resource.attributes")
    return {
        name: [
            decrypt(pair[0], reference),
            decrypt(pair[1], attributes),
            *(decrypt(x, attributes) for x in pair[2:]),
        ]
        for name, one in encrypted_members(value).items()
        for pair in [encrypted_members(one)]
    }


def decrypt_record(kind: Callable[..., T], row: Row, stack_id: UUID, table: str) -> T:
    """A row of a stack, with the stack's project, as a record without it.

    Raises DecryptionFailed.
    """
    return _without_project(kind, decrypt_row(row, row["project"], stack_id, table))


def display_record(kind: Callable[..., T], row: Row, stack_id: UUID, table: str) -> T:
    """As `decrypt_record`, but a column that cannot be decrypted is replaced by the reason."""
    return _without_project(kind, display_row(row, row["project"], stack_id, table))


def _without_project(kind: Callable[..., T], row: dict[str, Json]) -> T:
    del row["project"]
    return kind(**row)


def display_row(
    row: Row, project: str, owner: UUID, table: str, columns: Iterable[str] = ()
) -> dict[str, Json]:
    """As `decrypt_row`, but a column that cannot be decrypted is replaced by the reason."""
    shown = dict(row)
    for name in columns or tuple(shown):
        if not isinstance(shown[name], EncryptedDocument):
            continue
        try:
            shown[name] = decrypt(shown[name], Scope(project, owner, f"{table}.{name}"))
        except DecryptionFailed as error:
            shown[name] = {UNDECRYPTABLE: str(error)}
    return shown


def try_decrypt_row(
    row: Row, project: str, owner: UUID, table: str, columns: Iterable[str] = ()
) -> tuple[dict[str, Json], str]:
    """As `decrypt_row`, but a column that cannot be decrypted stays encrypted, so that it can be
    written back. Also returns the reason for the first such column, or ""."""
    plain, reason = dict(row), ""
    for name in columns or tuple(plain):
        try:
            plain[name] = decrypt(plain[name], Scope(project, owner, f"{table}.{name}"))
        except DecryptionFailed as error:
            reason = reason or str(error)
    return plain, reason
