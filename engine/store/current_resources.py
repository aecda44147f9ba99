"""Current resources for planning: all of a stack, or those that a change may concern."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.hooks.rule import decode_rules
from engine.plan.draft import Existing, Replacement
from engine.store.connection import Connection
from engine.words import DeletionPolicy, Operation, ResourceAction, ResourceId, Status

# What runs on a stack is found first, and once: joined row by row it was seen to take seconds for
# ten thousand resources. A node may run whose row is not there yet, because the one it was planned
# for has gone meanwhile: what it makes will have its replacement_id.
READ_EXISTING = """
with busy as materialized (
    select resource_id, replacement_id, name, type, requires, traversal, id, operation, rules,
           definition ->> 'deletion_policy' as policy
      from node
     where stack_id = $1 and state in ('running', 'parked', 'ready') and phase in ('act', 'confirm')
)
select r.id, r.name, r.type, r.action, r.status, r.digest, r.requires, r.rules, r.replaced_by,
       n.traversal, n.id as node, n.operation, n.replacement_id, n.type as running_type,
       n.requires as running_requires, n.policy as running_policy, r.physical_id,
       r.deletion_policy, r.protected, r.created_at
  from resource r left join busy n on n.resource_id = r.id
 where r.stack_id = $1
union all
select n.replacement_id, n.name, n.type, 'INIT', 'COMPLETE', '', '{}', n.rules, null,
       n.traversal, n.id, n.operation, null, n.type, n.requires, n.policy, null, 'Delete',
       false, now()
  from busy n
 where n.replacement_id is not null
   and n.resource_id not in (select id from resource where stack_id = $1)
 order by created_at, id
"""
#: The same, of rows that are named or that are not plain.
READ_CONCERNED = """
with busy as materialized (
    select resource_id, replacement_id, name, type, requires, traversal, id, operation, rules,
           definition ->> 'deletion_policy' as policy
      from node
     where stack_id = $1 and state in ('running', 'parked', 'ready') and phase in ('act', 'confirm')
)
select r.id, r.name, r.type, r.action, r.status, r.digest, r.requires, r.rules, r.replaced_by,
       n.traversal, n.id as node, n.operation, n.replacement_id, n.type as running_type,
       n.requires as running_requires, n.policy as running_policy, r.physical_id,
       r.deletion_policy, r.protected, r.created_at
  from resource r left join busy n on n.resource_id = r.id
 where r.stack_id = $1
   and (r.name in (select unnest($2::text[])) or r.id in (select resource_id from busy)
        or r.replaced_by is not null or r.status <> 'COMPLETE'
        or r.action in ('INIT', 'SUSPEND', 'DELETE'))
union all
select n.replacement_id, n.name, n.type, 'INIT', 'COMPLETE', '', '{}', n.rules, null,
       n.traversal, n.id, n.operation, null, n.type, n.requires, n.policy, null, 'Delete',
       false, now()
  from busy n
 where n.replacement_id is not null
   and n.resource_id not in (select id from resource where stack_id = $1)
 order by created_at, id
"""
READ_PLAIN = """
with busy as materialized (
    select resource_id from node
     where stack_id = $1 and state in ('running', 'parked', 'ready') and phase in ('act', 'confirm')
)
select coalesce(array_agg(r.name), '{}') as names, coalesce(array_agg(r.digest), '{}') as digests,
       coalesce(bool_or(r.rules is not null), false) as kept
  from resource r
 where r.stack_id = $1 and r.replaced_by is null and r.status = 'COMPLETE'
   and r.action not in ('INIT', 'SUSPEND', 'DELETE') and r.id not in (select resource_id from busy)
"""


@dataclass(frozen=True, slots=True)
class Plain:
    """Rows of which only the digest matters, by name: made, whole, and nothing runs on them.

    kept: breakpoints stay with some of them.
    """

    digests: Mapping[str, str]
    kept: bool


async def read_plain(conn: Connection, stack_id: UUID) -> Plain:
    row = await conn.fetchrow(READ_PLAIN, stack_id)
    if row is None:
        return Plain({}, False)
    return Plain(dict(zip(row["names"], row["digests"], strict=True)), row["kept"])


async def read_concerned(
    conn: Connection, stack_id: UUID, names: Collection[str]
) -> list[Existing]:
    """Rows of these names, and all that are not plain."""
    return [_existing(row) for row in await conn.fetch(READ_CONCERNED, stack_id, list(names))]


async def read_existing(conn: Connection, stack_id: UUID) -> list[Existing]:
    """Every row of the stack."""
    return [_existing(row) for row in await conn.fetch(READ_EXISTING, stack_id)]


def _existing(row: Any) -> Existing:
    return Existing(
        id=ResourceId(row["id"]),
        name=row["name"],
        type=row["type"],
        action=ResourceAction(row["action"]),
        status=Status(row["status"]),
        digest=row["digest"],
        requires=tuple(row["requires"]),
        rules=decode_rules(row["rules"]),
        replaced_by=row["replaced_by"],
        running=None if row["node"] is None else (row["traversal"], row["node"]),
        using=frozenset(row["running_requires"] or ()),
        suspending=row["operation"] == Operation.SUSPEND,
        replacement=_replacement(row),
        physical_id=row["physical_id"],
        deletion_policy=_policy(row),
        protected=row["protected"],
    )


def _policy(row: Any) -> DeletionPolicy:
    """The row's; or Snapshot, if what runs on it brings that: the snapshot is planned for."""
    brought = row["running_policy"] == DeletionPolicy.SNAPSHOT
    return DeletionPolicy.SNAPSHOT if brought else DeletionPolicy(row["deletion_policy"])


def _replacement(row: Any) -> Replacement | None:
    """The rows that may replace this one, if the operation on it creates a replacement."""
    if row["operation"] not in (Operation.UPDATE, Operation.REPLACE):
        return None
    if row["replacement_id"] is None:
        return None
    return Replacement(
        ResourceId(row["replacement_id"]),
        row["running_type"],
        frozenset(row["running_requires"] or ()),
    )
