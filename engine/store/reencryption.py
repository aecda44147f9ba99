"""Re-encrypts stored values with the current key, page by page, while servers run.

Each page is a transaction of its own, and a row that has the current key is left alone, so a run
that was killed is simply run again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import asyncpg

from engine.store.connection import Connection
from engine.store.encrypted_columns import TABLES, EncryptedTable
from engine.store.encryption import (
    Encrypted,
    Hidden,
    Scope,
    Sealed,
    SealedDocument,
    Sealer,
)
from engine.store.fault_points import reach
from engine.store.stack_locks import lock_stacks
from engine.words import Json


@dataclass(slots=True)
class Reencrypted:
    """rows: those that were written. undecryptable: why values could not be; the first few."""

    rows: int = 0
    failures: int = 0
    undecryptable: list[str] = field(default_factory=list)

    def add(self, other: "Reencrypted") -> None:
        self.rows += other.rows
        self.failures += other.failures
        self.undecryptable = [*self.undecryptable, *other.undecryptable][:MOST_SHOWN]


MOST_SHOWN = 20
#: Rows of a page. Its stacks are locked for as long as it takes to encrypt these.
PAGE_ROWS = 200
#: How often a page is tried whose rows others keep locked; seconds between.
MOST_TRIES, PAUSE = 20, 0.5
BLOCKED = (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)

#: A position in a table: the key of the last row of a page. None: before the first.
Position = tuple[Any, ...] | None


#: The keys of the next rows. Parameters: the position, and how many.
_page = """
select {order} from {table} t where ({order}) > ({position}) order by {order} limit ${count}
"""
#: The rows after one position and up to another that have something encrypted, locked.
_rows = """
select {order}, {bound}.project as bound_project, {columns}
  from {table} t join {joined}
 where ({order}) > ({position}) and ({order}) <= ({last}) and ({encrypted})
 order by {order} for no key update of t
"""
#: The ids of keys in so many rows, those of version 0.1 by their tag.
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
        columns=", ".join(f"t.{name}" for name in (*table.columns, *table.sealed)),
        table=table.name,
        joined="stack s on s.id = t.stack_id" if table.of_stack else "(select) s on true",
        position=_position(table),
        last=", ".join(
            f"${count + number}::{key.type}" for number, key in enumerate(table.keys, 1)
        ),
        encrypted=" or ".join(
            [f"""t.{name}::text like '%"$sealed:%'""" for name in table.columns]
            + [f"t.{name} is not null" for name in table.sealed]
        ),
    )


def used_statement(table: EncryptedTable) -> str:
    columns = ", ".join(f"t.{name}::text" for name in table.columns) or "''"
    return _used.format(columns=columns, table=table.name)


async def forms_in_use(conn: Connection, most: int) -> set[str]:
    """By which keys, and in which form, values are encrypted in at most so many rows of a table:
    ``v2:KEY``, or the tag of a key of version 0.1."""
    forms: set[str] = set()
    for table in TABLES:
        forms |= {row["form"] for row in await conn.fetch(used_statement(table), most)}
    return forms


def write_statement(table: EncryptedTable) -> str:
    names = (*table.columns, *table.sealed)
    return _write.format(
        table=table.name,
        written=", ".join(f"{name} = ${number}" for number, name in enumerate(names, 1)),
        found=" and ".join(
            f"{key.name} = ${number}" for number, key in enumerate(table.keys, len(names) + 1)
        ),
    )


async def reencrypt_table(conn: Connection, sealer: Sealer, table: EncryptedTable) -> Reencrypted:
    """All of it, each page a transaction of its own."""
    done, after = Reencrypted(), None
    while True:
        after, page = await _tried(conn, sealer, table, after)
        done.add(page)
        if after is None:
            return done
        reach("reencrypt.page")


async def _tried(
    conn: Connection, sealer: Sealer, table: EncryptedTable, after: Position
) -> tuple[Position, Reencrypted]:
    for left in reversed(range(MOST_TRIES)):
        try:
            async with conn.transaction():
                return await reencrypt_page(conn, sealer, table, after, PAGE_ROWS)
        except BLOCKED:
            if not left:
                raise
            await asyncio.sleep(PAUSE)
    raise AssertionError("unreachable")


async def reencrypt_page(
    conn: Connection, sealer: Sealer, table: EncryptedTable, after: Position, size: int
) -> tuple[Position, Reencrypted]:
    """One page, in the caller's transaction. Returns its last position; None: there was no page."""
    start = after or (None,) * len(table.keys)
    page = await conn.fetch(page_statement(table), *start, size)
    if not page:
        return None, Reencrypted()
    last = tuple(page[-1])
    if table.of_stack:
        await lock_stacks(conn, {row[0] for row in page})
    rows = await conn.fetch(rows_statement(table), *start, *last)
    done, written = Reencrypted(), []
    for row in rows:
        values = _reencrypted(table, row, sealer, done)
        if values is not None:
            written.append((*values, *(row[key.name] for key in table.keys)))
    if written:
        await conn.executemany(write_statement(table), written)
    done.rows = len(written)
    return last, done


def _reencrypted(
    table: EncryptedTable, row: Any, sealer: Sealer, done: Reencrypted
) -> list[Json] | None:
    """The columns anew; None: they have the current key, or none of them can be decrypted."""
    before = [row[name] for name in (*table.columns, *table.sealed)]
    values: list[Json] = []
    project, owner = row["bound_project"], row[table.keys[0].name]
    for name in table.columns:
        scope = Scope(project, owner, f"{table.name}.{name}")
        values.append(_document(row[name], scope, sealer, done))
    for name in table.sealed:
        scope = Scope(project, owner, f"{table.name}.{name}")
        values.append(reseal(row[name], scope, sealer, done))
    changed = any(one is not other for one, other in zip(values, before, strict=True))
    return values if changed else None


def _document(value: Json, scope: Scope, sealer: Sealer, done: Reencrypted) -> Json:
    """The same object when nothing in it is to be encrypted anew."""
    if not isinstance(value, SealedDocument):
        return value
    stale = [one for one in _encrypted(value.document) if one.field != sealer.field]
    if not stale:
        return value
    try:
        return _anew(value.document, scope)
    except Sealed as error:
        _fail(done, error)
        return value


def _encrypted(document: Json) -> list[Encrypted]:
    if isinstance(document, Encrypted):
        return [document]
    if isinstance(document, Mapping):
        document = list(document.values())
    if isinstance(document, list):
        return list(chain.from_iterable(map(_encrypted, document)))
    return []


def _anew(document: Json, scope: Scope) -> Json:
    if isinstance(document, Encrypted):
        return Hidden(document.open(scope), scope)
    if isinstance(document, Mapping):
        return {name: _anew(value, scope) for name, value in document.items()}
    if isinstance(document, list):
        return [_anew(value, scope) for value in document]
    return document


def reseal(sealed: bytes, scope: Scope, sealer: Sealer, done: Reencrypted) -> bytes:
    """The same object when it has the current key, or cannot be decrypted."""
    if sealer.is_current(sealed):
        return sealed
    try:
        return sealer.seal(scope, sealer.open(scope, sealed))
    except Sealed as error:
        _fail(done, error)
        return sealed


def _fail(done: Reencrypted, error: Sealed) -> None:
    done.failures += 1
    if len(done.undecryptable) < MOST_SHOWN:
        done.undecryptable.append(str(error))


def statements() -> Sequence[str]:
    """All that this module runs, for the tests of statements."""
    made = (page_statement, rows_statement, write_statement, used_statement)
    return [make(table) for table in TABLES for make in made]
