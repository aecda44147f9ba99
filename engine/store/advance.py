"""Settle and claim: the one call a worker lives on. The SQL function is routines/5_advance.sql."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from engine.store.connection import Connection
from engine.store.encryption import Scope, Sealed, SealedDocument, reveal
from engine.store.secret_rows import reveal_inputs
from engine.words import Json

ADVANCE = "select * from advance($1, $2, $3, $4, $5, $6, $7)"
RENEW = """
update node n set wake_at = clock_timestamp() + $1
  from unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[])
       as k (stack_id, traversal, id, claim)
 where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id
   and n.claim = k.claim and n.state = 'running'
returning n.stack_id, n.traversal, n.id, n.claim
"""
#: Of nodes whose process ends in order: the end of their lease does not count against them.
RELEASE = """
update node n set worker = null
  from unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[])
       as k (stack_id, traversal, id, claim)
 where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id
   and n.claim = k.claim and n.state = 'running'
"""
NEXT_DUE = """
select extract(epoch from min(wake_at) - clock_timestamp())::double precision as seconds
  from traversal where wake_at is not null
"""


#: Bytes of one batch, unless it is a single node. PostgreSQL ends a statement with a jsonb array of
#: more than 256 MB, and takes seconds for a tenth of that.
BATCH_BYTES = 16_000_000
UNREAD = -1
#: Bytes of the documents of one node that are not read at all; the routine has the same number.
TOO_LARGE = 100_000_000
#: A node that has lost its worker so often in a row is failed.
MOST_LOST = 3


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
    inputs: name -> [reference, attributes, secret] of the resources its properties read.
    secret: names of what is secret of the resource (engine/hot/expressions/member_attributes.py).
    pace: of its traversal. confirmed: the answer to what its operation asked last. patched:
    properties that an answer changed. answers: data that answers of its hooks brought, by point.
    credential: what the traversal acts with in the cloud, sealed. signals: data sent to the
    resource, or to the one it waits for, whose type is awaited. traceparent: of its traversal.
    path: of its stack, when that is inside another.
    traversal_state: of its traversal, which may have been ended early.
    metadata_now, update_policy_now: of the definition, resolved; set when the node is prepared.
    started: its operation has begun (and progress may say how far it has come).
    undecryptable: why an encrypted value of it cannot be decrypted; its node fails with that.
    lost: claims in a row before this one that ended because the lease ran out. restarts: how often
    its operation was called again after its process had ended; restarted: it is so with this claim.
    size: about how many bytes the documents have, with those that it reads; 0: it is small.
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
    secret: list[str] | None = None
    lost: int = 0
    restarts: int = 0
    restarted: bool = False
    size: int = 0
    metadata_now: Json = None
    update_policy_now: Json = None
    undecryptable: str = ""

    @property
    def place(self) -> str:
        """Of its resource, from the outermost stack: ``web/db``. Of a gate: of its stack."""
        return "/".join(filter(None, (self.path, self.name)))


#: Set here, and not by the store.
_SET_LATER = frozenset({"metadata_now", "update_policy_now", "undecryptable"})
#: The fields of `Work` that are columns of `advance`, after its key.
WORK_COLUMNS = tuple(one.name for one in fields(Work) if one.name not in {"key", *_SET_LATER})


class End(NamedTuple):
    """A traversal of which nothing is left to do, or whose time is over."""

    stack_id: UUID
    traversal: int


@dataclass(frozen=True, slots=True)
class RefusedStep:
    """A step of which nothing is written: it would open a hook, and its traversal has ended. The
    claim still holds. traversal_state: why it ended, in one word; reason: in a sentence."""

    key: Claim
    traversal_state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Advanced:
    """turn: the project that was served last; None: nothing was due. unread: nodes that are
    claimed, and of which no document was read."""

    work: list[Work]
    ends: list[End]
    turn: str | None
    unread: Sequence[Work] = ()
    refused: Sequence[RefusedStep] = ()


async def advance(
    conn: Connection,
    worker: str,
    lease: timedelta,
    want: int,
    steps: Sequence[Json],
    after: str = "",
    most_bytes: int = BATCH_BYTES,
    *,
    suspects: bool = True,
) -> Advanced:
    """Apply `steps` and claim up to `want` nodes, in one transaction.

    after: the project that was served last; the others come first now. most_bytes: about how much
    the documents of claimed nodes may be together; `UNREAD`: they are not read. suspects: whether
    nodes whose last worker ended while it had them are claimed as well. steps: what
    engine/work/transition_documents.py writes. A step of a node that another worker has claimed
    since is left out without a word; one that would open a hook in a traversal that has ended
    is refused.
    """
    rows = await conn.fetch(ADVANCE, worker, lease, want, steps, after, most_bytes, suspects)
    if not rows:
        return Advanced([], [], None)
    places = _places(tuple(rows[0].keys()))
    return Advanced(
        [_work(row, places) for row in rows if row[0] == "node"],
        [End(row["stack_id"], row["traversal"]) for row in rows if row[0] == "end"],
        next((row["project"] for row in rows if row[0] == "turn"), None),
        [_work(row, places) for row in rows if row[0] == "unread"],
        [
            RefusedStep(Claim(*places.claim(list(row))), row["traversal_state"], row["reason"])
            for row in rows
            if row[0] == "refused"
        ],
    )


class _Places(NamedTuple):
    """What takes the values of a claim, and of the other fields of `Work`, from a row."""

    claim: Callable[[Sequence[Any]], tuple[Any, ...]]
    work: Callable[[Sequence[Any]], tuple[Any, ...]]


@cache
def _places(columns: tuple[str, ...]) -> _Places:
    """Names are looked up once for all rows: that takes longer than making `Work`."""
    at = {name: place for place, name in enumerate(columns)}
    return _Places(
        itemgetter(*(at[name] for name in Claim._fields)),
        itemgetter(*(at[name] for name in WORK_COLUMNS)),
    )


def _work(row: asyncpg.Record, places: _Places) -> Work:
    values = list(row)
    return _readable(Work(Claim(*places.claim(values)), *places.work(values)))


def readable_work(*args: Any, **kwargs: Any) -> Work:
    """Work with its encrypted values in the clear, or `undecryptable` set."""
    return _readable(Work(*args, **kwargs))


def _readable(work: Work) -> Work:
    """What cannot be decrypted of the resource's row stays as it is, to be written back as it is;
    nothing is left of the node's own."""
    project, stack_id = work.project, work.key.stack_id
    for table, names, left in _ENCRYPTED:
        for name in names:
            value = getattr(work, name)
            if not isinstance(value, SealedDocument):
                continue
            try:
                setattr(work, name, reveal(value, Scope(project, stack_id, f"{table}.{name}")))
            except Sealed as error:
                work.undecryptable = work.undecryptable or str(error)
                if not left:
                    setattr(work, name, None)
    try:
        work.inputs = reveal_inputs(work.inputs, project, stack_id)
    except Sealed as error:
        work.undecryptable = work.undecryptable or str(error)
        work.inputs = {}
    return work


#: Encrypted columns of a node and of its resource, and whether they stay if undecryptable.
_ENCRYPTED = (
    ("node", ("definition", "progress", "patched"), False),
    ("resource", ("reference", "properties", "attributes", "data", "metadata"), True),
)


async def renew(conn: Connection, lease: timedelta, claims: Sequence[Claim]) -> set[Claim]:
    """Lengthen the leases; return the claims that still hold."""
    if not claims:
        return set()
    stacks, traversals, nodes, numbers = zip(*claims, strict=True)
    rows = await conn.fetch(RENEW, lease, stacks, traversals, nodes, numbers)
    return {Claim(*row) for row in rows}


async def release(conn: Connection, claims: Sequence[Claim]) -> None:
    """Give nodes back before their lease ends."""
    if claims:
        stacks, traversals, nodes, numbers = zip(*claims, strict=True)
        await conn.execute(RELEASE, stacks, traversals, nodes, numbers)


async def next_due(conn: Connection) -> float | None:
    """Seconds until a worker should look, negative when it is late; None: nothing is planned."""
    seconds: float | None = await conn.fetchval(NEXT_DUE)
    return seconds
