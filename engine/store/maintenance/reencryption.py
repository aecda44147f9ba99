"""Re-encrypts stored values with the current key, page by page, while servers run.

Each page is a transaction of its own, and rows with the current key stay unchanged, so a run that
was interrupted can be repeated.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from engine.store.access import trusts
from engine.store.connection import Connection
from engine.store.encryption.secret_values import (
    DecryptionFailed,
    EncryptedDocument,
    EncryptedValue,
    Keyring,
    Scope,
    Secret,
)
from engine.store.fault_points import reach
from engine.store.observer import converge_requests, observation_credentials
from engine.store.stacks.stack_locks import lock_stacks
from engine.store.traversals import traversal_credentials
from engine.words import Json


class KeyColumn(NamedTuple):
    """A column of a primary key."""

    name: str
    type: str = "uuid"

    @property
    def lowest(self) -> str:
        """Less than every stored value."""
        return "'00000000-0000-0000-0000-000000000000'" if self.type == "uuid" else "-1"


class EncryptedTable(NamedTuple):
    """A table with encrypted columns. keys: the primary key, whose first column is the owner in the
    scope (a stack if of_stack). documents: columns of type jsonb. texts: columns of type bytea, of
    credentials."""

    name: str
    keys: tuple[KeyColumn, ...]
    documents: tuple[str, ...]
    texts: tuple[str, ...] = ()
    of_stack: bool = True


_STACK, _ID = KeyColumn("stack_id"), KeyColumn("id")
TABLES = (
    EncryptedTable("template", (_STACK, KeyColumn("version", "integer")),
                   ("environment", "files", "parameters", "outputs", "key_order",
                    "stack_outputs")),
    EncryptedTable("node", (_STACK, KeyColumn("traversal", "integer"), KeyColumn("id", "integer")),
                   ("definition", "progress", "patched")),
    EncryptedTable("resource", (_STACK, _ID),
                   ("reference", "properties", "attributes", "data", "metadata", "lifecycle")),
    EncryptedTable("resource_snapshot",
                   (_STACK, KeyColumn("traversal", "integer"), KeyColumn("resource_id")),
                   ("properties", "metadata", "data")),
    EncryptedTable("completion", (_STACK, KeyColumn("operation_key")), ("definition", "result")),
    EncryptedTable("credential", (_STACK, KeyColumn("traversal", "integer")), (), ("encrypted",)),
    EncryptedTable("converge_request", (_STACK,), (), ("encrypted",)),
    EncryptedTable("trust", (_ID,), (), ("encrypted",), of_stack=False),
    EncryptedTable("observation_credential", (_ID,), (), ("encrypted",), of_stack=False),
    EncryptedTable("subscription", (_ID,), ("secrets",), of_stack=False),
    EncryptedTable("software_config", (_ID,), ("config", "inputs", "outputs", "options"),
                   of_stack=False),
    EncryptedTable("software_deployment", (_ID,), ("input_values", "output_values"),
                   of_stack=False),
)  # fmt: skip


#: The scope of the encryption of texts.
_TEXT_SCOPES: Mapping[str, Callable[[str, UUID], Scope]] = {
    "credential": traversal_credentials.scope,
    "converge_request": converge_requests.scope,
    "trust": trusts.scope,
    "observation_credential": observation_credentials.scope,
}


@dataclass(slots=True)
class ReencryptionResult:
    """rows: number of rows that were written. failures: number of values that cannot be decrypted.
    undecryptable: the reasons for the first of them."""

    rows: int = 0
    failures: int = 0
    undecryptable: list[str] = field(default_factory=list)

    def add(self, other: "ReencryptionResult") -> None:
        self.rows += other.rows
        self.failures += other.failures
        self.undecryptable = [*self.undecryptable, *other.undecryptable][:MAX_SHOWN]

    def add_failure(self, error: DecryptionFailed) -> None:
        self.failures += 1
        if len(self.undecryptable) < MAX_SHOWN:
            self.undecryptable.append(str(error))


MAX_SHOWN = 20
#: Rows of a page. Its stacks are locked until all of them are encrypted.
PAGE_ROWS = 200
#: Number of attempts for a page whose rows are locked, and the seconds between them.
MAX_TRIES, PAUSE = 20, 0.5
BLOCKED = (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)

#: A position in a table: the key of the last row of a page. None: before the first.
Position = tuple[Any, ...] | None


#: The keys of the next rows. Parameters: the position, and how many.
_page = """
select {order} from {table} t where ({order}) > ({position}) order by {order} limit ${count}
"""
#: The rows between two positions that have encrypted values, locked.
_rows = """
select {order}, {bound}.project as bound_project, {columns}
  from {table} t join {joined}
 where ({order}) > ({position}) and ({order}) <= ({last}) and ({encrypted})
 order by {order} for no key update of t
"""
#: The IDs of keys in at most $1 rows; of keys of version 0.1, their tags.
_used = r"""
select distinct found[1] as form
  from (select concat_ws(' ', {columns}) as text from {table} t limit $1) t
 cross join lateral regexp_matches(t.text, '"\$sealed:((?:v2:)?[0-9a-f]{{16}})"', 'g') found
"""
#: Parameters: the columns, then the key.
_write = "update {table} set {written} where {found}"


def _position(table: EncryptedTable) -> str:
    return ", ".join(
        f"coalesce(${number}::{key.type}, {key.lowest})" for number, key in enumerate(table.keys, 1)
    )


def _order(table: EncryptedTable) -> str:
    return ", ".join(f"t.{key.name}" for key in table.keys)


def page_statement(table: EncryptedTable) -> str:
    return _page.format(
        order=_order(table),
        table=table.name,
        position=_position(table),
        count=len(table.keys) + 1,
    )


def rows_statement(table: EncryptedTable) -> str:
    count = len(table.keys)
    return _rows.format(
        order=_order(table),
        bound="s" if table.of_stack else "t",
        columns=", ".join(f"t.{name}" for name in (*table.documents, *table.texts)),
        table=table.name,
        joined="stack s on s.id = t.stack_id" if table.of_stack else "(select) s on true",
        position=_position(table),
        last=", ".join(
            f"${count + number}::{key.type}" for number, key in enumerate(table.keys, 1)
        ),
        encrypted=" or ".join(
            [f"""t.{name}::text like '%"$sealed:%'""" for name in table.documents]
            + [f"t.{name} is not null" for name in table.texts]
        ),
    )


def used_statement(table: EncryptedTable) -> str:
    columns = ", ".join(f"t.{name}::text" for name in table.documents) or "''"
    return _used.format(columns=columns, table=table.name)


async def forms_in_use(conn: Connection, limit: int) -> set[str]:
    """The keys of the values in at most `limit` rows of each table: ``v2:KEY``, or the tag of a key
    of version 0.1."""
    forms: set[str] = set()
    for table in TABLES:
        forms |= {row["form"] for row in await conn.fetch(used_statement(table), limit)}
    return forms


def write_statement(table: EncryptedTable) -> str:
    names = (*table.documents, *table.texts)
    return _write.format(
        table=table.name,
        written=", ".join(f"{name} = ${number}" for number, name in enumerate(names, 1)),
        found=" and ".join(
            f"{key.name} = ${number}" for number, key in enumerate(table.keys, len(names) + 1)
        ),
    )


async def reencrypt_table(
    conn: Connection, keyring: Keyring, table: EncryptedTable
) -> ReencryptionResult:
    """Re-encrypt a table; each page is a transaction of its own."""
    result, after = ReencryptionResult(), None
    while True:
        after, page = await _retry_page(conn, keyring, table, after)
        result.add(page)
        if after is None:
            return result
        reach("reencrypt.page")


async def _retry_page(
    conn: Connection, keyring: Keyring, table: EncryptedTable, after: Position
) -> tuple[Position, ReencryptionResult]:
    for left in reversed(range(MAX_TRIES)):
        try:
            async with conn.transaction():
                return await reencrypt_page(conn, keyring, table, after, PAGE_ROWS)
        except BLOCKED:
            if not left:
                raise
            await asyncio.sleep(PAUSE)
    raise AssertionError("unreachable")


async def reencrypt_page(
    conn: Connection, keyring: Keyring, table: EncryptedTable, after: Position, size: int
) -> tuple[Position, ReencryptionResult]:
    """Re-encrypt one page, in the caller's transaction. Returns its last position; None: the table
    has no more rows."""
    start = after or (None,) * len(table.keys)
    page = await conn.fetch(page_statement(table), *start, size)
    if not page:
        return None, ReencryptionResult()
    last = tuple(page[-1])
    if table.of_stack:
        await lock_stacks(conn, {row[0] for row in page})
    rows = await conn.fetch(rows_statement(table), *start, *last)
    result, written = ReencryptionResult(), []
    for row in rows:
        values = _reencrypt_row(table, row, keyring, result)
        if values is not None:
            written.append((*values, *(row[key.name] for key in table.keys)))
    if written:
        await conn.executemany(write_statement(table), written)
    result.rows = len(written)
    return last, result


def _reencrypt_row(
    table: EncryptedTable, row: Any, keyring: Keyring, result: ReencryptionResult
) -> list[Json] | None:
    """The re-encrypted columns; None: all have the current key or cannot be decrypted."""
    before = [row[name] for name in (*table.documents, *table.texts)]
    values: list[Json] = []
    project, owner = row["bound_project"], row[table.keys[0].name]
    for name in table.documents:
        scope = Scope(project, owner, f"{table.name}.{name}")
        values.append(_reencrypt_document(row[name], scope, keyring, result))
    for name in table.texts:
        scope = _TEXT_SCOPES[table.name](project, owner)
        values.append(_reencrypt_text(row[name], scope, keyring, result))
    changed = any(one is not other for one, other in zip(values, before, strict=True))
    return values if changed else None


def _reencrypt_document(
    value: Json, scope: Scope, keyring: Keyring, result: ReencryptionResult
) -> Json:
    """Returns the same object if nothing changes."""
    if not isinstance(value, EncryptedDocument):
        return value
    if all(one.field == keyring.field for one in _encrypted_values(value.document)):
        return value
    try:
        return _with_secrets(value.document, scope)
    except DecryptionFailed as error:
        result.add_failure(error)
        return value


def _encrypted_values(document: Json) -> list[EncryptedValue]:
    if isinstance(document, EncryptedValue):
        return [document]
    if isinstance(document, Mapping):
        document = list(document.values())
    if isinstance(document, list):
        return list(chain.from_iterable(map(_encrypted_values, document)))
    return []


def _with_secrets(document: Json, scope: Scope) -> Json:
    if isinstance(document, EncryptedValue):
        return Secret(document.decrypt(scope), scope)
    if isinstance(document, Mapping):
        return {name: _with_secrets(value, scope) for name, value in document.items()}
    if isinstance(document, list):
        return [_with_secrets(value, scope) for value in document]
    return document


def _reencrypt_text(
    encrypted: bytes, scope: Scope, keyring: Keyring, result: ReencryptionResult
) -> bytes:
    """Returns the same object if it has the current key or cannot be decrypted."""
    if keyring.is_current(encrypted):
        return encrypted
    try:
        return keyring.encrypt(scope, keyring.decrypt(scope, encrypted))
    except DecryptionFailed as error:
        result.add_failure(error)
        return encrypted


def statements() -> Sequence[str]:
    """All statements of this module, for the tests of statements."""
    builders = (page_statement, rows_statement, write_statement, used_statement)
    return [build(table) for table in TABLES for build in builders]
