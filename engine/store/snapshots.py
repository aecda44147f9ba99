"""Snapshots of stacks, and what resources save before deletion."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption import Scope, Sealed, members, reveal
from engine.store.secret_rows import UNDECRYPTABLE, show_row
from engine.words import Json

INSERT_SNAPSHOT = """
insert into snapshot (stack_id, id, name, traversal, version) values ($1, $2, $3, $4, $5)
"""
COUNT_SNAPSHOTS = "select count(*) from snapshot where stack_id = $1"
READ_SNAPSHOTS = """
select p.id, p.name, p.version, p.created_at,
       case t.state when 'complete' then 'COMPLETE' when 'running' then 'IN_PROGRESS'
                    when 'ending' then 'IN_PROGRESS' else 'FAILED' end as status,
       t.reason, t.project,
       (select coalesce(jsonb_object_agg(k.name, jsonb_build_object(
               'name', k.name, 'resource_id', k.physical_id, 'type', k.type, 'action', 'SNAPSHOT',
               'status', 'COMPLETE', 'metadata', k.metadata, 'properties', k.properties,
               'resource_data', k.data)), '{}')
          from resource_snapshot k
         where k.stack_id = p.stack_id and k.traversal = p.traversal) as resources
  from snapshot p join traversal t on t.stack_id = p.stack_id and t.number = p.traversal
 where p.stack_id = $1 and ($2::uuid is null or p.id = $2) order by p.created_at, p.id
"""
DELETE_SNAPSHOT = """
with gone as (
    delete from snapshot where stack_id = $1 and id = $2 returning stack_id, traversal
)
delete from resource_snapshot k using gone g
 where k.stack_id = g.stack_id and k.traversal = g.traversal
"""
READ_KEPT = """
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
    resource_data}; complete only when status is COMPLETE. undecryptable: why something of it
    cannot be decrypted, or ""."""

    id: UUID
    name: str
    version: int
    created_at: datetime
    status: str
    reason: str
    resources: Mapping[str, Json]
    undecryptable: str = ""


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """What a resource saved before its deletion (deletion_policy: Snapshot)."""

    name: str
    type: str
    physical_id: str | None
    data: Json
    created_at: datetime


async def insert_snapshot(
    conn: Connection, stack_id: UUID, snapshot_id: UUID, name: str, traversal: int, version: int
) -> None:
    await conn.execute(INSERT_SNAPSHOT, stack_id, snapshot_id, name, traversal, version)


async def count_snapshots(conn: Connection, stack_id: UUID) -> int:
    count: int = await conn.fetchval(COUNT_SNAPSHOTS, stack_id)
    return count


async def read_snapshots(
    conn: Connection, stack_id: UUID, snapshot_id: UUID | None = None
) -> list[SnapshotRecord]:
    rows = await conn.fetch(READ_SNAPSHOTS, stack_id, snapshot_id)
    return [_snapshot(stack_id, row) for row in rows]


def _snapshot(stack_id: UUID, row: Any) -> SnapshotRecord:
    shown, project = dict(row), row["project"]
    del shown["project"]
    whys: list[str] = []
    shown["resources"] = {
        name: _resource(project, stack_id, members(one), whys)
        for name, one in members(row["resources"]).items()
    }
    return SnapshotRecord(**shown, undecryptable=whys[0] if whys else "")


def _resource(
    project: str, stack_id: UUID, kept: Mapping[str, Json], whys: list[str]
) -> dict[str, Json]:
    """whys: takes why something of it cannot be decrypted."""
    shown: dict[str, Json] = {}
    for key, value in kept.items():
        column = f"resource_snapshot.{_COLUMNS.get(key, key)}"
        try:
            shown[key] = reveal(value, Scope(project, stack_id, column))
        except Sealed as error:
            whys.append(str(error))
            shown[key] = {UNDECRYPTABLE: str(error)}
    return shown


async def delete_snapshot(conn: Connection, stack_id: UUID, snapshot_id: UUID) -> None:
    await conn.execute(DELETE_SNAPSHOT, stack_id, snapshot_id)


async def read_kept(conn: Connection, stack_id: UUID) -> list[KeptRecord]:
    return [_kept(stack_id, row) for row in await conn.fetch(READ_KEPT, stack_id)]


def _kept(stack_id: UUID, row: Any) -> KeptRecord:
    shown = show_row(row, row["project"], stack_id, "resource_snapshot")
    del shown["project"]
    return KeptRecord(**shown)
