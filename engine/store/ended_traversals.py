"""Ended traversals of which lifecycle plug-ins have not been notified."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from engine.store.connection import Connection
from engine.words import Json

CLAIM_ENDED = """
with due as (
    select stack_id, number from traversal
     where watched is not null and ended_at is not null
       and (tell_at is null or tell_at <= statement_timestamp())
     order by ended_at limit $2 for update skip locked
)
update traversal t set tell_at = clock_timestamp() + $1
  from due where t.stack_id = due.stack_id and t.number = due.number
returning t.stack_id, t.number, t.state, t.reason, t.began, t.watched as view
"""
TOLD = """
update traversal set watched = null, tell_at = null where stack_id = $1 and number = $2
"""


@dataclass(frozen=True, slots=True)
class EndedRecord:
    """A traversal that has ended. began: its gate had let it pass."""

    stack_id: UUID
    number: int
    state: str
    reason: str
    began: bool
    view: Json


async def claim_ended(conn: Connection, lease: timedelta, limit: int) -> list[EndedRecord]:
    """Take some that nobody else tells of; after the lease they may be taken again."""
    return [EndedRecord(**row) for row in await conn.fetch(CLAIM_ENDED, lease, limit)]


async def mark_notified(conn: Connection, stack_id: UUID, number: int) -> None:
    await conn.execute(TOLD, stack_id, number)
