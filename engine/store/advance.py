"""Settle and claim: the one call a worker lives on. The SQL function is routines/4_advance.sql."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from engine.store.connection import Connection
from engine.words import Json

ADVANCE = "select * from advance($1, $2, $3, $4, $5)"
RENEW = """
update node n set wake_at = clock_timestamp() + $1
  from unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[])
       as k (stack_id, traversal, id, claim)
 where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id
   and n.claim = k.claim and n.state = 'running'
returning n.stack_id, n.traversal, n.id, n.claim
"""
NEXT_DUE = """
select extract(epoch from min(wake_at) - clock_timestamp())::double precision as seconds
  from traversal where wake_at is not null
"""


class Claim(NamedTuple):
    """Which node a worker has, and under which fencing number."""

    stack_id: UUID
    traversal: int
    node: int
    claim: int


@dataclass(slots=True)
class Work:
    """A node a worker is to carry on with, and all it needs for that.

    row_type .. replaced_by: the resource's row; all None when there is no row.
    inputs: name -> [reference, attributes] of the resources its properties read.
    pace: of its traversal. confirmed: the answer to what its operation asked last. patched:
    properties that an answer changed. answers: data that answers of its hooks brought, by point.
    credential: what the traversal acts with in the cloud, sealed. signals: data sent to the
    resource, or to the one it waits for, whose type is awaited. traceparent: of its traversal.
    path: of its stack, when that is inside another.
    traversal_state: of its traversal, which may have been ended early.
    metadata_now, update_policy_now: of the definition, resolved; set when the node is prepared.
    started: its operation has begun (and progress may say how far it has come).
    """

    key: Claim
    project: str
    stack_name: str
    resource_id: UUID
    replacement_id: UUID | None
    name: str
    type: str
    operation: str
    direction: str
    phase: str
    definition: Mapping[str, Json] | None
    rules: Json
    passed: list[str]
    operation_key: UUID | None
    progress: Json
    attempts: int
    started: bool
    dependents: list[str] | None
    row_type: str | None
    action: str | None
    status: str | None
    physical_id: str | None
    reference: str | None
    properties: Mapping[str, Json] | None
    shown: Mapping[str, Json] | None
    attributes: Mapping[str, Json] | None
    data: Mapping[str, Json] | None
    metadata: Json
    digest: str | None
    broken: bool | None
    protected: bool | None
    deletion_policy: str | None
    replaced_by: UUID | None
    inputs: Mapping[str, list[Json]] | None
    now: datetime
    pace: str | None = None
    confirmed: Json = None
    patched: Mapping[str, Json] | None = None
    answers: Mapping[str, Json] | None = None
    credential: bytes | None = field(default=None, repr=False)
    signals: list[Json] | None = field(default=None, repr=False)
    traceparent: str | None = None
    path: str = ""
    traversal_state: str = "running"
    awaited: str | None = None
    metadata_now: Json = None
    update_policy_now: Json = None

    @property
    def place(self) -> str:
        """Of its resource, from the outermost stack: ``web/db``. Of a gate: of its stack."""
        return "/".join(filter(None, (self.path, self.name)))


class End(NamedTuple):
    """A traversal of which nothing is left to do, or whose time is over."""

    stack_id: UUID
    traversal: int


@dataclass(frozen=True, slots=True)
class Advanced:
    """turn: the project that was served last; None: nothing was due."""

    work: list[Work]
    ends: list[End]
    turn: str | None


async def advance(
    conn: Connection,
    worker: str,
    lease: timedelta,
    want: int,
    steps: Sequence[Json],
    after: str = "",
) -> Advanced:
    """Apply `steps` and claim up to `want` nodes, in one transaction.

    after: the project that was served last; the others come first now. steps: what
    engine/work/steps.py writes. A step of a node that somebody else has claimed since is left out
    without a word.
    """
    rows = await conn.fetch(ADVANCE, worker, lease, want, steps, after)
    return Advanced(
        [_work(row) for row in rows if row[0] == "node"],
        [End(row[1], row[4]) for row in rows if row[0] == "end"],
        next((row[2] for row in rows if row[0] == "turn"), None),
    )


def _work(row: asyncpg.Record) -> Work:
    stack_id, project, stack_name, traversal, node, claim, *rest = list(row)[1:]
    return Work(Claim(stack_id, traversal, node, claim), project, stack_name, *rest)


async def renew(conn: Connection, lease: timedelta, claims: Sequence[Claim]) -> set[Claim]:
    """Lengthen the leases; return the claims that still hold."""
    if not claims:
        return set()
    stacks, traversals, nodes, numbers = zip(*claims, strict=True)
    rows = await conn.fetch(RENEW, lease, stacks, traversals, nodes, numbers)
    return {Claim(*row) for row in rows}


async def next_due(conn: Connection) -> float | None:
    """Seconds until a worker should look, negative when it is late; None: nothing is planned."""
    seconds: float | None = await conn.fetchval(NEXT_DUE)
    return seconds
