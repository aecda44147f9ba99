"""A traversal as a span of somebody's trace."""

from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection

READ = """
select action, state, traceparent, ended_at is not null as over,
       extract(epoch from clock_timestamp() - started_at)::double precision as seconds
  from traversal where stack_id = $1 and number = $2
"""


@dataclass(frozen=True, slots=True)
class Walk:
    """seconds: since it began."""

    action: str
    state: str
    traceparent: str | None
    over: bool
    seconds: float


async def read_walk(conn: Connection, stack_id: UUID, number: int) -> Walk | None:
    row = await conn.fetchrow(READ, stack_id, number)
    return Walk(**row) if row else None
