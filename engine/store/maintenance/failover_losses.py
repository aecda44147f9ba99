"""Finds out what a promoted database lacks, and records it for `headgate admin doctor`.

With asynchronous replication, a replica that is promoted may lack the last commits of the former
primary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from engine.store.connection import Connection
from engine.store.traversals.advance import Claim

#: The number of published commits. It only grows.
POSITION = "select position from outbox_cursor"
#: A node that has ended may be archived: then its traversal is not running.
UNKNOWN = """
select k.nth
  from unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[], $5::uuid[])
       with ordinality k (stack_id, traversal, node, claim, operation_key, nth)
  left join node n on n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.node
  left join traversal t on t.stack_id = k.stack_id and t.number = k.traversal
 where t.number is null
    or n.claim < k.claim
    or n.claim = k.claim and n.operation_key <> k.operation_key
"""
RECORD = """
with expired as (
    delete from failover_loss where detected_at < clock_timestamp() - interval '90 days'
)
insert into failover_loss (process, former_timeline, timeline, commits, operations)
values ($1, $2, $3, $4, $5::text::jsonb)
"""
READ_LOSSES = """
select detected_at, process, former_timeline, timeline, commits, operations
  from failover_loss where detected_at > clock_timestamp() - $1::interval order by id
"""


class StartedOperation(NamedTuple):
    """An operation that this process has called."""

    claim: Claim
    operation_key: UUID
    project: str
    stack: str
    resource: str
    type: str
    operation: str

    @property
    def document(self) -> dict[str, str]:
        names = ("project", "stack", "resource", "type", "operation")
        return {
            **{name: getattr(self, name) for name in names},
            "stack_id": str(self.claim.stack_id),
            "operation_key": str(self.operation_key),
        }


@dataclass(frozen=True, slots=True)
class FailoverLoss:
    """commits: published ones that are missing, at least. operations: called ones that the database
    does not know; see `StartedOperation.document`."""

    detected_at: datetime
    process: str
    former_timeline: int | None
    timeline: int | None
    commits: int
    operations: Sequence[Mapping[str, Any]]


async def read_position(conn: Connection) -> int:
    position: int = await conn.fetchval(POSITION)
    return position


async def find_unknown(
    conn: Connection, operations: Sequence[StartedOperation]
) -> list[StartedOperation]:
    """Those of the operations that the database does not know."""
    if not operations:
        return []
    stacks, traversals, nodes, claims = zip(*(one.claim for one in operations), strict=True)
    keys = [one.operation_key for one in operations]
    rows = await conn.fetch(UNKNOWN, stacks, traversals, nodes, claims, keys)
    return [operations[row["nth"] - 1] for row in rows]


async def record_loss(
    conn: Connection,
    process: str,
    timelines: tuple[int | None, int | None],
    commits: int,
    operations: Sequence[StartedOperation],
) -> None:
    """timelines: of the former primary and of this one."""
    documents = orjson.dumps([one.document for one in operations]).decode()
    await conn.execute(RECORD, process, *timelines, commits, documents)


async def read_losses(conn: Connection, age: timedelta) -> list[FailoverLoss]:
    """The losses of this age, oldest first."""
    return [FailoverLoss(**row) for row in await conn.fetch(READ_LOSSES, age)]
