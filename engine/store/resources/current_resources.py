"""Reads the current resources of a stack for planning: all, or those that a change can concern."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.hooks.rule import decode_rules
from engine.plan.draft import ExistingResource, Replacement
from engine.store.connection import Connection
from engine.words import DeletionPolicy, Operation, ResourceAction, ResourceId, Status

#: Running operations of the stack. Only traversals with active nodes are read, because ended ones
#: may have many nodes. Earlier traversals with a running operation are in the archive queue.
_busy = """
busy as materialized (
    select n.resource_id, n.replacement_id, n.name, n.type, n.requires, n.traversal, n.id,
           n.operation, n.rules, n.definition ->> 'deletion_policy' as policy,
           nullif(n.label, '') as label
      from traversal t join node n on n.stack_id = t.stack_id and n.traversal = t.number
     where t.stack_id = $1 and t.active_nodes > 0
       and (t.number = (select traversal from stack where id = $1)
            or t.number in (select traversal from archive_queue where stack_id = $1))
       and is_operating(n.state, n.phase)
)
"""
#: Running operations are read first and once: a join row by row takes seconds for 10,000 resources.
#: The second select has replacements that are being created and whose replaced row is deleted.
_read_rows = """
with {busy}, wanted as (
    {wanted}
)
select r.id, r.name, r.type, r.action, r.status, r.digest, r.requires, r.rules, r.replaced_by,
       n.traversal, n.id as node, n.operation, n.replacement_id, n.type as running_type,
       n.requires as running_requires, n.policy as running_policy, r.physical_id,
       r.deletion_policy, r.protected,
       coalesce((r.lifecycle ->> 'prevent_destroy')::boolean, false) as prevented,
       r.label, n.label as running_label, r.created_at
  from wanted r left join busy n on n.resource_id = r.id
union all
select n.replacement_id, n.name, n.type, 'INIT', 'COMPLETE', '', '{{}}', n.rules, null,
       n.traversal, n.id, n.operation, null, n.type, n.requires, n.policy, null, 'Delete',
       false, false, n.label, n.label, now()
  from busy n
 where n.replacement_id is not null
   and n.resource_id not in (select id from resource where stack_id = $1)
 order by created_at, id
"""
READ_CURRENT = _read_rows.format(busy=_busy, wanted="select * from resource where stack_id = $1")
#: $2: IDs. $3: names.
READ_CONCERNED = _read_rows.format(
    busy=_busy,
    wanted="""select q.* from unnest($2::uuid[]) k (id)
     cross join lateral (
           select * from resource r where r.stack_id = $1 and r.id = k.id offset 0) q
    union
    select q.* from unnest($3::text[]) k (name)
     cross join lateral (
           select * from resource r where r.stack_id = $1 and r.name = k.name offset 0) q""",
)
_settled_rows = """
with {busy}
select coalesce(array_agg(r.name) filter (where r.at_rest), '{{}}') as names,
       coalesce(array_agg(r.digest) filter (where r.at_rest), '{{}}') as digests,
       coalesce(array_agg(r.id) filter (where not r.at_rest), '{{}}') as others,
       coalesce(bool_or(r.at_rest and r.rules is not null), false) as has_rules,
       coalesce(bool_or(r.at_rest and r.label is not null), false) as has_labels
  from (select q.id, q.name, q.digest, q.rules,
               q.label, q.replaced_by is null and q.status = 'COMPLETE'
               and q.action not in ('INIT', 'SUSPEND', 'DELETE')
               and q.id not in (select resource_id from busy) as at_rest
          from resource q where q.stack_id = $1) r
"""
READ_SETTLED = _settled_rows.format(busy=_busy)
#: Part of the resources above which reading all of them costs less than reading each by its key.
MANY = 0.2


@dataclass(frozen=True, slots=True)
class SettledResources:
    """Resources that are complete and have no running operation: planning needs their digests only.

    digests: by name. has_rules: hook rules stay with some of them. others: IDs of all other
    resources of the stack. has_labels: some have a label.
    """

    digests: Mapping[str, str]
    has_rules: bool
    others: Sequence[UUID] = ()
    has_labels: bool = False


async def read_settled(conn: Connection, stack_id: UUID) -> SettledResources:
    row = await conn.fetchrow(READ_SETTLED, stack_id)
    if row is None:
        return SettledResources({}, False)
    digests = dict(zip(row["names"], row["digests"], strict=True))
    return SettledResources(digests, row["has_rules"], row["others"], row["has_labels"])


async def read_concerned(
    conn: Connection, stack_id: UUID, names: Collection[str], settled: SettledResources
) -> list[ExistingResource]:
    """Resources with these names, and all that are not settled."""
    if len(names) + len(settled.others) > MANY * (len(settled.digests) + len(settled.others)):
        others = {*settled.others}
        rows = await conn.fetch(READ_CURRENT, stack_id)
        return [
            _existing(row)
            for row in rows
            if row["name"] in names or row["id"] in others or row["node"] is not None
        ]
    rows = await conn.fetch(READ_CONCERNED, stack_id, settled.others, list(names))
    return [_existing(row) for row in rows]


async def read_existing(conn: Connection, stack_id: UUID) -> list[ExistingResource]:
    """All resources of the stack."""
    return [_existing(row) for row in await conn.fetch(READ_CURRENT, stack_id)]


def _existing(row: Any) -> ExistingResource:
    return ExistingResource(
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
        prevented=row["prevented"],
        label=row["label"],
    )


def _policy(row: Any) -> DeletionPolicy:
    """The row's policy, or Snapshot if the running operation will set that."""
    will_be_snapshot = row["running_policy"] == DeletionPolicy.SNAPSHOT
    return DeletionPolicy.SNAPSHOT if will_be_snapshot else DeletionPolicy(row["deletion_policy"])


def _replacement(row: Any) -> Replacement | None:
    """The row that may replace this one, if the running operation creates a replacement."""
    if row["operation"] not in (Operation.UPDATE, Operation.REPLACE):
        return None
    if row["replacement_id"] is None:
        return None
    return Replacement(
        ResourceId(row["replacement_id"]),
        row["running_type"],
        frozenset(row["running_requires"] or ()),
        row["running_label"],
    )
