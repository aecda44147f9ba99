"""The deliveries that a digest gathers into one message.

A delivery that waits for a digest has `digest_at`. At that time each of them is due, and several
processes can claim some. The first one that locks the subscription takes all of them, also those
that another process has claimed: that claim is outdated then, and the other process sends nothing.
Deliveries of a digest that failed are tried again together, and no other digest before has them.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from channels.store.records import Key
from engine.store.database import Database

#: Deliveries of one message; those beyond it are in the next one.
MAX_GATHERED: Final = 500

LOCK = "select 1 from subscription where id = $1 for no key update"
#: A delivery of a digest has `digest_taken` from the first attempt on, so that a digest leaves out
#: those that another process is sending, until their lease ends, and those that failed, until they
#: are tried again. $4, $5: the deliveries whose attempt was counted when they were claimed, and
#: their claims.
GATHER = """
with due as materialized (
    select d.id from delivery d
     where d.subscription_id = $1 and d.state = 'pending' and d.digest_at <= clock_timestamp()
       and (not d.digest_taken or d.next_at <= clock_timestamp()
            or (d.id, d.claim) in (select * from unnest($4::uuid[], $5::integer[])))
     order by d.digest_at limit $3
       for no key update
)
update delivery d
   set claim = d.claim + 1, attempts = d.attempts + (d.id <> all ($4::uuid[]))::integer,
       digest_taken = true, next_at = clock_timestamp() + make_interval(secs => $2)
  from due where d.id = due.id
returning d.stack_id, d.sequence, d.subscription_id, d.claim, d.id
"""


async def gather(
    database: Database, subscription_id: UUID, claimed: Sequence[Key], *, lease: float
) -> list[Key]:
    """Claim the deliveries of the subscription's digest for `lease` seconds, in the order of their
    stacks and events. claimed: of them, those that the caller has claimed. Empty: another process
    has taken them.
    """
    async with database.transaction("deliver") as conn:
        await conn.execute(LOCK, subscription_id)
        ids, claims = [one.id for one in claimed], [one.claim for one in claimed]
        rows = await conn.fetch(GATHER, subscription_id, lease, MAX_GATHERED, ids, claims)
    return sorted((Key(*row) for row in rows), key=lambda one: (one.stack_id, one.sequence))
