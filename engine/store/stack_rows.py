"""Writes stacks, template versions and stack events for accepted requests.

Called by engine/service in one transaction; the stack's row is new or locked.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from engine.errors import Unavailable
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.encryption import Hidden, Scope
from engine.words import Json

INSERT_STACK = """
insert into stack (id, project, name, owner, tags, timeout_mins, disable_rollback, version,
                   traversal)
values ($1, $2, $3, $4, $5, $6, $7, 1, 1)
on conflict (project, name) where deleted_at is null do nothing
returning id
"""
CLAIM_KEY = """
with claimed as (
    insert into idempotency (project, key, request_digest, stack_id) values ($1, $2, $3, $4)
    on conflict (project, key) do nothing
    returning request_digest, stack_id
)
select request_digest as digest, stack_id from claimed
union all
select request_digest, stack_id from idempotency where project = $1 and key = $2
limit 1
"""
LOCK_NAMED = """
select id, name from stack
 where project = $1 and deleted_at is null and (name = any ($2) or id::text = any ($2))
 order by id for no key update
"""
FORGET_VERSIONS = """
delete from template t
 where t.stack_id = $1
   and t.version <= (select max(version) from template where stack_id = $1) - $2
   and t.version <> (select version from stack where id = $1)
   and t.version is distinct from (
       select version from traversal
        where stack_id = $1 and state = 'complete'
          and action in ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE')
        order by number desc limit 1)
   and t.version not in (select version from snapshot where stack_id = $1)
"""
INSERT_TEMPLATE = """
insert into template (stack_id, version, description, template, environment, files, parameters,
                      shown, hidden, outputs, requested_by, source, requested_by_id,
                      requested_by_roles)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
"""
READ_PLATE = "select project, name, tags from stack where id = $1"
#: Without a request, the traceparent stays.
POINT_STACK = """
update stack set version = $2, traversal = $3, changed_at = now(),
       traceparent = case when $4::text is null then traceparent else nullif($4, '') end
 where id = $1
"""
ADORN_STACK = """
update stack set tags = coalesce($2, tags), timeout_mins = coalesce($3, timeout_mins),
       disable_rollback = coalesce($4, disable_rollback)
 where id = $1
"""
LOCK_STACK = """
select s.id, s.project, s.name, s.version, s.traversal, s.deleted_at is not null as deleted,
       (select max(version) from template v where v.stack_id = s.id) as newest,
       s.disable_rollback, t.state, t.action,
       t.requested_by, t.requested_by_id, now() as now, o.name as root, s.path
  from stack s join traversal t on t.stack_id = s.id and t.number = s.traversal
  left join stack o on o.id = s.root_id
 where s.id = $1 and s.project = coalesce($2, s.project)
   for no key update of s
"""
STACK_EVENT = """
select record_events(array[row ($1::uuid, $2::text, null, null, $1::text, $3::text, $4::text,
                                $5::text, $6::jsonb)::event_draft])
"""


@dataclass(frozen=True, slots=True)
class Locked:
    """A stack under lock. version: what it should be; newest: the highest there is.

    requested_by: who asked for its traversal. now: the transaction's time. root: name of the
    outermost stack; None: it is that itself. path: names of the resources that lead to it,
    ``web/db``; "": it is the outermost.
    """

    id: UUID
    project: str
    name: str
    version: int
    newest: int
    traversal: int
    deleted: bool
    disable_rollback: bool
    state: str
    action: str
    requested_by: Principal
    now: datetime
    root: str | None
    path: str

    @property
    def names_above(self) -> list[str]:
        """The names of its path."""
        return list(filter(None, self.path.split("/")))


async def insert_stack(
    conn: Connection,
    *,
    stack_id: UUID,
    project: str,
    name: str,
    owner: Principal,
    tags: Sequence[str],
    timeout_mins: int | None,
    disable_rollback: bool,
) -> bool:
    """False if the project has a stack of that name."""
    made = await conn.fetchval(
        INSERT_STACK,
        stack_id,
        project,
        name,
        owner.name,
        list(tags),
        timeout_mins,
        disable_rollback,
    )
    return made is not None


@dataclass(frozen=True, slots=True)
class Key:
    """An Idempotency-Key: the digest of the request that used it first, and its stack."""

    digest: str
    stack_id: UUID


async def claim_key(conn: Connection, project: str, key: str, digest: str, stack_id: UUID) -> Key:
    """Claim the key for this request, or return its owner. Waits for a concurrent claim."""
    row = await conn.fetchrow(CLAIM_KEY, project, key, digest, stack_id)
    if row is None:  # claimed by a transaction that ended after the statement started
        row = await conn.fetchrow(CLAIM_KEY, project, key, digest, stack_id)
    if row is None:
        raise Unavailable("the Idempotency-Key is being used", remedy="Send the request again.")
    return Key(**row)


class StackHeader(NamedTuple):
    """Project, name and tags of a stack."""

    project: str
    name: str
    tags: list[str]


async def read_stack_header(conn: Connection, stack_id: UUID) -> StackHeader:
    row = await conn.fetchrow(READ_PLATE, stack_id)
    if row is None:
        raise LookupError(f"there is no stack {stack_id}, which the caller should have locked")
    return StackHeader(*row)


async def lock_stack(conn: Connection, project: str | None, stack_id: UUID) -> Locked | None:
    """Lock the stack's row; None when there is no such stack in the project. project: None: any."""
    row = await conn.fetchrow(LOCK_STACK, stack_id, project)
    if row is None:
        return None
    fields = dict(row)
    by = Principal(fields.pop("requested_by_id"), fields.pop("requested_by"))
    return Locked(requested_by=by, **fields)


async def lock_stacks(conn: Connection, project: str, names: Sequence[str]) -> dict[str, UUID]:
    """Lock stacks by name or ID, in the order of their IDs; missing ones are left out."""
    rows = await conn.fetch(LOCK_NAMED, project, list(names))
    return {name: row["id"] for row in rows for name in (row["name"], str(row["id"]))}


async def forget_versions(conn: Connection, stack_id: UUID, most: int) -> None:
    """Delete old template versions, except those that a stack or snapshot can return to."""
    await conn.execute(FORGET_VERSIONS, stack_id, most)


async def insert_template(
    conn: Connection,
    *,
    project: str,
    stack_id: UUID,
    version: int,
    description: str,
    template: Json,
    environment: Json,
    files: Json,
    parameters: Json,
    shown: Json,
    hidden: Iterable[str],
    outputs: Json,
    requested_by: Principal,
    source: str | None,
) -> None:
    """If a parameter is hidden, the columns that can contain its value are encrypted."""
    if hidden := sorted(hidden):

        def sealed(column: str, value: Json) -> Hidden:
            return Hidden(value, Scope(project, stack_id, f"template.{column}"))

        values = ("parameters", "parameter_defaults")
        environment = {name: sealed("environment", value) if name in values else value
                       for name, value in environment.items()}  # fmt: skip
        files, parameters = sealed("files", files), sealed("parameters", parameters)
        outputs = sealed("outputs", outputs)
    await conn.execute(
        INSERT_TEMPLATE, stack_id, version, description, template, environment, files,
        parameters, shown, hidden, outputs, requested_by.name, source,
        requested_by.id, list(requested_by.roles),
    )  # fmt: skip


async def point_stack(
    conn: Connection, *, stack_id: UUID, version: int, traversal: int, traceparent: str | None
) -> None:
    """traceparent: "" where the request is of no trace; None: there is no request."""
    await conn.execute(POINT_STACK, stack_id, version, traversal, traceparent)


async def adorn_stack(
    conn: Connection,
    *,
    stack_id: UUID,
    tags: Sequence[str] | None,
    timeout_mins: int | None,
    disable_rollback: bool | None,
) -> None:
    """Change settings that are not part of the template; None: unchanged."""
    kept = None if tags is None else list(tags)
    await conn.execute(ADORN_STACK, stack_id, kept, timeout_mins, disable_rollback)


async def record_stack_event(
    conn: Connection,
    *,
    stack_id: UUID,
    kind: str,
    action: str,
    status: str,
    reason: str,
    data: Json,
) -> None:
    await conn.execute(STACK_EVENT, stack_id, kind, action, status, reason, data)
