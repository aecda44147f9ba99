"""The subscriptions in the settings file."""

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
    """Replace the subscriptions of the settings file by these; equal IDs keep their secrets if
    `keeps_secret`."""
    async with conn.transaction():
        before = await _configured(conn)
        removed = sorted(before.keys() - {new.id for new in wanted})
        events = [
            one for name in removed for one in events_of_change(before[name], None, "configuration")
        ]
        await record_subscription_events(conn, events)
        await subscriptions.forget(conn, removed)
        await conn.executemany(
            CONFIGURE, [(*subscriptions.columns_of(new), new.keeps_secret) for new in wanted]
        )
        after = await _configured(conn)
        changes = (
            events_of_change(before.get(name), one, "configuration") for name, one in after.items()
        )
        await record_subscription_events(conn, [one for events in changes for one in events])
        await conn.execute(subscriptions.WAKE)


async def _configured(conn: Connection) -> dict[UUID, SubscriptionRecord]:
    return {row["id"]: subscriptions.record_of(row) for row in await conn.fetch(LOCK_CONFIGURED)}
