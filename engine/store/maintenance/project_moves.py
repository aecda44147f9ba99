"""Moves the rows of a project from the database of one cell to that of another one (ADR 16).

The rows leave their tables in one transaction and wait in `moving_row`, where no process acts on
them; the same transaction copies them to a schema in which they can be read
(`engine.store.maintenance.moving_schemas`). They are copied in pages to `moving_row` of the other
cell, and enter its tables in one transaction, with which the project is in that cell.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote
from uuid import UUID

import asyncpg

from engine import errors
from engine.hooks.derived_tokens import TokenKey
from engine.store.access.token_copies import delete_tokens, read_copies, write_copies
from engine.store.access.token_keys import LOCK as LOCK_TOKEN_KEYS
from engine.store.access.token_keys import NOTIFY as NOTIFY_TOKEN_KEYS
from engine.store.access.token_keys import encrypt_token_key, key_check, read_token_keys
from engine.store.access.tokens import NOTIFY as NOTIFY_TOKENS
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Keyring
from engine.store.projects.cells import read_cell
from engine.words import Json, MoveState

_STACKS = "stack_id in (select id from stack where project = $1)"
_PROJECT = "project = $1"
#: Subjects of events: stacks, subscriptions, and the feeds of a project.
_SUBJECTS = """stack_id in (
    select id from stack where project = $1
    union select id from subscription where project = $1
    union select id from usage_feed where project = $1
    union select id from audit_chain where project = $1
    union select stack_id from outbox where project = $1)"""
_AUDITED = """stack_id in (
    select id from stack where project = $1
    union select stack_id from decision where project = $1)"""

#: The tables whose rows move, and which of their rows are of the project $1. Rows are deleted in
#: this order, and inserted in the reverse one: the tables that the conditions read are the last.
MOVED: Mapping[str, str] = {
    **dict.fromkeys((
        "template", "traversal", "node", "archived_graph", "archive_queue", "credential",
        "resource", "snapshot", "resource_snapshot", "resource_signal", "breakpoint",
        "observation", "completion", "drift_hook", "converge_request",
    ), _STACKS),
    "event": _SUBJECTS,
    "audit_head": _AUDITED,
    **dict.fromkeys((
        "idempotency", "software_deployment", "software_config", "hook", "decision",
        "audit_checkpoint", "delivery", "observation_schedule", "completion_request",
        "project_usage", "observer_usage", "resource_sample", "provider_failure",
        "failed_request", "trust", "observation_credential", "labelled_work",
        "purged_position", "position_shift", "outbox", "audit_chain",
        "usage_feed", "subscription", "stack",
    ), _PROJECT),
}  # fmt: skip
#: Tables to which requests add rows without the lock of a row that moves: the database refuses them
#: if the project has left the cell (the trigger `refuse_moved_project`). Event sinks, which the
#: publisher adds, are not refused: it has locked the cursor.
GUARDED = (
    "software_config", "software_deployment", "subscription", "trust", "observation_credential",
    "token",
)  # fmt: skip
#: Tables whose rows stay where they are until the project has arrived, because requests for reads
#: are authenticated with them; copies arrive with the other rows.
COPIED = ("token",)
#: Tables that background tasks write for the stacks of a cell, also right after the project has
#: left it: an observation that the move has interrupted still counts its requests. Such rows are
#: deleted when the project returns.
BACKGROUND = (
    "completion_request", "project_usage", "observer_usage", "resource_sample",
    "provider_failure", "failed_request", "audit_checkpoint", "purged_position", "audit_chain",
    "usage_feed",
)  # fmt: skip
#: Tables with a column for a project or a stack whose rows do not move.
NOT_MOVED: Mapping[str, str] = {
    "cell_project": "the directory: each cell says where the project is",
    "moving_row": "the rows that move",
    "moving_schema": "where the rows that move can be read",
    "stack_tag": "triggers of the table stack write it",
    **dict.fromkeys(COPIED, "copies arrive with the project"),
}
#: Rows get another position in the other database; their number identifies none there.
RENUMBERED = "outbox"

#: With these, rows as text are the same in both databases, and the server limits no time.
SET_FORMAT = """
select set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO', true),
       set_config('intervalstyle', 'postgres', true), set_config('bytea_output', 'hex', true),
       set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
       set_config('idle_in_transaction_session_timeout', '0', true),
       (select max(set_config(name, '0', true)) from pg_settings where name = 'transaction_timeout')
"""
SET_LOCK_TIMEOUT = "select set_config('lock_timeout', $1, true)"
#: How long a transaction that has locked outbox_cursor, without which no event of the cell is
#: published, waits for another lock.
LOCK_TIMEOUT = "2s"
#: The order of locks: outbox_cursor, stacks by ID, subscriptions by ID.
LOCK_CURSOR = "select position from outbox_cursor for update"
LOCK_STACKS = "select id from stack where project = $1 order by id for update"
LOCK_SUBSCRIPTIONS = "select id from subscription where project = $1 order by id for update"
TAKE = {
    table: f"""
with gone as (delete from {table} t where {condition} returning t::text as content)
insert into moving_row (project, source_table, content) select $1, '{table}', content from gone
"""  # noqa: S608 - of constants
    for table, condition in MOVED.items()
}
RESTORE = {
    table: f"""
insert into {table} overriding system value
select (m.r).*
  from (select content::{table} as r from moving_row
         where project = $1 and source_table = '{table}' order by number offset 0) m
"""  # noqa: S608 - of constants
    for table in MOVED
}
#: Published events move to positions after all those that readers can have, all of them by the same
#: number. $2: the last position of the former cell.
COMPUTE_SHIFT = """
with moved as (
    select min((content::outbox).position) as lowest, max((content::outbox).position) as highest
      from moving_row where project = $1 and source_table = 'outbox'
), purged as (
    select max((content::purged_position).position) as position
      from moving_row where project = $1 and source_table = 'purged_position'
), begin as (
    select greatest(c.position, $2) as boundary, least(m.lowest, p.position) as lowest,
           greatest(m.highest, p.position) as highest
      from outbox_cursor c cross join moved m cross join purged p
), shift as (
    select boundary, coalesce(boundary + 2 - lowest, 0) as shift, highest from begin
)
select boundary, shift, greatest(boundary + 1, highest + shift) as last from shift
"""
INSERT_OUTBOX = """
insert into outbox (stack_id, project, first, last, position, created_at)
select (r).stack_id, (r).project, (r).first, (r).last, (r).position + $2, (r).created_at
  from (select content::outbox as r from moving_row
         where project = $1 and source_table = 'outbox' offset 0) m
 order by (r).position nulls last, (r).id
"""
SET_CURSOR = "update outbox_cursor set position = $1"
SHIFT_PURGED = "update purged_position set position = position + $2 where project = $1"
INSERT_SHIFT = """
insert into position_shift (project, boundary, shift, last) values ($1, $2, $3, $4)
"""
#: A digest does not depend on the order of rows.
DIGEST = {
    table: f"""
select count(*) as count, md5(coalesce(string_agg(d, '' order by d), '')) as digest
  from (select md5(t::text) as d from {table} t where {condition}) r
"""  # noqa: S608 - of constants
    for table, condition in MOVED.items()
}
#: In the schema in which rows are read while they move.
EMPTY = {
    table: f"delete from {table} t where {condition}"  # noqa: S608 - of constants
    for table, condition in MOVED.items()
}
DIGEST_MOVING = """
select source_table, count(*) as count, md5(string_agg(d, '' order by d)) as digest
  from (select source_table, md5(content) as d from moving_row where project = $1) r
 group by source_table
"""
LIST_RUNNING = """
select s.name as stack, n.name as resource, n.operation
  from stack s join node n on n.stack_id = s.id
 where s.project = $1 and n.state = 'running' order by 1, 2
"""
#: version: differs after each change of the entry, and after the rows have left their tables.
_STATES = """
select c.project, c.moving_to, c.move_state, c.arrived_from, c.move_id, c.move_rows,
       c.moving_since, coalesce(m.name, '') as schema,
       coalesce(m.filled, false) as filled, concat_ws(' ', c.xmin, m.xmin) as version
  from cell_project c left join moving_schema m on m.project = c.project
"""
READ_STATE = f"{_STATES} where c.project = $1"
LIST_PROJECTS = "select project from cell_project where move_state is null"
LOCK_PROJECTS = """
select project, moving_to, move_state from cell_project where project = any ($1) order by project
   for share
"""
ANNOUNCE_MOVE = """
update cell_project
   set moving_to = $2, move_state = 'announced', move_id = $3, move_rows = 0,
       moving_since = clock_timestamp()
 where project = $1 and move_state is null
"""
#: Of a move that an earlier version began.
SET_ID = """
update cell_project set move_id = $2, moving_since = coalesce(moving_since, clock_timestamp())
 where project = $1 and move_id is null and move_state is not null
"""
LOCK_MOVE = """
select move_state, move_id, move_rows from cell_project where project = $1 for update
"""
CLOSE = """
update cell_project set move_state = 'taken'
 where project = $1 and move_id = $2 and move_state = 'announced'
"""
SET_MOVED = """
update cell_project set move_state = 'moved'
 where project = $1 and move_id is not distinct from $2 and move_state in ('taken', 'moved')
"""
ADD_ROWS = "update cell_project set move_rows = move_rows + $2 where project = $1"
END_MOVE = """
update cell_project
   set moving_to = null, move_state = null, move_id = null, move_rows = null, moving_since = null
 where project = $1
"""
END_ANNOUNCED = f"""{END_MOVE.rstrip()}
   and move_id is not distinct from $2 and move_state = 'announced'
"""
#: If another command has discarded the project in the other cell at the same time.
END_DISCARDED = f"""{END_MOVE.rstrip()}
   and move_id = $2 and move_state = 'moved'
"""
#: A process that starts while the other cell is away learns from it where the project is.
KEEP = """
update cell_project set arrived_from = coalesce(arrived_from, $2)
 where project = $1 and move_state is null
"""
#: Unless the project is in the cell, or moves from it.
ARRIVE = """
insert into cell_project (project, arrived_from) values ($1, $2)
on conflict (project) do update
   set arrived_from = excluded.arrived_from, moving_to = null, move_state = null, move_id = null,
       move_rows = null, moving_since = null
 where cell_project.move_state = 'moved'
"""
DECIDE = """
insert into move_outcome (move_id, has_arrived) values ($1, $2) on conflict (move_id) do nothing
"""
READ_OUTCOME = "select has_arrived from move_outcome where move_id = $1"
SET_DISCARDED = """
update cell_project
   set moving_to = $2, move_state = 'moved', move_id = $3, move_rows = null,
       moving_since = clock_timestamp()
 where project = $1 and move_state is null
"""
#: Of all projects that move or have moved. $1: others.
LIST_MOVES = f"""{_STATES}
 where c.move_state is not null or c.arrived_from is not null or c.project = any ($1::text[])
"""
READ_PAGE = """
select source_table, number, content from moving_row
 where project = $1 and (source_table, number) > ($2, $3) order by source_table, number limit $4
"""
#: A page that was copied before is copied once.
WRITE_PAGE = """
insert into moving_row (project, source_table, number, content) overriding system value
select $1, r.* from unnest($2::text[], $3::bigint[], $4::text[]) r
on conflict (project, source_table, number) do nothing
"""
DELETE_PAGE = """
delete from moving_row
 where project = $1 and (source_table, number) in (
       select source_table, number from moving_row where project = $1
        order by source_table, number limit $2)
"""
SET_NOT_FILLED = "update moving_schema set filled = false where project = $1"
READ_POSITION = "select position from outbox_cursor"
#: Rows of an entry of a project that is elsewhere, which wait in their tables to be discarded.
#: Those of background tasks do not matter.
_DISCARDED = f"""c.move_state = 'moved' and ({
    " or ".join(
        f"exists (select from {table} t where t.project = c.project)"
        for table in ("stack", *GUARDED)
        if table not in COPIED
    )
})"""
HAS_COPIES = f"""
select exists (select from moving_row where project = $1)
       or exists (select from cell_project c where c.project = $1 and {_DISCARDED})
"""  # noqa: S608 - of constants
HAS_ROWS = f"""{HAS_COPIES.rstrip()}
       or exists (select from moving_schema where project = $1)
"""
COUNT_MOVING = "select count(*) from moving_row where project = $1"
#: Of a project in a cell: all rows, and the time of the newest change.
SUMMARIZE = f"""
select {
    " + ".join(
        f"(select count(*) from {table} t where {condition})" for table, condition in MOVED.items()
    )
} + (select count(*) from moving_row where project = $1) as rows,
       greatest((select max(changed_at) from stack where project = $1),
                (select max(created_at) from outbox where project = $1),
                (select max(time) from event
                  where stack_id in (select id from stack where project = $1))) as changed_at
"""  # noqa: S608 - of constants
#: The migrations, and the columns of all tables in their order.
SCHEMA = """
select md5(string_agg(c.relname || '.' || a.attname || ' ' || a.atttypid::regtype::text, ','
                      order by c.relname, a.attnum)) as columns,
       (select string_agg(name, ',' order by name) from migration
         where name >= '0040') as migrations
  from pg_class c join pg_attribute a on a.attrelid = c.oid
 where c.relname = any ($1::text[]) and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
   and c.relnamespace = current_schema()::regnamespace
"""
TRY_LOCK_MOVE = """
select pg_try_advisory_xact_lock(hashtextextended('headgate move of ' || $1, 0))
"""
#: Excludes that rows are re-encrypted while they move: moves share the lock.
TRY_LOCK_KEY = "select pg_try_advisory_lock(hashtextextended('headgate key rotation', 0))"
UNLOCK_KEY = "select pg_advisory_unlock(hashtextextended('headgate key rotation', 0))"
TRY_SHARE_KEY = """
select pg_try_advisory_xact_lock_shared(hashtextextended('headgate key rotation', 0))
"""
#: Projects with rows in `moving_row`, one search by key each, and those whose move has not ended or
#: which are not discarded completely.
LIST_UNFINISHED = f"""
with recursive p as (
    (select project from moving_row order by project limit 1)
    union all
    select (select m.project from moving_row m where m.project > p.project
             order by m.project limit 1)
      from p where p.project is not null
)
select coalesce(p.project, c.project) as project, c.moving_to, c.move_state, c.moving_since,
       p.project is not null as has_rows
  from (select project from p where project is not null) p
  full join (select * from cell_project where move_state is not null) c on c.project = p.project
 where p.project is not null or c.move_state in ('announced', 'taken') or {_DISCARDED}
 order by 1
"""  # noqa: S608 - of constants
READ_CURRENT = "select version, encrypted, created_at from token_key where retired_at is null"
DELETE_KEY = "delete from token_key where version = $1"
INSERT_KEY = """
insert into token_key (version, encrypted, retired_at, expires_at)
values ($1, $2, coalesce($3, clock_timestamp()), case when $4 then 'infinity'::timestamptz
                                                      else clock_timestamp() end)
"""
INSERT_CURRENT = "insert into token_key (version, encrypted, created_at) values ($1, $2, $3)"

#: States of a project whose move has not ended.
MOVING = frozenset({MoveState.ANNOUNCED, MoveState.TAKEN})
#: States of a project that has left the cell: `accept_change` refuses new stacks in them.
LEFT = frozenset({MoveState.TAKEN, MoveState.MOVED})
#: Rows that are copied in one step.
PAGE = 1000
#: Seconds for one statement, as the client measures them.
LONG = 86_400.0


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """Of a project in one cell. state: None: it is in this cell, and does not move. schema: in
    which its rows can be read if they have left their tables, which `filled` says; "": there is
    none. version: differs after each step of a move. id: of the move to the other cell; None: an
    earlier version began it. rows: how many have left their tables; None: not known. since: when
    the move was announced."""

    moving_to: str
    state: MoveState | None
    schema: str = field(default="", compare=False)
    filled: bool = field(default=False, compare=False)
    version: str = field(default="", compare=False)
    arrived_from: str = field(default="", compare=False)
    id: UUID | None = field(default=None, compare=False)
    rows: int | None = field(default=None, compare=False)
    since: datetime | None = field(default=None, compare=False)

    @classmethod
    def from_row(cls, row: asyncpg.Record) -> "MoveRecord":
        state = row["move_state"]
        return cls(
            row["moving_to"] or "",
            None if state is None else MoveState(state),
            row["schema"],
            row["filled"],
            row["version"],
            row["arrived_from"] or "",
            row["move_id"],
            row["move_rows"],
            row["moving_since"],
        )

    @property
    def left(self) -> bool:
        """The project has left this cell: it has no rows here but those that move."""
        return self.state in LEFT

    def has_left_after(self, arrival: "MoveRecord") -> bool:
        """Whether the project has left this cell after it had arrived. arrival: of a move to this
        cell, in the former one, where it can be unfinished. Moves take longer than clocks differ.
        """
        return bool(self.left and self.since and arrival.since and self.since > arrival.since)


@dataclass(frozen=True, slots=True)
class UnfinishedOperation:
    """resource: "": of the whole stack."""

    stack: str
    resource: str
    operation: str

    def __str__(self) -> str:
        return f"{self.operation} of {self.stack}{self.resource and '/'}{self.resource}"


@dataclass(frozen=True, slots=True)
class TableDigest:
    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class UnfinishedMove:
    """Of a project, in one of its two cells. moving_to: "": in the new cell. state: None: in the
    new cell, or rows are left. has_rows: whether `moving_row` has some."""

    project: str
    moving_to: str
    state: MoveState | None
    since: datetime | None
    has_rows: bool


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """What a cell has of a project. changed_at: of the newest change; None: there is none."""

    rows: int
    changed_at: datetime | None

    def __str__(self) -> str:
        changed = "never changed"
        if self.changed_at is not None:
            changed = f"last changed at {self.changed_at:%Y-%m-%d %H:%M:%S} UTC"
        return f"{self.rows} rows, {changed}"


async def _ignore(_: Connection, __: str) -> None:
    """Nothing else is to be done."""


async def lock_move(conn: Connection, project: str) -> bool:
    """Exclude other moves of the project until the transaction ends; False: there is one."""
    await conn.execute(SET_FORMAT)
    locked: bool = await conn.fetchval(TRY_LOCK_MOVE, project)
    return locked


async def lock_key(conn: Connection) -> bool:
    """Exclude moves to and from the cell for this session, until `unlock_key`; False: one is under
    way."""
    locked: bool = await conn.fetchval(TRY_LOCK_KEY)
    return locked


async def unlock_key(conn: Connection) -> None:
    await conn.execute(UNLOCK_KEY)


async def share_key(conn: Connection) -> bool:
    """Exclude rotations of the encryption key until the transaction ends; False: one is under
    way."""
    locked: bool = await conn.fetchval(TRY_SHARE_KEY)
    return locked


async def list_unfinished(conn: Connection) -> list[UnfinishedMove]:
    """Moves from this cell or to it that have not ended, or whose rows are not deleted yet."""
    return [
        UnfinishedMove(
            row["project"],
            row["moving_to"] or "",
            None if row["move_state"] is None else MoveState(row["move_state"]),
            row["moving_since"],
            row["has_rows"],
        )
        for row in await conn.fetch(LIST_UNFINISHED)
    ]


def move_command(project: str, target: str) -> str:
    """The command that continues a move, for a shell."""
    if project.startswith("-"):
        return f"headgate admin move-project --to {target} -- {quote(project)}"
    return f"headgate admin move-project {quote(project)} --to {target}"


async def read_state(conn: Connection, project: str) -> MoveRecord | None:
    """None: the project was never in this cell."""
    row = await conn.fetchrow(READ_STATE, project)
    return None if row is None else MoveRecord.from_row(row)


async def list_moves(conn: Connection, others: Collection[str] = ()) -> dict[str, MoveRecord]:
    """The projects that move from this cell, have moved from it, or to it. others: further ones,
    which are read, too."""
    rows = await conn.fetch(LIST_MOVES, list(others))
    return {row["project"]: MoveRecord.from_row(row) for row in rows}


async def list_projects(conn: Connection) -> list[str]:
    """The projects that are in this cell."""
    return [row["project"] for row in await conn.fetch(LIST_PROJECTS)]


async def find_left(conn: Connection, projects: Sequence[str]) -> set[str]:
    """Those of the projects that have left this cell. The others do not leave it until the
    transaction ends."""
    rows = await conn.fetch(LOCK_PROJECTS, projects)
    return {row["project"] for row in rows if row["move_state"] in LEFT}


async def read_schema(conn: Connection) -> tuple[str, str]:
    """A digest of the columns, and the migrations."""
    row = await conn.fetchrow(SCHEMA, [*MOVED, *COPIED])
    return (row["columns"], row["migrations"]) if row else ("", "")


async def announce_move(conn: Connection, project: str, target: str, move: UUID) -> None:
    """Raises Conflict if another command moves the project."""
    if not _count(await conn.execute(ANNOUNCE_MOVE, project, target, move)):
        raise refuse_other(project)


async def set_id(conn: Connection, project: str, move: UUID) -> None:
    """Identify a move that an earlier version began."""
    await conn.execute(SET_ID, project, move)


async def check_move(
    conn: Connection, project: str, move: UUID | None, states: Collection[MoveState]
) -> int | None:
    """Lock the entry of the project in the former cell until the transaction ends; how many rows
    have left their tables. Raises Conflict if the move is another one or has another state."""
    row = await conn.fetchrow(LOCK_MOVE, project)
    if row is None or row["move_id"] != move or row["move_state"] not in states:
        raise refuse_other(project)
    rows: int | None = row["move_rows"]
    return rows


@asynccontextmanager
async def during_move(
    conn: Connection, project: str, move: UUID | None, states: Collection[MoveState]
) -> AsyncIterator[None]:
    """A transaction in which no other command ends the move. Raises Conflict as `check_move`."""
    async with conn.transaction():
        await conn.execute(SET_FORMAT)
        await check_move(conn, project, move, states)
        yield


def refuse_other(project: str) -> errors.Conflict:
    return errors.Conflict(
        f'the project "{project}" was moved by another command',
        place="move-project",
        remedy="Run the command again to see where it is",
        code="MoveUnderWay",
    )


async def read_outcome(
    conn: Connection, project: str, source: str, record: MoveRecord
) -> bool | None:
    """Whether a move has arrived in the new cell, whose connection this is; False: it was undone;
    None: neither. source: the name of the former cell. record: of the project there."""
    if record.id is None:  # of an earlier version
        here = await read_state(conn, project)
        arrived = here is not None and here.state is None and here.arrived_from == source
        return arrived or None
    outcome: bool | None = await conn.fetchval(READ_OUTCOME, record.id)
    return outcome


async def decide_outcome(conn: Connection, move: UUID, *, arrived: bool) -> bool:
    """Decide, in the new cell, how a move ends, unless that is decided; whether it has arrived."""
    await conn.execute(DECIDE, move, arrived)
    return bool(await conn.fetchval(READ_OUTCOME, move))


async def list_running(conn: Connection, project: str) -> list[UnfinishedOperation]:
    """Operations under way."""
    return [UnfinishedOperation(**row) for row in await conn.fetch(LIST_RUNNING, project)]


async def close_project(conn: Connection, project: str, move: UUID | None) -> None:
    """Refuse new rows of the project in this cell. Waits for transactions that are adding some. The
    state is committed before any row is locked: a transaction that adds a row never waits for one
    of the others, which could be a deadlock. Raises Conflict if another command has ended the
    move."""
    async with conn.transaction():
        await conn.execute(SET_FORMAT)
        if not _count(await conn.execute(CLOSE, project, move, timeout=LONG)):
            raise refuse_other(project)


async def take_rows(
    conn: Connection,
    project: str,
    move: UUID | None,
    state: MoveState,
    taken: Callable[[Connection, str], Awaitable[None]] = _ignore,
) -> int | None:
    """Move all rows of a closed project to `moving_row`; the number of rows. Repeat it until it
    returns 0: transactions that began before can add rows. None: another transaction keeps a row
    locked, and no row was moved. state: of the move. taken: called in the same transaction if rows
    were moved. Raises Conflict if another command has ended the move."""
    count = 0
    try:
        async with conn.transaction():
            await conn.execute(SET_FORMAT)
            await conn.execute(SET_LOCK_TIMEOUT, LOCK_TIMEOUT)
            await check_move(conn, project, move, {state})
            await conn.execute(LOCK_CURSOR)
            for statement in (LOCK_STACKS, LOCK_SUBSCRIPTIONS):
                await conn.execute(statement, project, timeout=LONG)
            for statement in TAKE.values():
                count += _count(await conn.execute(statement, project, timeout=LONG))
            if count:
                if state is MoveState.TAKEN:
                    await conn.execute(ADD_ROWS, project, count)
                await taken(conn, project)
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        return None
    return count


async def fill_tables(conn: Connection, project: str) -> None:
    """Copy the rows in `moving_row` to their tables, in place of those of the project."""
    for statement in EMPTY.values():
        await conn.execute(statement, project, timeout=LONG)
    for table in reversed([*MOVED]):
        await conn.execute(RESTORE[table], project, timeout=LONG)


async def restore_rows(conn: Connection, project: str, move: UUID | None) -> None:
    """End the move, and move all rows back to their tables. Its schema is not read any more. Raises
    Conflict if another command has ended the move, or a part of the rows was deleted."""
    async with conn.transaction():
        await conn.execute(SET_FORMAT)
        expected = await check_move(conn, project, move, LEFT)
        count = await conn.fetchval(COUNT_MOVING, project, timeout=LONG)
        # A move that an error interrupted has not taken all of them.
        if expected is not None and count < expected:
            raise errors.Conflict(
                f'only {count} of the {expected} rows of the project "{project}" are left here',
                place="--undo",
                remedy="Restore a backup of one of the two cells",
                code="MoveDiffers",
            )
        await conn.execute(END_MOVE, project, timeout=LONG)
        await conn.execute(SET_NOT_FILLED, project)
        for table in reversed([*MOVED]):
            try:
                await conn.execute(RESTORE[table], project, timeout=LONG)
            except asyncpg.DataError as error:
                raise errors.Conflict(
                    f'the rows of the table "{table}" are of another version of the schema:'
                    f" {error}",
                    place="--undo",
                    remedy="Restore a backup of this cell, and finish the move before you upgrade",
                    code="MoveDiffers",
                ) from error
        while await delete_page(conn, project):
            pass


async def copy_page(
    source: Connection, target: Connection, project: str, after: tuple[str, int]
) -> tuple[str, int] | None:
    """Copy the page after a row; its last row, or None: there are no more."""
    rows = await source.fetch(READ_PAGE, project, *after, PAGE)
    if not rows:
        return None
    columns = [[row[name] for row in rows] for name in ("source_table", "number", "content")]
    await target.execute(WRITE_PAGE, project, *columns)
    return rows[-1]["source_table"], rows[-1]["number"]


async def digest_moving(conn: Connection, project: str) -> dict[str, TableDigest]:
    """Of the rows in `moving_row`, by table."""
    async with conn.transaction():
        await conn.execute(SET_FORMAT)
        rows = await conn.fetch(DIGEST_MOVING, project, timeout=LONG)
    return {row["source_table"]: TableDigest(row["count"], row["digest"]) for row in rows}


async def read_position(conn: Connection) -> int:
    position: int = await conn.fetchval(READ_POSITION)
    return position


async def arrive(
    conn: Connection,
    project: str,
    source: str,
    *,
    move: UUID,
    rows: int | None,
    check: bytes | None,
    digests: Mapping[str, TableDigest],
    position: int,
    keys: Sequence[TokenKey],
    tokens: Sequence[Json],
    keyring: Keyring,
) -> None:
    """Insert the rows into their tables, and record that the project is in this cell.

    source: the name of the other cell. rows: how many have left their tables there. check: of
    the encryption key there. position: the last one of events there. keys: those of the other cell.
    tokens: of the project, by `read_copies`. Raises Conflict if the rows differ from `digests`, one
    of them exists, the cell has the project, or the move has ended.
    """
    check_count(digests, rows)
    async with conn.transaction():
        await conn.execute(SET_FORMAT)
        if await key_check(conn) != check:
            raise refuse_difference("instance", "the encryption keys differ")
        await _record_arrival(conn, project, source, move)
        (computed,) = await conn.fetch(COMPUTE_SHIFT, project, position, timeout=LONG)
        boundary, shift, last = computed
        await _insert_rows(conn, project, shift)
        for table, statement in DIGEST.items():
            row = await conn.fetchrow(statement, project, timeout=LONG)
            found = TableDigest(row["count"], row["digest"]) if row else TableDigest(0, "")
            expected = digests.get(table, TableDigest(0, ""))
            if found.count != expected.count:
                reason = f"{found.count} rows instead of {expected.count}"
                raise refuse_difference(table, reason)
            if expected.count and table != RENUMBERED and found.digest != expected.digest:
                raise refuse_difference(table, "the digests differ")
        await conn.execute(SET_CURSOR, last)
        await conn.execute(SHIFT_PURGED, project, shift)
        await conn.execute(INSERT_SHIFT, project, boundary, shift, last)
        await _add_token_keys(conn, keys, keyring)
        await delete_tokens(conn, project)  # an earlier move from this cell can have left some
        await write_copies(conn, tokens)
        if await read_copies(conn, project) != tokens:
            raise refuse_difference("token", "the copies differ")
        await conn.execute(NOTIFY_TOKENS)
        while await delete_page(conn, project):
            pass


async def _insert_rows(conn: Connection, project: str, shift: int) -> None:
    for table in BACKGROUND:
        await conn.execute(EMPTY[table], project, timeout=LONG)
    for table in reversed([*MOVED]):
        try:
            if table == RENUMBERED:
                await conn.execute(INSERT_OUTBOX, project, shift, timeout=LONG)
            else:
                await conn.execute(RESTORE[table], project, timeout=LONG)
        except asyncpg.UniqueViolationError as error:
            raise refuse_difference(table, "the cell has one of these rows") from error
        except asyncpg.DataError as error:
            raise refuse_difference(table, f"the schemas differ: {error}") from error


async def _record_arrival(conn: Connection, project: str, source: str, move: UUID) -> None:
    if not _count(await conn.execute(DECIDE, move, True, timeout=LONG)):
        raise refuse_other(project)
    await conn.execute(LOCK_CURSOR, timeout=LONG)
    if not _count(await conn.execute(ARRIVE, project, source, timeout=LONG)):
        raise refuse_difference("cell_project", "the new cell has the project, too")


def check_count(digests: Mapping[str, TableDigest], rows: int | None) -> None:
    """Raises Conflict if rows of the move are missing. rows: how many have left their tables."""
    found = sum(one.count for one in digests.values())
    if rows is not None and found != rows:
        raise refuse_difference("moving_row", f"{found} rows instead of {rows}")


def refuse_difference(table: str, reason: str) -> errors.Conflict:
    return errors.Conflict(
        f'the rows of the table "{table}" are not the same in both cells: {reason}',
        place="move-project",
        remedy="Undo the move with --undo; nothing was lost",
        code="MoveDiffers",
    )


async def _add_token_keys(conn: Connection, keys: Sequence[TokenKey], keyring: Keyring) -> None:
    """Accept tokens of the hooks and resources that were made in another cell."""
    await conn.execute(LOCK_TOKEN_KEYS, timeout=LONG)
    own = await read_token_keys(conn, keyring)
    new = [one for one in keys if one.key not in {known.key for known in own}]
    current = await conn.fetchrow(READ_CURRENT)
    if not new or current is None:
        return
    version = own[0].version
    await conn.execute(DELETE_KEY, version)
    for one in reversed(new):
        encrypted = encrypt_token_key(version, one.key, keyring)
        await conn.execute(INSERT_KEY, version, encrypted, one.retired_at, one.signals)
        version += 1
    # The newest version makes tokens.
    encrypted = encrypt_token_key(version, own[0].key, keyring)
    await conn.execute(INSERT_CURRENT, version, encrypted, current["created_at"])
    await conn.execute(NOTIFY_TOKEN_KEYS)


async def has_rows(conn: Connection, project: str) -> bool:
    found: bool = await conn.fetchval(HAS_ROWS, project)
    return found


async def has_copies(conn: Connection, project: str) -> bool:
    """Whether rows are left that a move has copied or taken."""
    found: bool = await conn.fetchval(HAS_COPIES, project)
    return found


async def summarize(conn: Connection, project: str) -> ProjectSummary:
    async with conn.transaction():
        await conn.execute(SET_FORMAT)
        row = await conn.fetchrow(SUMMARIZE, project, timeout=LONG)
    return ProjectSummary(row["rows"], row["changed_at"]) if row else ProjectSummary(0, None)


async def delete_page(conn: Connection, project: str) -> int:
    """Delete a page of `moving_row`; the number of rows."""
    return _count(await conn.execute(DELETE_PAGE, project, PAGE, timeout=LONG))


async def delete_copies(
    conn: Connection, project: str, refused: Collection[MoveState] = frozenset({MoveState.TAKEN})
) -> None:
    """Delete the copies of a project that a move has left in the cell. refused: states of the
    project in this cell; its rows are no copies then. Raises Conflict in one of them."""
    deleted = 1
    while deleted:
        async with conn.transaction():
            await conn.execute(SET_FORMAT)
            row = await conn.fetchrow(LOCK_MOVE, project)
            if row is not None and row["move_state"] in refused:
                raise refuse_other(project)
            deleted = await delete_page(conn, project)


async def delete_taken(conn: Connection, project: str, move: UUID | None) -> None:
    """Delete the rows of a project that is in another cell. Raises Conflict if the move is another
    one."""
    deleted = 1
    while deleted:
        async with during_move(conn, project, move, {MoveState.MOVED}):
            deleted = await delete_page(conn, project)


async def set_moved(conn: Connection, project: str, move: UUID | None) -> None:
    """Raises Conflict if another command has ended the move."""
    if not _count(await conn.execute(SET_MOVED, project, move)):
        raise refuse_other(project)


async def end_announced(conn: Connection, project: str, move: UUID | None) -> bool:
    """End a move whose rows have not left their tables; False: it has another state by now."""
    return bool(_count(await conn.execute(END_ANNOUNCED, project, move)))


async def set_discarded(conn: Connection, project: str, kept: str, move: UUID) -> None:
    """Record that a project is in another cell alone. Raises Conflict if it moves."""
    async with conn.transaction():
        await conn.execute(SET_FORMAT)
        if not _count(await conn.execute(SET_DISCARDED, project, kept, move, timeout=LONG)):
            raise refuse_other(project)


async def end_discarded(conn: Connection, project: str, move: UUID) -> None:
    """Take back `set_discarded`."""
    await conn.execute(END_DISCARDED, project, move)


async def keep_project(conn: Connection, project: str, discarded: str) -> None:
    """Record that this cell has a project, and that the cell `discarded` had it, too."""
    await conn.execute(KEEP, project, discarded)


async def check_cell(conn: Connection, name: str) -> None:
    """Raises Conflict if the database is not that of the cell."""
    record = await read_cell(conn)
    if record is None or record.name != name:
        found = f'the cell "{record.name}"' if record else "no cell yet"
        raise errors.Conflict(
            f'the database of the cell "{name}" is {found}',
            place=f'[cells] databases "{name}"',
            remedy="Start a process with the role api and these settings first",
            code="OtherCell",
        )


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])
