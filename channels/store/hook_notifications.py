"""The notifications of hooks: their deliveries, and disabled subscriptions that get none."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from channels.selection import WAITING, Traits, is_for
from channels.store import subscriptions
from channels.store.records import NotificationRecord, SubscriptionRecord, SubscriptionState
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.gathered_reads import GatheredReads
from engine.store.records import HookRecord
from engine.words import HookState

READ_NOTICES = """
select d.hook_id, d.subscription_id, s.channel, s.target, d.attempts, d.code, d.next_at,
       d.ended_at,
       case when d.state = 'pending' and s.state = 'disabled' then 'disabled' else d.state end
           as state,
       case when d.state = 'pending' and s.state = 'disabled' then s.reason
            else nullif(concat_ws('; ', d.error, d.ignored_reason), '') end
           as error
  from unnest($1::uuid[], $2::uuid[]) h (stack_id, id)
  join delivery d on d.stack_id = h.stack_id and d.hook_id = h.id
  join subscription s on s.id = d.subscription_id
 order by d.created_at, d.id
"""
READ_PLACES = """
select s.id, coalesce(r.tags, s.tags) as tags, s.path as stack_path, s.root_id, r.name as root_name
  from stack s left join stack r on r.id = s.root_id where s.id = any ($1::uuid[])
"""


#: (stack ID, hook ID)
HookPath = tuple[UUID, UUID]


async def sent_notifications_of(
    conn: Connection, hooks: Sequence[HookPath]
) -> dict[UUID, list[NotificationRecord]]:
    """By hook ID."""
    found: dict[UUID, list[NotificationRecord]] = defaultdict(list)
    stacks, ids = [stack for stack, _ in hooks], [hook for _, hook in hooks]
    rows: list[Any] = await conn.fetch(READ_NOTICES, stacks, ids)
    for row in rows:
        found[row["hook_id"]].append(NotificationRecord(**row))
    return dict(found)


def gathered_notifications(
    database: Database,
) -> GatheredReads[HookPath, list[NotificationRecord]]:
    """The notifications sent for hooks, without those of disabled subscriptions."""

    async def read(hooks: Sequence[HookPath]) -> dict[HookPath, list[NotificationRecord]]:
        async with database.connection() as conn:
            found = await sent_notifications_of(conn, hooks)
        return {path: found[path[1]] for path in hooks if path[1] in found}

    return GatheredReads(read)


async def notifications_of(
    conn: Connection, hooks: Sequence[HookRecord]
) -> dict[UUID, list[NotificationRecord]]:
    """By hook ID, as `sent_notifications_of`. For waiting hooks, with the disabled subscriptions
    that select the notification."""
    found = await sent_notifications_of(conn, [(hook.stack_id, hook.id) for hook in hooks])
    waiting = [hook for hook in hooks if hook.state == HookState.WAITING]
    if not waiting:
        return found
    projects = sorted({hook.project for hook in waiting})
    disabled = await subscriptions.in_state(conn, projects, SubscriptionState.DISABLED)
    if not disabled:
        return found
    rows = await conn.fetch(READ_PLACES, sorted({hook.stack_id for hook in waiting}))
    places = {row["id"]: row for row in rows}
    for hook in waiting:
        notifications = found.setdefault(hook.id, [])
        known = {one.subscription_id for one in notifications}
        traits = _traits(hook, places[hook.stack_id])
        notifications += [
            _not_notified(hook.id, one)
            for one in disabled
            if one.id not in known
            and one.removed_at_sequence is None
            and is_for(one.id, one.project, one.selection, traits)
        ]
    return found


def _traits(hook: HookRecord, place: Any) -> Traits:
    return Traits(
        project=hook.project,
        type=WAITING,
        stack_id=hook.stack_id,
        stack_name=hook.stack_name,
        root_id=place["root_id"],
        root_name=place["root_name"],
        stack_path=place["stack_path"],
        resource_name=hook.resource_name or None,
        resource_type=hook.notification.get("type"),
        point=hook.point,
        tags=place["tags"],
    )


def _not_notified(hook_id: UUID, subscription: SubscriptionRecord) -> NotificationRecord:
    return NotificationRecord(
        hook_id,
        subscription.id,
        subscription.channel,
        subscription.target,
        "disabled",
        attempts=0,
        code=None,
        error=subscription.reason,
        next_at=None,
        ended_at=None,
    )
