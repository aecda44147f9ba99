"""Snapshots of stacks, and the data that resources save before their deletion."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import UNDECRYPTABLE, display_record
from engine.store.encryption.secret_values import (
    DecryptionFailed,
    Scope,
    decrypt,
    encrypted_members,
)
from engine.words import STATUS_OF, Json, Status, TraversalState

INSERT_SNAPSHOT = """
insert into snapshot (stack_id, id, name, traversal, version) values ($1, $2, $3, $4, $5)
"""
#: $1: the nested stack. $3, $4: the parent stack and its traversal, which takes a snapshot.
INSERT_NESTED_SNAPSHOT = """
insert into snapshot (stack_id, id, name, traversal, version, root_id)
select $1, $2, p.name, $5, $6, coalesce(p.root_id, p.id)
  from snapshot p where p.stack_id = $3 and p.traversal = $4
"""
COUNT_SNAPSHOTS = "select count(*) from snapshot where stack_id = $1 and root_id is null"
READ_SNAPSHOTS = """
select p.id, p.name, p.version, p.created_at,
       t.state, t.reason, t.project,
       (select coalesce(jsonb_object_agg(k.name, jsonb_build_object(
               'name', k.name, 'resource_id', k.physical_id, 'type', k.type, 'action', 'SNAPSHOT',
               'status', 'COMPLETE', 'metadata', k.metadata, 'properties', k.properties,
               'resource_data', k.data)), '{}')
          from resource_snapshot k
         where k.stack_id = p.stack_id and k.traversal = p.traversal) as resources,
       (select coalesce(jsonb_object_agg(k.name, k.overrides), '{}')
          from resource_snapshot k
         where k.stack_id = p.stack_id and k.traversal = p.traversal
           and jsonb_typeof(k.overrides) = 'array') as overrides
  from snapshot p join traversal t on t.stack_id = p.stack_id and t.number = p.traversal
 where p.stack_id = $1 and ($2::uuid is null or p.id = $2) and (p.root_id is not null) = $3
 order by p.created_at, p.id
"""
DELETE_SNAPSHOT = """
with root as (
    delete from snapshot where stack_id = $1 and id = $2 returning stack_id, traversal
), nested as (
    delete from snapshot where root_id = $2 returning stack_id, traversal
), deleted as (
    select stack_id, traversal from root union all select stack_id, traversal from nested
)
delete from resource_snapshot k using deleted g
 where k.stack_id = g.stack_id and k.traversal = g.traversal
   and k.stack_id = any (array(select stack_id from deleted))
   and k.traversal = any (array(select traversal from deleted))
"""
READ_SAVED = """
select k.name, k.type, k.physical_id, k.data, k.created_at, t.project
  from resource_snapshot k
  join traversal t on t.stack_id = k.stack_id and t.number = k.traversal
 where k.stack_id = $1 and t.action <> 'SNAPSHOT'
 order by k.created_at, k.name
"""

#: Columns by their names in a snapshot, where these differ.
_COLUMNS = {"resource_data": "data"}


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """resources: name -> {name, resource_id, type, action, status, metadata, properties,
    resource_data}; complete only if status is COMPLETE. overrides: adopted values by resource name
    (engine/plan/overrides.py). undecryptable: the reason if a value
    cannot be decrypted, or ""."""

    id: UUID
    name: str
    version: int
    created_at: datetime
    status: str
    reason: str
    resources: Mapping[str, Json]
    overrides: Mapping[str, Json]
    undecryptable: str = ""

    def saved_data(self, names: Collection[str]) -> dict[str, Json]:
        """The data of the resources with these names that saved any."""
        return {
            name: one["resource_data"]
            for name, one in self.resources.items()
            if one["resource_data"] and name in names
        }

    def restored_overrides(
        self, names: Collection[str], current: Collection[str]
    ) -> dict[str, Json]:
        """The adopted values that a restore brings back, of the resources with these names; none
        for those that have adopted a value since. current: resources with adopted values."""
        changed = {*self.overrides, *current} & {*names}
        return {name: self.overrides.get(name, []) for name in sorted(changed)}


@dataclass(frozen=True, slots=True)
class SavedResource:
    """The data that a resource saved before its deletion (deletion_policy: Snapshot)."""

    name: str
    type: str
    physical_id: str | None
    data: Json
    created_at: datetime


async def insert_snapshot(
    conn: Connection, stack_id: UUID, snapshot_id: UUID, name: str, traversal: int, version: int
) -> None:
    await conn.execute(INSERT_SNAPSHOT, stack_id, snapshot_id, name, traversal, version)


async def insert_nested_snapshot(
    conn: Connection,
    stack_id: UUID,
    snapshot_id: UUID,
    parent: tuple[UUID, int],
    traversal: int,
    version: int,
) -> None:
    """A snapshot of a nested stack, as a part of that of its parent. parent: the parent stack and
    its traversal."""
    await conn.execute(INSERT_NESTED_SNAPSHOT, stack_id, snapshot_id, *parent, traversal, version)


async def count_snapshots(conn: Connection, stack_id: UUID) -> int:
    count: int = await conn.fetchval(COUNT_SNAPSHOTS, stack_id)
    return count


async def read_snapshots(
    conn: Connection, stack_id: UUID, snapshot_id: UUID | None = None, *, nested: bool = False
) -> list[SnapshotRecord]:
    """nested: those that belong to a snapshot of the root stack; otherwise, the others."""
    rows = await conn.fetch(READ_SNAPSHOTS, stack_id, snapshot_id, nested)
    return [_snapshot(stack_id, row) for row in rows]


def _snapshot(stack_id: UUID, row: Any) -> SnapshotRecord:
    shown, project = dict(row), row["project"]
    del shown["project"]
    status = STATUS_OF[TraversalState(shown.pop("state"))]
    shown["status"] = str(Status.FAILED if status is Status.STOPPED else status)  # as in Heat
    reasons: list[str] = []
    shown["resources"] = {
        name: _resource(project, stack_id, encrypted_members(one), reasons)
        for name, one in encrypted_members(row["resources"]).items()
    }
    return SnapshotRecord(**shown, undecryptable=reasons[0] if reasons else "")


def _resource(
    project: str, stack_id: UUID, kept: Mapping[str, Json], reasons: list[str]
) -> dict[str, Json]:
    """reasons: gets the reason for each value that cannot be decrypted."""
    shown: dict[str, Json] = {}
    for key, value in kept.items():
        column = f"resource_snapshot.{_COLUMNS.get(key, key)}"
        try:
            shown[key] = decrypt(value, Scope(project, stack_id, column))
        except DecryptionFailed as error:
            reasons.append(str(error))
            shown[key] = {UNDECRYPTABLE: str(error)}
    return shown


async def delete_snapshot(conn: Connection, stack_id: UUID, snapshot_id: UUID) -> None:
    """With those of the nested stacks that belong to it."""
    await conn.execute(DELETE_SNAPSHOT, stack_id, snapshot_id)


async def read_saved_resources(conn: Connection, stack_id: UUID) -> list[SavedResource]:
    rows = await conn.fetch(READ_SAVED, stack_id)
    return [display_record(SavedResource, row, stack_id, "resource_snapshot") for row in rows]
