"""Who was asked about a hook, and whether that arrived."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from channels.store.records import NoticeRecord
from engine.store.database import Connection

READ_NOTICES = """
select d.hook_id, d.subscription_id, s.channel, s.target, d.state, d.attempts, d.code, d.error,
       d.next_at, d.settled_at
  from unnest($1::uuid[], $2::uuid[]) h (stack_id, id)
  join delivery d on d.stack_id = h.stack_id and d.hook_id = h.id
  join subscription s on s.id = d.subscription_id
 order by d.created_at, d.id
"""


async def notices_of(
    conn: Connection, hooks: Sequence[tuple[UUID, UUID]]
) -> dict[UUID, list[NoticeRecord]]:
    """By hook id. hooks: (stack id, hook id)."""
    found: dict[UUID, list[NoticeRecord]] = defaultdict(list)
    stacks, ids = [stack for stack, _ in hooks], [hook for _, hook in hooks]
    rows: list[Any] = await conn.fetch(READ_NOTICES, stacks, ids)
    for row in rows:
        found[row["hook_id"]].append(NoticeRecord(**row))
    return dict(found)
