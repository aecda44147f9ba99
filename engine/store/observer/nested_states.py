"""Nested stacks as the observer sees them, and the resources that own them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.plan.nested_drift import MemberDrift, NestedDrift, NestedOwner, derive_drift
from engine.store.connection import Connection
from engine.store.observer.drift_rows import DriftedResource, read_drift
from engine.store.observer.external_resources import IS_EXTERNAL, external_names
from engine.store.observer.observation_schedule import read_status
from engine.store.observer.observations import IS_UNDISTURBED
from engine.store.stacks.stack_locks import split_path
from engine.types.nested_observation import NestedStackState
from engine.words import ObservedState, TraversalState

#: What the ID of a stack looks like.
_ID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
#: How many resources a nested stack `n` has, without those that are deleted or were never created.
_MEMBERS = """(
    select count(*)::integer from resource m
     where m.stack_id = n.id and m.replaced_by is null and m.action <> 'INIT'
       and not (m.action = 'DELETE' and m.status = 'COMPLETE'))"""
#: $1, $2: stacks and IDs of resources that own nested stacks. Those that must not be observed now
#: are left out. The second search is for nested stacks whose resource has got another ID.
READ_STATES = f"""
with {external_names("select unnest($1::uuid[])")}
select w.stack_id, w.id, c.updated_at, n.action, n.state,
       {IS_EXTERNAL} as external,
       case when n.id is not null then {_MEMBERS} end as members
  from unnest($1::uuid[], $2::uuid[]) w (stack_id, id)
 cross join lateral (select * from resource
                      where stack_id = w.stack_id and id = w.id offset 0) c
 cross join lateral (select c.*) r
  left join lateral (
       select id, traversal from (
           select id, traversal, 1 as preference from stack
            where parent_id = c.stack_id and parent_resource = c.id and deleted_at is null
           union all
           select id, traversal, 2 from stack
            where id = case when c.physical_id ~ '{_ID}'
                            then c.physical_id::uuid end
              and parent_id = c.stack_id and deleted_at is null
       ) found order by preference, id limit 1 offset 0) s on true
  left join lateral (select s.id, t.action, t.state from traversal t
                      where t.stack_id = s.id and t.number = s.traversal offset 0) n on true
 where {IS_UNDISTURBED}
"""  # noqa: S608 - of constants
#: $1, $2: a stack and the ID of a resource. Its nested stack.
FIND_NESTED = """
select id from stack
 where parent_id = $1 and parent_resource = $2 and deleted_at is null
 order by id limit 1
"""
#: $1: a stack. $2: nested stacks of it, at any level. The resources that own these, up to it.
READ_OWNERS = f"""
with recursive owned (id, parent_id, parent_resource) as (
    select id, parent_id, parent_resource from stack
     where id = any ($2) and id <> $1
       and case when deleted_at is null then true end -- not by an index of all that exist
    union
    select p.id, p.parent_id, p.parent_resource
      from owned o
     cross join lateral (select id, parent_id, parent_resource from stack
                          where id = o.parent_id and id <> $1 offset 0) p
)
select n.parent_id as stack_id, r.id as resource_id, r.name, r.type, r.physical_id,
       n.id as nested_id, p.name as stack_name, p.path, {_MEMBERS} as members
  from owned n
 cross join lateral (select name, path from stack where id = n.parent_id offset 0) p
 cross join lateral (select id, name, type, physical_id from resource
                      where stack_id = n.parent_id and id = n.parent_resource
                        and replaced_by is null offset 0) r
 order by p.path, r.name
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True)
class OwnedState:
    """What the database says about the nested stack of a resource. updated_at: of the resource.
    external: the stack does not own the physical resource. nested: None: it does not exist."""

    updated_at: datetime
    external: bool
    nested: NestedStackState | None


@dataclass(frozen=True, slots=True)
class DriftedOwner:
    """A resource in whose nested stack something differs. path: of its stack."""

    stack_id: UUID
    stack_name: str
    path: str
    resource_id: UUID
    name: str
    type: str
    physical_id: str | None
    drift: NestedDrift


async def read_states(
    conn: Connection, owners: Sequence[tuple[UUID, UUID]]
) -> dict[tuple[UUID, UUID], OwnedState]:
    """By stack and ID of the resource. owners: resources that own nested stacks; those that must
    not be observed now are left out, for example because an operation on them has begun."""
    stacks, ids = [stack for stack, _ in owners], [one for _, one in owners]
    return {
        (row["stack_id"], row["id"]): OwnedState(
            row["updated_at"],
            row["external"],
            None
            if row["action"] is None
            else NestedStackState(row["action"], TraversalState(row["state"]), row["members"]),
        )
        for row in await conn.fetch(READ_STATES, stacks, ids)
    }


async def read_drifted_owners(
    conn: Connection, stack_id: UUID, drifted: Sequence[DriftedResource]
) -> list[DriftedOwner]:
    """The resources of a stack and its nested stacks in whose nested stacks something differs.
    drifted: the drift of these stacks."""
    nested = {one.stack_id for one in drifted} - {stack_id}
    if not nested:
        return []
    rows = await conn.fetch(READ_OWNERS, stack_id, [*nested])
    owners = [
        NestedOwner(
            row["stack_id"], row["resource_id"], row["name"], row["nested_id"],
            len(split_path(row["path"])), row["members"],
        )
        for row in rows
    ]  # fmt: skip
    members = [
        MemberDrift(
            one.stack_id, one.resource_id, one.name, ObservedState(one.state), one.since,
            one.observed_at,
        )
        for one in drifted
    ]  # fmt: skip
    derived = derive_drift(members, owners)
    shown = ("stack_id", "stack_name", "path", "resource_id", "name", "type", "physical_id")
    return [
        DriftedOwner(**{name: row[name] for name in shown}, drift=found)
        for row in rows
        if (found := derived.get((row["stack_id"], row["resource_id"]))) is not None
    ]


async def read_inside(
    conn: Connection, stack_id: UUID, resource_id: UUID
) -> tuple[NestedDrift | None, datetime | None] | None:
    """What differs in the nested stack of a resource (None: nothing), and when it was observed with
    all its nested stacks, as in `ObservationStatus`; None: there is no nested stack."""
    nested_id: UUID | None = await conn.fetchval(FIND_NESTED, stack_id, resource_id)
    if nested_id is None:
        return None
    drifted = await read_drift(conn, nested_id)
    owners = await read_drifted_owners(conn, stack_id, drifted)
    found = [one.drift for one in owners if one.resource_id == resource_id]
    status = await read_status(conn, nested_id)
    return (found[0] if found else None), status.observed_at
