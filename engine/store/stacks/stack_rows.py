"""Writes stacks and their events. The stack's row is new, or the caller has locked it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from engine.errors import Unavailable
from engine.principal import Principal
from engine.store.connection import Connection
from engine.words import Json

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
READ_HEADER = "select project, name, tags from stack where id = $1"
UPDATE_SETTINGS = """
update stack set tags = coalesce($2, tags), timeout_mins = coalesce($3, timeout_mins),
       disable_rollback = coalesce($4, disable_rollback)
 where id = $1
"""
READ_REGIONS = "select id, region from stack where id = any ($1::uuid[])"
#: Of a root stack and its nested stacks.
STORE_REGION = "update stack set region = $2 where id = $1 or root_id = $1"
#: The region that the environment of a version names, of a stack without resources.
STORE_REGION_OF_VERSION = """
update stack s set region = coalesce(v.environment #>> '{context,region_name}', '')
  from template v
 where s.id = $1 and v.stack_id = s.id and v.version = $2
   and s.region <> coalesce(v.environment #>> '{context,region_name}', '')
   and not exists (select from resource r where r.stack_id = s.id)
"""
HAS_RESOURCES = """
select exists (select from stack s join resource r on r.stack_id = s.id
                where s.id = $1 or s.root_id = $1)
"""
RECORD_STACK_EVENT = """
select record_events(array[row ($1::uuid, $2::text, null, null, $1::text, $3::text, $4::text,
                                $5::text, $6::jsonb)::event_draft])
"""
#: Queues the last graph of a deleted stack, and archives nodes whose operation still runs.
ARCHIVE_GRAPH = "select archive_nodes(id, traversal + 1, true) from stack where id = $1"
DELETE_ROWS = """
with resources as (delete from resource where stack_id = $1),
     snapshots as (delete from snapshot where stack_id = $1),
     of_snapshots as (
         delete from resource_snapshot k using traversal t
          where k.stack_id = $1 and t.stack_id = k.stack_id and t.number = k.traversal
            and t.action = 'SNAPSHOT'),
     signals as (delete from resource_signal where stack_id = $1),
     breakpoints as (delete from breakpoint where stack_id = $1)
update stack set deleted_at = clock_timestamp() where id = $1
"""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An Idempotency-Key: the digest of the request that used it first, and its stack."""

    digest: str
    stack_id: UUID


async def claim_key(
    conn: Connection, project: str, key: str, digest: str, stack_id: UUID
) -> IdempotencyKey:
    """Claim the key for this request, or return the earlier claim. Waits for a concurrent claim."""
    row = await conn.fetchrow(CLAIM_KEY, project, key, digest, stack_id)
    if row is None:  # claimed by a transaction that ended after the statement started
        row = await conn.fetchrow(CLAIM_KEY, project, key, digest, stack_id)
    if row is None:
        raise Unavailable("the Idempotency-Key is being used", remedy="Send the request again.")
    return IdempotencyKey(**row)


class StackHeader(NamedTuple):
    """Project, name and tags of a stack."""

    project: str
    name: str
    tags: list[str]


@dataclass(frozen=True, slots=True)
class NewStack:
    """A stack that does not exist yet. private_outputs: see `StackRecord`. region: as
    `Call.region`."""

    project: str
    name: str
    owner: Principal
    tags: Sequence[str]
    timeout_mins: int | None
    disable_rollback: bool
    private_outputs: bool
    region: str = ""

    @property
    def header(self) -> StackHeader:
        return StackHeader(self.project, self.name, list(self.tags))

    def document(self, stack_id: UUID) -> Json:
        """The columns of its row, for `accept_change`."""
        return {
            "id": stack_id,
            "project": self.project,
            "name": self.name,
            "owner": self.owner.name,
            "tags": list(self.tags),
            "timeout_mins": self.timeout_mins,
            "disable_rollback": self.disable_rollback,
            "private_outputs": self.private_outputs,
            "version": 1,
            "traversal": 1,
            "region": self.region,
        }


async def read_stack_header(conn: Connection, stack_id: UUID) -> StackHeader:
    row = await conn.fetchrow(READ_HEADER, stack_id)
    if row is None:
        raise LookupError(f"there is no stack {stack_id}, which the caller should have locked")
    return StackHeader(*row)


async def read_regions(conn: Connection, stack_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The regions of stacks, by ID."""
    return {row["id"]: row["region"] for row in await conn.fetch(READ_REGIONS, stack_ids)}


async def store_region(conn: Connection, stack_id: UUID, region: str) -> None:
    """Set the region of a root stack and its nested stacks."""
    await conn.execute(STORE_REGION, stack_id, region)


async def store_region_of_version(conn: Connection, stack_id: UUID, version: int) -> None:
    """Set the region of a root stack to that of a template version, unless it has resources."""
    await conn.execute(STORE_REGION_OF_VERSION, stack_id, version)


async def has_resources(conn: Connection, stack_id: UUID) -> bool:
    """Whether a root stack or one of its nested stacks has resources."""
    return bool(await conn.fetchval(HAS_RESOURCES, stack_id))


async def update_settings(
    conn: Connection,
    *,
    stack_id: UUID,
    tags: Sequence[str] | None,
    timeout_mins: int | None,
    disable_rollback: bool | None,
) -> None:
    """Change settings that are not part of the template; None: unchanged."""
    if tags is None and timeout_mins is None and disable_rollback is None:
        return
    new_tags = None if tags is None else list(tags)
    await conn.execute(UPDATE_SETTINGS, stack_id, new_tags, timeout_mins, disable_rollback)


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
    await conn.execute(RECORD_STACK_EVENT, stack_id, kind, action, status, reason, data)


async def mark_deleted(conn: Connection, stack_id: UUID) -> None:
    """Delete the stack's resources, snapshots, signals and breakpoints. Its events, its graphs and
    what resources saved before deletion (deletion_policy: Snapshot) stay."""
    await conn.execute(ARCHIVE_GRAPH, stack_id)
    await conn.execute(DELETE_ROWS, stack_id)
