"""Copies of tokens and passwords in the databases of several cells (ADR 18).

Those that are valid in every project are in all cells. A process compares the cells, and copies
what one of them lacks: tokens, revocations, and the time of the last use. Nothing is ever taken
back, so all cells come to the same state, whichever process copies first. A revoked token stays in
a cell until it expires, so that no other cell can bring it back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeVar
from uuid import UUID

from engine.store.access.tokens import EVERYWHERE, NOTIFY
from engine.store.connection import Connection
from engine.words import Json

T = TypeVar("T")

READ_SHARED = """
select id, used_at, revoked_at, revoked_by from token
 where project = $1 and (expires_at is null or expires_at > clock_timestamp())
"""
#: $2: null: all of the project.
READ_COPIES = """
select to_jsonb(t) as document
  from (select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
               revoked_at, revoked_by, mode, subject
          from token_details where project = $1 and ($2::uuid[] is null or id = any ($2))) t
 order by t.created_at, t.id
"""
_GIVEN = """
given as (
    select * from jsonb_to_recordset($1::jsonb) as r (
        id uuid, project text, name text, roles text[], kind text, hash text, created_by text,
        created_at timestamptz, expires_at timestamptz, used_at timestamptz,
        revoked_at timestamptz, revoked_by text, mode text, subject text)
)"""
#: A name has one password in a project. Of two that were created in two cells at the same time, all
#: cells keep the earlier one.
REVOKE_LATER_PASSWORDS = f"""
with {_GIVEN}
update token t set revoked_at = now(), revoked_by = $2
  from given g
 where t.project = g.project and t.name = g.name and t.kind = 'password' and g.kind = 'password'
   and t.revoked_at is null and g.revoked_at is null and (t.created_at, t.id) > (g.created_at, g.id)
"""  # noqa: S608 - of a constant
INSERT_COPIES = f"""
with {_GIVEN}, judged as (
    select g.*,
           g.kind = 'password' and g.revoked_at is null and exists (
               select from token t
                where t.project = g.project and t.name = g.name and t.kind = 'password'
                  and t.revoked_at is null and t.id <> g.id) as is_later
      from given g
), created as (
    insert into token (id, project, name, roles, kind, hash, created_by, created_at, expires_at,
                       used_at, revoked_at, revoked_by, subject)
    select id, project, name, roles, kind, hash, created_by, created_at, expires_at, used_at,
           case when is_later then now() else revoked_at end,
           case when is_later then $2 else revoked_by end, subject
      from judged
    on conflict do nothing
    returning id
)
insert into token_mode (token_id, mode)
select g.id, g.mode from given g join created c on c.id = g.id
"""  # noqa: S608 - of a constant
_STATES = """
jsonb_to_recordset($1::jsonb) as r (id uuid, used_at timestamptz, revoked_at timestamptz,
                                    revoked_by text)"""
#: Transactions of several processes wait for each other, in one order.
LOCK_COPIES = "select id from token where id = any ($1) order by id for no key update"
REVOKE_COPIES = f"""
update token t set revoked_at = r.revoked_at, revoked_by = r.revoked_by
  from {_STATES}
 where t.id = r.id and t.revoked_at is null
   and t.id = any (array(select (x ->> 'id')::uuid from jsonb_array_elements($1) x))
"""  # noqa: S608 - of a constant
USE_COPIES = f"""
update token t set used_at = r.used_at
  from {_STATES}
 where t.id = r.id and (t.used_at is null or t.used_at < r.used_at)
   and t.id = any (array(select (x ->> 'id')::uuid from jsonb_array_elements($1) x))
"""  # noqa: S608 - of a constant
DELETE = "delete from token where project = $1"

#: Who has revoked the later one of two passwords of one name.
BY = "headgate"
#: As `used_at` is updated (engine/store/access/tokens.py).
USE_INTERVAL = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class TokenState:
    """What changes of a token that is in all cells."""

    id: UUID
    used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None


@dataclass(slots=True)
class CellDifference:
    """What a cell lacks. missing: tokens, by a cell that has them. revoked, used: newer states of
    its tokens."""

    missing: dict[str, list[UUID]] = field(default_factory=dict)
    revoked: list[TokenState] = field(default_factory=list)
    used: list[TokenState] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.missing or self.revoked or self.used)


class InCell(Protocol):
    """Does work with a connection to a cell; None: the cell does not respond in time."""

    async def __call__(self, work: Callable[[Connection], Awaitable[T]]) -> T | None: ...


def on_connection(conn: Connection) -> InCell:
    """Works with one connection, for one statement at a time."""
    lock = asyncio.Lock()

    async def work_in_cell(work: Callable[[Connection], Awaitable[T]]) -> T | None:
        async with lock:
            return await work(conn)

    return work_in_cell


def compare_cells(
    states: Mapping[str, Mapping[UUID, TokenState]],
) -> Mapping[str, CellDifference]:
    """What the cells lack; nothing for those that have all. states: of the tokens of each cell."""
    found = {name: CellDifference() for name in states}
    for token_id in dict.fromkeys(one for tokens in states.values() for one in tokens):
        known = {name: tokens[token_id] for name, tokens in states.items() if token_id in tokens}
        revoked = next((one for one in known.values() if one.revoked_at is not None), None)
        # A cell that knows of the revocation has the newest copy.
        origin = next(name for name, one in known.items() if revoked is None or one is revoked)
        used = max(
            (one for one in known.values() if one.used_at is not None),
            key=lambda one: one.used_at,  # type: ignore[arg-type, return-value]
            default=None,
        )
        for name, difference in found.items():
            if (own := known.get(name)) is None:
                difference.missing.setdefault(origin, []).append(token_id)
                continue
            if revoked is not None and own.revoked_at is None:
                difference.revoked.append(revoked)
            if used is not None and _is_older(own.used_at, used.used_at):
                difference.used.append(used)
    return {name: one for name, one in found.items() if one}


def _is_older(own: datetime | None, other: datetime | None) -> bool:
    return other is not None and (own is None or own < other - USE_INTERVAL)


async def share_tokens(cells: Mapping[str, InCell]) -> Sequence[str]:
    """Bring the tokens that are valid in every project to all cells that respond; the names of the
    cells that did not, or that lack tokens because of them."""
    found = await asyncio.gather(*(run(read_shared) for run in cells.values()))
    states = {name: one for name, one in zip(cells, found, strict=True) if one is not None}

    async def write(name: str, difference: CellDifference) -> bool | None:
        copies: list[Json] = []
        for origin, ids in difference.missing.items():
            found = await cells[origin](_Reading(ids))
            if found is None:
                failed.update((origin, name))
            copies += found or []
        return await cells[name](_Writing(copies, difference))

    differences, failed = compare_cells(states), {*cells} - {*states}
    written = await asyncio.gather(*(write(*one) for one in differences.items()))
    failed.update(name for name, one in zip(differences, written, strict=True) if one is None)
    return sorted(failed)


async def read_shared(conn: Connection) -> dict[UUID, TokenState]:
    """Those that are valid in every project, and have not expired."""
    rows = await conn.fetch(READ_SHARED, EVERYWHERE)
    return {row["id"]: TokenState(**row) for row in rows}


@dataclass(frozen=True, slots=True)
class _Reading:
    ids: Sequence[UUID]

    async def __call__(self, conn: Connection) -> Sequence[Json]:
        return await read_copies(conn, EVERYWHERE, self.ids)


@dataclass(frozen=True, slots=True)
class _Writing:
    copies: Sequence[Json]
    difference: CellDifference

    async def __call__(self, conn: Connection) -> bool:
        revoked, used = self.difference.revoked, self.difference.used
        async with conn.transaction():
            await conn.execute(LOCK_COPIES, list({one.id for one in (*revoked, *used)}))
            if revoked:
                await conn.execute(REVOKE_COPIES, _documents(revoked))
            if self.copies:
                await write_copies(conn, self.copies)
            if used:
                await conn.execute(USE_COPIES, _documents(used))
            if revoked or self.copies:
                await conn.execute(NOTIFY)
        return True


def _documents(states: Iterable[TokenState]) -> list[Json]:
    return [
        {
            "id": str(one.id),
            "used_at": one.used_at,
            "revoked_at": one.revoked_at,
            "revoked_by": one.revoked_by,
        }
        for one in states
    ]


async def read_copies(
    conn: Connection, project: str, ids: Sequence[UUID] | None = None
) -> Sequence[Json]:
    """Tokens of a project as documents. ids: None: all."""
    return [row["document"] for row in await conn.fetch(READ_COPIES, project, ids)]


async def write_copies(conn: Connection, copies: Sequence[Json]) -> None:
    """Insert the tokens that this database does not have. copies: of `read_copies`."""
    await conn.execute(REVOKE_LATER_PASSWORDS, copies, BY)
    await conn.execute(INSERT_COPIES, copies, BY)


async def delete_tokens(conn: Connection, project: str) -> None:
    await conn.execute(DELETE, project)
