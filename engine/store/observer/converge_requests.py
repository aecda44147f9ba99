"""Converges with several rounds: which round a stack is in, and what the next one needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from engine.plan.drift import ConvergeRound
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Scope
from engine.words import ConvergeState, Json

#: Makes the loop look for work.
CHANNEL = "headgate_converge"
#: Another converge of the stack replaces the record of the last one.
BEGIN = """
with begun as (
    insert into converge_request (stack_id, traversal, round, rounds, state, selected, request,
                                  requested_by, requested_by_id, encrypted, trust)
    values ($1, $2, $3, $4, $11, $5, $6, $7, $8, $9, $10)
    on conflict (stack_id) do update
       set traversal = excluded.traversal, round = excluded.round, rounds = excluded.rounds,
           state = excluded.state, reason = '', selected = excluded.selected,
           request = excluded.request, requested_by = excluded.requested_by,
           requested_by_id = excluded.requested_by_id, encrypted = excluded.encrypted,
           trust = excluded.trust, ended_at = null
    returning stack_id
)
select pg_notify('headgate_converge', '') from begun
"""
#: With whether the traversal is the current one of its stack, and the state that it has.
_COLUMNS = """
select c.stack_id, s.project, s.name, c.traversal, c.round, c.rounds, c.state, c.selected,
       c.request, c.requested_by, c.requested_by_id, c.encrypted,
       s.deleted_at is null and s.traversal = c.traversal as current,
       t.state as traversal_state, t.ended_at as traversal_ended_at
  from converge_request c
  join stack s on s.id = c.stack_id
  left join traversal t on t.stack_id = c.stack_id and t.number = c.traversal
"""
#: The next requests that have not ended. $1: after this stack. $2: how many.
READ_PENDING = f"""{_COLUMNS}
 where c.state in ('running', 'observing') and c.stack_id > $1
 order by c.stack_id limit $2
"""
#: One that has not ended, locked. The caller has locked the stack.
LOCK = f"""{_COLUMNS}
 where c.state in ('running', 'observing') and c.stack_id = $1
   for no key update of c
"""
IS_PENDING = """
select exists (select from converge_request
                where stack_id = $1 and state in ('running', 'observing'))
"""
OBSERVE = "update converge_request set state = 'observing' where stack_id = $1"
END = """
update converge_request
   set state = $2, reason = $3, encrypted = null, trust = null, ended_at = clock_timestamp()
 where stack_id = $1
"""
READ_STATUS = """
select c.round, c.rounds, c.state, c.reason
  from converge_request c join stack s on s.id = c.stack_id and s.traversal = c.traversal
 where c.stack_id = $1
"""


@dataclass(frozen=True, slots=True)
class PendingConverge:
    """A converge that has not ended. traversal: of its current round; its state, and when it ended.
    current: no other change has begun, and the stack exists. selected: names of resources; None:
    all."""

    stack_id: UUID
    project: str
    name: str
    traversal: int
    number: ConvergeRound
    state: ConvergeState
    selected: Sequence[str] | None
    request: Json
    requested_by: Principal
    current: bool
    traversal_state: str | None
    traversal_ended_at: datetime | None
    encrypted: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConvergeStatus:
    """The last converge of a stack."""

    number: ConvergeRound
    state: ConvergeState
    reason: str


def scope(project: str, stack_id: UUID) -> Scope:
    """The scope of the encryption of the credential."""
    return Scope(project, stack_id, "converge_request.encrypted")


async def begin(
    conn: Connection,
    stack_id: UUID,
    traversal: int,
    number: ConvergeRound,
    *,
    selected: Sequence[str] | None,
    request: Json,
    requested_by: Principal,
    encrypted: bytes | None,
    trust: UUID | None,
) -> None:
    """Record the round that a traversal is. The caller has locked the stack."""
    await conn.execute(
        BEGIN, stack_id, traversal, number.round, number.rounds, selected, request,
        requested_by.name, requested_by.id, encrypted, trust, ConvergeState.RUNNING,
    )  # fmt: skip


async def read_pending(conn: Connection, after: UUID, limit: int) -> list[PendingConverge]:
    return [_pending(row) for row in await conn.fetch(READ_PENDING, after, limit)]


async def lock_pending(conn: Connection, stack_id: UUID) -> PendingConverge | None:
    """The converge of a stack that the caller has locked; None: it has ended."""
    row = await conn.fetchrow(LOCK, stack_id)
    return None if row is None else _pending(row)


def _pending(row: Json) -> PendingConverge:
    return PendingConverge(
        stack_id=row["stack_id"],
        project=row["project"],
        name=row["name"],
        traversal=row["traversal"],
        number=ConvergeRound(row["round"], row["rounds"]),
        state=ConvergeState(row["state"]),
        selected=row["selected"],
        request=row["request"],
        requested_by=Principal(row["requested_by_id"], row["requested_by"]),
        current=row["current"],
        traversal_state=row["traversal_state"],
        traversal_ended_at=row["traversal_ended_at"],
        encrypted=row["encrypted"],
    )


async def is_pending(conn: Connection, stack_id: UUID) -> bool:
    """Whether a converge with several rounds of the stack has not ended."""
    return bool(await conn.fetchval(IS_PENDING, stack_id))


async def mark_observing(conn: Connection, stack_id: UUID) -> None:
    """The update of the round is complete. The caller has locked the converge."""
    await conn.execute(OBSERVE, stack_id)


async def end(conn: Connection, stack_id: UUID, state: ConvergeState, reason: str) -> None:
    """The caller has locked the converge."""
    await conn.execute(END, stack_id, state, reason)


async def read_status(conn: Connection, stack_id: UUID) -> ConvergeStatus | None:
    """None: the last change of the stack was no converge with several rounds."""
    row = await conn.fetchrow(READ_STATUS, stack_id)
    if row is None:
        return None
    number = ConvergeRound(row["round"], row["rounds"])
    return ConvergeStatus(number, ConvergeState(row["state"]), row["reason"])
