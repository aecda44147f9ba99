"""Operations that the observer completes, and the requests that find their objects.

An operation has a row until it has ended. The observer writes the complete object into it and wakes
the node, whose operation a worker then calls again. So the node machine decides its end, as after
any other wait, and an object that is found twice completes it once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid5

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_row
from engine.store.encryption.secret_values import DecryptionFailed, Scope, Secret
from engine.store.stacks.stack_locks import lock_stacks
from engine.types.completion import AcceptedOperation
from engine.words import Json

CHANNEL = "headgate_completion"
#: Of the IDs of requests.
NAMESPACE = UUID("0d0a6a1c-4a7c-5d39-9a5e-0f6f2f1c7b11")

#: $1: operations. $2: until the first request. Those that wait already stay as they are. Returns
#: those whose object is complete, and a row of nulls if a request was added or is due earlier.
ADD = """
with given as materialized (
    select * from jsonb_to_recordset($1) g (
           request_id uuid, project text, type text, max_pause double precision, stack_id uuid,
           operation_key uuid, object_id text, definition jsonb)
), known as materialized (
    select g.stack_id, g.operation_key, g.project, c.result
      from given g
     cross join lateral (select * from completion
                          where stack_id = g.stack_id and operation_key = g.operation_key
                            and request_id = g.request_id and object_id = g.object_id offset 0) c
), new as materialized (
    select g.* from given g
     where not exists (select from known k where k.stack_id = g.stack_id
                                             and k.operation_key = g.operation_key)
), request as (
    insert into completion_request as q (id, project, type, next_at, max_pause)
    select request_id, min(project), min(type), clock_timestamp() + $2::interval,
           make_interval(secs => min(max_pause))
      from new group by request_id order by request_id
    on conflict (id) do update
       set sent = 0, max_pause = least(q.max_pause, excluded.max_pause),
           next_at = case when q.claimed_at is null and q.failures = 0
                          then least(q.next_at, excluded.next_at) else q.next_at end
    returning q.id
), added as (
    insert into completion as c (stack_id, operation_key, request_id, object_id, definition)
    select stack_id, operation_key, request_id, object_id, definition
      from new order by stack_id, operation_key
    on conflict (stack_id, operation_key) do update
       set request_id = excluded.request_id, object_id = excluded.object_id,
           definition = excluded.definition, result = null
), notified as (
    select pg_notify('headgate_completion', '') from request limit 1
)
select stack_id, operation_key, project, result from known where result is not null
union all
select null, null, null, null from notified
"""
#: $1: the lease. $2: projects to leave out.
CLAIM = """
update completion_request
   set claim = claim + 1, claimed_at = clock_timestamp(), requested = false,
       next_at = clock_timestamp() + $1
 where id = (select id from completion_request
              where next_at <= statement_timestamp() and project <> all ($2)
              order by next_at limit 1 for update skip locked)
returning id, claim, project, type, sent, failures, max_pause
"""
#: $1: projects to leave out.
NEXT_DUE = """
select min(next_at) - clock_timestamp() from completion_request where project <> all ($1)
"""
READ_DEFINITIONS = """
select stack_id, definition from completion where request_id = $1 and result is null limit $2
"""
#: $2: IDs of objects.
FIND = """
select c.stack_id, c.operation_key, c.object_id, c.definition
  from unnest($2::text[]) o (id)
 cross join lateral (select * from completion
                      where request_id = $1 and object_id = o.id and result is null offset 0) c
"""
#: $1: complete objects. Calls the operations again; those that a worker calls now, afterwards. The
#: caller has locked the stacks.
COMPLETE = """
with complete as (
    update completion c set result = d.result
      from jsonb_to_recordset($1) d (stack_id uuid, operation_key uuid, object_id text,
                                     result jsonb)
     where c.stack_id = d.stack_id and c.operation_key = d.operation_key
       and c.object_id = d.object_id and c.result is null
       and c.stack_id = any (array(select (x ->> 'stack_id')::uuid
                                     from jsonb_array_elements($1) x))
       and c.operation_key = any (array(select (x ->> 'operation_key')::uuid
                                          from jsonb_array_elements($1) x))
    returning c.stack_id, c.operation_key
), waiting as (
    select array_agg(row (n.stack_id, n.traversal, n.id)::node_key) as nodes
      from (select distinct stack_id from complete) s
     cross join lateral (select stack_id, traversal, id, operation_key from node
                          where stack_id = s.stack_id and wake_at is not null
                            and phase = 'execute' and state in ('parked', 'running') offset 0) n
      join complete c on c.stack_id = n.stack_id and c.operation_key = n.operation_key
)
select wake_nodes(nodes) from waiting where nodes is not null
"""
#: A request that this claim still holds, locked: no operation is added meanwhile.
LOCK_CLAIMED = "select id from completion_request where id = $1 and claim = $2 for update"
#: Operations that have ended: completed, cancelled, timed out or failed.
DELETE_ENDED = """
with live as materialized (
    select s.stack_id, n.operation_key
      from (select distinct stack_id from completion where request_id = $1) s
     cross join lateral (select operation_key from node
                          where stack_id = s.stack_id and wake_at is not null
                            and phase = 'execute' offset 0) n
)
delete from completion c
 where c.request_id = $1
   and not exists (select from live l where l.stack_id = c.stack_id
                                        and l.operation_key = c.operation_key)
"""
#: $2: until the next one. $3: consecutive failures. $4: whether it was sent. $5: until ended
#: operations are looked for, if none waits.
END_REQUEST = """
with rest as materialized (
    select exists (select from completion where request_id = $1) as known,
           exists (select from completion where request_id = $1 and result is null) as waiting
), unused as (
    delete from completion_request q using rest r where q.id = $1 and not r.known
)
update completion_request q
   set claimed_at = null, ended_at = clock_timestamp(), failures = $3,
       sent = q.sent + $4::boolean::integer,
       next_at = clock_timestamp() + case when q.requested then interval '0'
                                          when r.waiting then $2::interval else $5::interval end
  from rest r where q.id = $1 and r.known
"""
RELEASE = """
update completion_request set claimed_at = null, next_at = clock_timestamp()
 where id = $1 and claim = $2
"""
#: $1: the project; null: any. $2: IDs of objects that have changed. $3: the shortest pause between
#: two requests. Returns the objects that operations wait for, and a row with null.
REQUEST = """
with concerned as materialized (
    select c.request_id, c.object_id
      from unnest($2::text[]) o (id)
     cross join lateral (select request_id, object_id from completion
                          where object_id = o.id and result is null offset 0) c
      join completion_request q on q.id = c.request_id and q.project = coalesce($1, q.project)
), requested as (
    update completion_request q
       set requested = q.claimed_at is not null,
           next_at = case when q.claimed_at is not null then q.next_at
                          else least(q.next_at, greatest(clock_timestamp(),
                                                         q.ended_at + $3::interval)) end
      from (select distinct request_id from concerned) c where q.id = c.request_id
    returning q.id
), notified as (
    select pg_notify('headgate_completion', '') from requested limit 1
)
select object_id from concerned
union all
select null from notified
"""
#: Definitions that are read to find one that can be decrypted.
TRIES = 10


@dataclass(frozen=True, slots=True)
class ClaimedRequest:
    """sent: since an operation was added. failures: consecutive ones."""

    id: UUID
    claim: int
    project: str
    type: str
    sent: int
    failures: int
    max_pause: timedelta


@dataclass(frozen=True, slots=True)
class WaitingOperation:
    stack_id: UUID
    operation_key: UUID
    object_id: str
    definition: Mapping[str, Json] = field(repr=False)


def request_id(project: str, type_name: str, key: str) -> UUID:
    return uuid5(NAMESPACE, "\0".join((project, type_name, key)))


async def add(
    conn: Connection, accepted: Sequence[AcceptedOperation], first: timedelta
) -> dict[UUID, Json]:
    """Have the observer complete operations. first: until the first request for new ones. Returns
    the complete objects, by operation key. Raises DecryptionFailed."""
    rows = {(one.stack_id, one.operation_key): _row(one) for one in accepted}
    found = await conn.fetch(ADD, list(rows.values()), first)
    return {
        row["operation_key"]: decrypt_row(
            row, row["project"], row["stack_id"], "completion", ("result",)
        )["result"]
        for row in found
        if row["operation_key"] is not None
    }


def _row(one: AcceptedOperation) -> dict[str, Json]:
    scope = Scope(one.project, one.stack_id, "completion.definition")
    return {
        "request_id": str(request_id(one.project, one.type, one.key)),
        "project": one.project,
        "type": one.type,
        "max_pause": one.max_pause,
        "stack_id": str(one.stack_id),
        "operation_key": str(one.operation_key),
        "object_id": one.object_id,
        "definition": Secret(one.definition, scope),
    }


async def claim(
    conn: Connection, lease: timedelta, except_projects: Sequence[str] = ()
) -> ClaimedRequest | None:
    """The request that is due first; None: none is."""
    row = await conn.fetchrow(CLAIM, lease, except_projects)
    return ClaimedRequest(**row) if row else None


async def until_next(conn: Connection, except_projects: Sequence[str] = ()) -> timedelta | None:
    """The time until the next request is due; None: there is none."""
    due: timedelta | None = await conn.fetchval(NEXT_DUE, except_projects)
    return due


async def read_definition(conn: Connection, claimed: ClaimedRequest) -> Mapping[str, Json] | None:
    """The definition of the request, from one of its operations; None: none waits.

    Raises DecryptionFailed.
    """
    failed: DecryptionFailed | None = None
    for row in await conn.fetch(READ_DEFINITIONS, claimed.id, TRIES):
        try:
            plain = decrypt_row(row, claimed.project, row["stack_id"], "completion")
        except DecryptionFailed as error:
            failed = error
        else:
            definition: Mapping[str, Json] = plain["definition"]
            return definition
    if failed is not None:
        raise failed
    return None


async def find_waiting(
    conn: Connection, claimed: ClaimedRequest, object_ids: Sequence[str]
) -> list[WaitingOperation]:
    """The operations that wait for these objects, without those that cannot be decrypted."""
    found: list[WaitingOperation] = []
    for row in await conn.fetch(FIND, claimed.id, object_ids):
        try:
            plain = decrypt_row(row, claimed.project, row["stack_id"], "completion")
        except DecryptionFailed:
            continue  # its operation ends with its time limit
        found.append(WaitingOperation(**plain))
    return found


async def complete(
    conn: Connection, project: str, found: Sequence[tuple[WaitingOperation, Json]]
) -> None:
    """Store complete objects and call their operations again."""
    await lock_stacks(conn, {one.stack_id for one, _ in found})
    rows = [
        {
            "stack_id": str(one.stack_id),
            "operation_key": str(one.operation_key),
            "object_id": one.object_id,
            "result": Secret(result, Scope(project, one.stack_id, "completion.result")),
        }
        for one, result in found
    ]
    await conn.execute(COMPLETE, rows)


async def end_request(
    conn: Connection,
    claimed: ClaimedRequest,
    pause: timedelta,
    *,
    failures: int,
    sent: bool,
    idle: timedelta,
) -> None:
    """End a claim, and forget the operations that have ended. pause: until the next request. idle:
    until the next look for ended operations, if none waits. Nothing changes if another process has
    claimed the request since."""
    if await conn.fetchrow(LOCK_CLAIMED, claimed.id, claimed.claim) is None:
        return
    await conn.execute(DELETE_ENDED, claimed.id)
    await conn.execute(END_REQUEST, claimed.id, pause, failures, sent, idle)


async def release(conn: Connection, claimed: ClaimedRequest) -> None:
    """End a claim without a result; the request is due again."""
    await conn.execute(RELEASE, claimed.id, claimed.claim)


async def request(
    conn: Connection, project: str | None, object_ids: Sequence[str], min_pause: timedelta
) -> set[str]:
    """Make the requests for these objects due. project: None: all. min_pause: between two. Returns
    the objects that operations wait for."""
    rows = await conn.fetch(REQUEST, project, object_ids, min_pause)
    return {row["object_id"] for row in rows} - {None}
