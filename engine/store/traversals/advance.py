"""Applies the transitions of nodes and claims due nodes (routines/5_advance.sql)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_inputs
from engine.store.encryption.secret_values import (
    DecryptionFailed,
    EncryptedDocument,
    Scope,
    decrypt,
)
from engine.words import Json

ADVANCE = """
select a.*, case when a.kind in ('node', 'later') then stack_region(a.stack_id) end as region
  from advance($1, $2, $3, $4, $5, $6, $7, $8, $9) a
"""
RENEW = """
update node n set wake_at = clock_timestamp() + $1
  from unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[])
       as k (stack_id, traversal, id, claim)
 where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id
   and n.claim = k.claim and n.state = 'running'
returning n.stack_id, n.traversal, n.id, n.claim, n.cancelled
"""
#: For processes that end in order: the end of these leases does not count as a lost worker.
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
NEXT_DUE_OF_LABELS = "select labelled_work_due_in($1) as seconds"

#: The labels of a worker that executes nodes without a label only.
UNLABELLED = ("",)


#: Approximate limit of the documents of one batch in bytes; one node may exceed it. PostgreSQL
#: rejects jsonb arrays of more than 256 MB, and needs seconds for a tenth of that.
BATCH_BYTES = 16_000_000
UNREAD = -1
#: Documents of a node with more bytes than this are not read. In SQL: `too_large()`.
TOO_LARGE = 100_000_000
#: A node that has lost its worker this often in a row fails. In SQL: `max_expired_leases()`.
MAX_EXPIRED_LEASES = 3


def is_last_try(expired_leases: int) -> bool:
    """Return whether a node has one try left. It is claimed alone."""
    return expired_leases == MAX_EXPIRED_LEASES - 1


def is_given_up(expired_leases: int) -> bool:
    """Return whether a node has no try left."""
    return expired_leases >= MAX_EXPIRED_LEASES


class Claim(NamedTuple):
    """A claimed node, with the fencing number of the claim."""

    stack_id: UUID
    traversal: int
    node: int
    claim: int


@dataclass(slots=True)
class Work:
    """A claimed node, with its inputs.

    row_type .. replaced_by: the resource's row; all None if there is no row.
    inputs: name -> [reference, attributes, secret] of the resources that its properties read.
    secret: names of secret attributes (engine/hot/expressions/member_attributes.py).
    step_mode: of its traversal. confirmation: the answer to the last hook of its operation.
    patched: properties that an answer changed. answers: data of the answers to its hooks, by point.
    credential: of the traversal, encrypted. signals: data sent to the resource, or to the one whose
    signals it waits for, which has signal_resource_type. traceparent: of its traversal.
    path: of its stack, if that is a nested stack.
    traversal_state: of its traversal, which may have ended early. cancelled: its operation is to
    end early.
    lifecycle: of the definition applied last: `prevent_destroy`, digests of the values of
    `replace_when`, and adopted values (engine/plan/overrides.py). metadata_now, update_policy_now,
    lifecycle_now: of the definition, resolved; set when the node is prepared.
    started: its operation has started; progress may have its progress.
    undecryptable: the reason if a value cannot be decrypted; the node fails with it.
    expired_leases: number of previous consecutive claims whose lease expired. restarts: how often
    its operation was called again because its process had ended; restarted: by this claim.
    size: approximate bytes of its documents, with those that it reads; 0: they are small.
    region: of its stack.
    run_after: the node that a later node of a run waits for; None: the node is claimed.
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
    breakpoints_hit: list[str]
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
    masked_properties: Mapping[str, Json] | None
    attributes: Mapping[str, Json] | None
    data: Mapping[str, Json] | None
    metadata: Json
    digest: str | None
    tainted: bool | None
    protected: bool | None
    deletion_policy: str | None
    replaced_by: UUID | None
    inputs: Mapping[str, list[Json]] | None
    now: datetime
    step_mode: str | None = None
    confirmation: Json = None
    patched: Mapping[str, Json] | None = None
    answers: Mapping[str, Json] | None = None
    credential: bytes | None = field(default=None, repr=False)
    signals: list[Json] | None = field(default=None, repr=False)
    traceparent: str | None = None
    path: str = ""
    traversal_state: str = "running"
    signal_resource_type: str | None = None
    secret_attributes: list[str] | None = None
    expired_leases: int = 0
    restarts: int = 0
    restarted: bool = False
    size: int = 0
    run_after: int | None = None
    lifecycle: Mapping[str, Json] | None = None
    cancelled: bool = False
    region: str | None = ""
    metadata_now: Json = None
    update_policy_now: Json = None
    lifecycle_now: Mapping[str, Json] | None = None
    undecryptable: str = ""

    @property
    def place(self) -> str:
        """The path of its resource from the root stack: ``web/db``; of a gate: of its stack."""
        return "/".join(filter(None, (self.path, self.name)))


#: Not columns of `advance`.
_SET_LATER = frozenset({"metadata_now", "update_policy_now", "lifecycle_now", "undecryptable"})
#: The fields of `Work` that are columns of `advance`, after its key.
WORK_COLUMNS = tuple(one.name for one in fields(Work) if one.name not in {"key", *_SET_LATER})


class TraversalToEnd(NamedTuple):
    """A traversal without active nodes, or whose time limit is reached."""

    stack_id: UUID
    traversal: int


@dataclass(frozen=True, slots=True)
class RefusedStep:
    """A step that was not written; the claim remains valid. It would open a hook, and its traversal
    has ended; or it was decided for another step mode.

    traversal_state, reason, step_mode: of its traversal.
    """

    key: Claim
    traversal_state: str
    reason: str
    step_mode: str | None


@dataclass(frozen=True, slots=True)
class AdvanceResult:
    """turn: the project that was served last; None: all due work was claimed or is locked. unread:
    claimed nodes whose documents were not read. idle: there is no node and no traversal to end;
    due_in: then, seconds until work is due, negative if it is overdue; None: no work is planned.
    later: nodes that may be executed with claimed ones, in runs (engine/work/nodes/runs.py). alone:
    first nodes of runs whose later nodes were not written.
    """

    work: list[Work]
    ends: list[TraversalToEnd]
    turn: str | None
    unread: Sequence[Work] = ()
    refused: Sequence[RefusedStep] = ()
    idle: bool = False
    due_in: float | None = None
    later: Sequence[Work] = ()
    alone: frozenset[Claim] = frozenset()


async def advance(
    conn: Connection,
    worker: str,
    lease: timedelta,
    want: int,
    steps: Sequence[Json],
    after: str = "",
    max_bytes: int = BATCH_BYTES,
    *,
    suspects: bool = True,
    run_types: Sequence[str] = (),
    labels: Sequence[str] = UNLABELLED,
) -> AdvanceResult:
    """Apply `steps` and claim up to `want` nodes, in one transaction.

    after: the project that was served last; the others come first. max_bytes: approximate limit of
    the documents of claimed nodes; `UNREAD`: they are not read. suspects: whether to claim nodes
    whose last worker ended while it had them. run_types: types whose operations only compute, for
    runs. labels: claim nodes that have one of them; "": nodes without a label. steps: see
    engine/work/nodes/transition_encoder.py. A step of a node that another worker has claimed is
    ignored; a refused one is returned (`RefusedStep`).
    """
    rows = await conn.fetch(
        ADVANCE, worker, lease, want, steps, after, max_bytes, suspects, run_types, labels
    )
    getters = _getters(tuple(rows[0].keys()))
    return AdvanceResult(
        [_work(row, getters) for row in rows if row[0] == "node"],
        [TraversalToEnd(row["stack_id"], row["traversal"]) for row in rows if row[0] == "end"],
        next((row["project"] for row in rows if row[0] == "turn"), None),
        [_work(row, getters) for row in rows if row[0] == "unread"],
        [
            RefusedStep(
                Claim(*getters.claim(list(row))),
                row["traversal_state"],
                row["reason"],
                row["step_mode"],
            )
            for row in rows
            if row[0] == "refused"
        ],
        rows[-1][0] == "idle",
        rows[-1]["due_in"],
        [_work(row, getters) for row in rows if row[0] == "later"],
        frozenset(Claim(*getters.claim(list(row))) for row in rows if row[0] == "alone"),
    )


class _Getters(NamedTuple):
    """Functions that get the values of a claim, and of the other fields of `Work`, from a row."""

    claim: Callable[[Sequence[Any]], tuple[Any, ...]]
    work: Callable[[Sequence[Any]], tuple[Any, ...]]


@cache
def _getters(columns: tuple[str, ...]) -> _Getters:
    """Cached, because looking up the names takes longer than creating `Work`."""
    index = {name: number for number, name in enumerate(columns)}
    return _Getters(
        itemgetter(*(index[name] for name in Claim._fields)),
        itemgetter(*(index[name] for name in WORK_COLUMNS)),
    )


def _work(row: asyncpg.Record, getters: _Getters) -> Work:
    values = list(row)
    return _readable(Work(Claim(*getters.claim(values)), *getters.work(values)))


def readable_work(*args: Any, **kwargs: Any) -> Work:
    """Work with decrypted values, or with `undecryptable` set."""
    return _readable(Work(*args, **kwargs))


def _readable(work: Work) -> Work:
    """Values of the resource's row that cannot be decrypted stay encrypted, so that they can be
    written back; those of the node become None."""
    project, stack_id = work.project, work.key.stack_id
    for table, names, left in _ENCRYPTED:
        for name in names:
            value = getattr(work, name)
            if not isinstance(value, EncryptedDocument):
                continue
            try:
                setattr(work, name, decrypt(value, Scope(project, stack_id, f"{table}.{name}")))
            except DecryptionFailed as error:
                work.undecryptable = work.undecryptable or str(error)
                if not left:
                    setattr(work, name, None)
    try:
        work.inputs = decrypt_inputs(work.inputs, project, stack_id)
    except DecryptionFailed as error:
        work.undecryptable = work.undecryptable or str(error)
        work.inputs = {}
    return work


#: Encrypted columns of a node and of its resource, and whether they stay if undecryptable.
_ENCRYPTED = (
    ("node", ("definition", "progress", "patched"), False),
    ("resource", ("reference", "properties", "attributes", "data", "metadata", "lifecycle"), True),
)


async def renew(conn: Connection, lease: timedelta, claims: Sequence[Claim]) -> dict[Claim, bool]:
    """Extend the leases; returns the claims that are still valid, and whether their operations are
    cancelled."""
    if not claims:
        return {}
    stacks, traversals, nodes, numbers = zip(*claims, strict=True)
    rows = await conn.fetch(RENEW, lease, stacks, traversals, nodes, numbers)
    return {Claim(*row[:4]): row["cancelled"] for row in rows}


async def release(conn: Connection, claims: Sequence[Claim]) -> None:
    """Release nodes before their leases end."""
    if claims:
        stacks, traversals, nodes, numbers = zip(*claims, strict=True)
        await conn.execute(RELEASE, stacks, traversals, nodes, numbers)


async def next_due(conn: Connection, labels: Sequence[str] = UNLABELLED) -> float | None:
    """Seconds until work for these labels is due, negative if it is overdue; None: no work is
    planned."""
    seconds: float | None
    if tuple(labels) == UNLABELLED:
        seconds = await conn.fetchval(NEXT_DUE)
    else:
        seconds = await conn.fetchval(NEXT_DUE_OF_LABELS, labels)
    return seconds
