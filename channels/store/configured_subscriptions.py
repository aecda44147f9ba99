"""The subscriptions of the configuration."""

from collections.abc import Sequence
from uuid import UUID

from channels.store import subscriptions
from channels.store.records import NewSubscription, SubscriptionRecord
from channels.store.subscription_events import events_of_change, record_subscription_events
from engine.store.connection import Connection

LOCK_CONFIGURED = """
select id, project, channel, target, events, stacks, resources, types, points, tags, ordered, state,
       reason, origin, stack_id, nested, named_until, failures, created_at,
       name, owner
  from subscription where origin = 'configuration' order by id for update
"""
CONFIGURE = """
insert into subscription (id, project, channel, target, events, stacks, resources, types, points,
                          ordered, secrets, state, origin, tags, stack_id, nested, name, owner,
                          owner_id, owner_roles)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, jsonb_build_array($11::jsonb), 'enabled',
        $12, $13, $14, $15, $16, $17, $18, $19)
on conflict (id) do update
   set project = excluded.project, channel = excluded.channel, target = excluded.target,
       events = excluded.events, stacks = excluded.stacks, resources = excluded.resources,
       types = excluded.types, points = excluded.points, tags = excluded.tags,
       ordered = excluded.ordered, nested = excluded.nested, name = excluded.name,
       owner = '', owner_id = '', owner_roles = '{}', origin = 'configuration',
       secrets = case when $20 or excluded.secrets -> 0 = subscription.secrets -> 0
                      then subscription.secrets else excluded.secrets end,
       state = 'enabled', reason = '', failures = 0
"""


async def configure(conn: Connection, wanted: Sequence[NewSubscription]) -> None:
    """Make the subscriptions of the configuration be exactly these, by their ids."""
    async with conn.transaction():
        before = await _configured(conn)
        gone = sorted(before.keys() - {new.id for new in wanted})
        told = [
            one for name in gone for one in events_of_change(before[name], None, "configuration")
        ]
        await record_subscription_events(conn, told)
        await subscriptions.forget(conn, gone)
        await conn.executemany(
            CONFIGURE, [(*subscriptions.columns_of(new), new.keeps_secret) for new in wanted]
        )
        after = await _configured(conn)
        changes = (
            events_of_change(before.get(name), one, "configuration") for name, one in after.items()
        )
        await record_subscription_events(conn, [one for told in changes for one in told])
        await conn.execute(subscriptions.WAKE)


async def _configured(conn: Connection) -> dict[UUID, SubscriptionRecord]:
    return {row["id"]: subscriptions.record_of(row) for row in await conn.fetch(LOCK_CONFIGURED)}
