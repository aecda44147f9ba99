"""Decrypts and masks rows with encrypted columns.

Encrypted values are bound to project, owner and column (engine/store/encryption.py), so only the
function that reads a row can open them: it knows which row it is.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias
from uuid import UUID

import asyncpg

from engine.store.encryption import Scope, Sealed, SealedDocument, members, reveal
from engine.words import Json

Row: TypeAlias = Mapping[str, Json] | asyncpg.Record

#: What a map or list that cannot be decrypted is shown as, with the reason.
UNDECRYPTABLE = "undecryptable"


def reveal_row(
    row: Row, project: str, owner: UUID, table: str, columns: Iterable[str] = ()
) -> dict[str, Json]:
    """The row with its encrypted columns in the clear. columns: only these; empty: all.

    Raises Sealed.
    """
    revealed = dict(row)
    for name in columns or tuple(revealed):
        if isinstance(revealed[name], SealedDocument):
            revealed[name] = reveal(revealed[name], Scope(project, owner, f"{table}.{name}"))
    return revealed


def reveal_inputs(value: Json, project: str, stack_id: UUID) -> Json:
    """Name -> [reference, attributes, secret] of resources of one stack. Raises Sealed."""
    if not isinstance(value, SealedDocument):
        return value
    reference = Scope(project, stack_id, "resource.reference")
    attributes = Scope(project, stack_id, "resource.attributes")
    return {
        name: [
            reveal(pair[0], reference),
            reveal(pair[1], attributes),
            *(reveal(x, attributes) for x in pair[2:]),
        ]
        for name, one in members(value).items()
        for pair in [members(one)]
    }


def show_row(
    row: Row, project: str, owner: UUID, table: str, columns: Iterable[str] = ()
) -> dict[str, Json]:
    """As `reveal_row`, for display: a column that cannot be decrypted is replaced by the reason."""
    shown = dict(row)
    for name in columns or tuple(shown):
        if isinstance(shown[name], SealedDocument):
            shown[name] = show(shown[name], Scope(project, owner, f"{table}.{name}"))
    return shown


def show(value: Json, scope: Scope) -> Json:
    """The plain form of a value, or the reason that there is none."""
    try:
        return reveal(value, scope)
    except Sealed as error:
        return {UNDECRYPTABLE: str(error)}


def readable_columns(
    row: Row, project: str, owner: UUID, table: str, columns: Iterable[str] = ()
) -> tuple[dict[str, Json], str]:
    """As `reveal_row`, but what cannot be decrypted stays as it is, to be written back unchanged;
    and why the first such column cannot be decrypted, or ""."""
    readable, why = dict(row), ""
    for name in columns or tuple(readable):
        try:
            value = reveal(readable[name], Scope(project, owner, f"{table}.{name}"))
        except Sealed as error:
            why = why or str(error)
        else:
            readable[name] = value
    return readable, why
