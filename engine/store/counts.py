"""How much there is of everything, for whoever looks whether a restored database is whole."""

from engine.store.connection import Connection

COUNTS = """
select (select count(*) from stack where deleted_at is null) as stacks,
       (select count(*) from stack where deleted_at is not null) as deleted_stacks,
       (select count(*) from resource) as resources,
       (select count(*) from traversal where state in ('running', 'ending')) as under_way,
       (select count(*) from hook where state = 'waiting') as hooks_waiting,
       (select count(*) from decision) as decisions, (select count(*) from event) as events,
       (select count(*) from subscription) as subscriptions,
       (select count(*) from delivery where state = 'pending') as deliveries_pending
"""
NEWEST = """
select extract(epoch from clock_timestamp() - max(created_at))::double precision from outbox
"""


async def counts(conn: Connection) -> dict[str, int]:
    row = await conn.fetchrow(COUNTS)
    return dict(row or {})


async def newest(conn: Connection) -> float | None:
    """Seconds since anything happened; None: nothing is known to have happened."""
    age: float | None = await conn.fetchval(NEWEST)
    return age
