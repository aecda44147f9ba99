"""Events about subscriptions: enabled, disabled, changed, rotated, deleted, redelivered.

They do not belong to a stack: each subscription has its own sequence numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from channels.store.records import SubscriptionRecord, SubscriptionState, shown_target
from engine.store.connection import Connection
from engine.words import Json

# Sequence numbers are per subscription. The engine stores the events like those of stacks.
RECORD = """
with draft as (
    select d.*, row_number() over (partition by d.id order by d.ordinality) as nth,
           count(*) over (partition by d.id) as count
      from unnest($1::uuid[], $2::text[], $3::text[], $4::jsonb[])
           with ordinality d (id, type, reason, data, ordinality)
), numbered as (
    update subscription s set sequence = s.sequence + d.count
      from (select distinct id, count from draft) d
     where s.id = d.id
    returning s.id, s.project, s.sequence - d.count as base
)
select record_numbered_events(
           array_agg(d.id), array_agg(n.project), array_agg(n.base + d.nth), array_agg(d.type),
           array_agg(d.reason), array_agg(d.data))
  from draft d join numbered n on n.id = d.id
"""
NOTIFY_DISABLED = "select pg_notify('headgate_disabled', '')"


class SubscriptionEventKind(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"
    CHANGED = "changed"
    ROTATED = "rotated"
    DELETED = "deleted"
    REDELIVERED = "redelivered"


@dataclass(frozen=True, slots=True)
class SubscriptionEvent:
    """about: the subscription after the change, or before its deletion. by: a display name."""

    kind: SubscriptionEventKind
    about: SubscriptionRecord
    reason: str
    by: str

    @property
    def type(self) -> str:
        return f"headgate.subscription.{self.kind}"

    @property
    def data(self) -> dict[str, Json]:
        """The stored data of the event, without secrets; the target is masked."""
        one, chosen = self.about, self.about.selection
        return {
            "subscription": str(one.id),
            "channel": one.channel,
            "target": shown_target(one.target),
            "state": one.state,
            "origin": one.origin,
            "stack_id": str(chosen.stack_id) if chosen.stack_id else None,
            "events": list(chosen.events),
            "stacks": list(chosen.stacks),
            "resources": list(chosen.resources),
            "types": list(chosen.types),
            "points": list(chosen.points),
            "tags": list(chosen.tags),
            "nested": chosen.nested,
            "ordered": one.ordered,
            "quiet_hours": one.quiet_hours,
            "digest": one.digest,
            "by": self.by,
        }


def events_of_change(
    before: SubscriptionRecord | None, after: SubscriptionRecord | None, by: str
) -> Sequence[SubscriptionEvent]:
    """The events of a change. before None: it is new; after None: it is deleted."""
    if after is None:
        return (
            [SubscriptionEvent(SubscriptionEventKind.DELETED, before, "It was deleted", by)]
            if before
            else []
        )
    if before is None:
        return [SubscriptionEvent(SubscriptionEventKind.ENABLED, after, "It was created", by)]
    events = []
    if _settings(before) != _settings(after):
        events.append(
            SubscriptionEvent(SubscriptionEventKind.CHANGED, after, "Its settings were changed", by)
        )
    if before.state != after.state:
        enabled = after.state == SubscriptionState.ENABLED
        kind = SubscriptionEventKind.ENABLED if enabled else SubscriptionEventKind.DISABLED
        events.append(
            SubscriptionEvent(kind, after, "It was enabled again" if enabled else after.reason, by)
        )
    return events


def _settings(subscription: SubscriptionRecord) -> SubscriptionRecord:
    """Without the values that deliveries change."""
    return replace(subscription, state="", reason="", failures=0)


async def record_subscription_events(conn: Connection, events: Sequence[SubscriptionEvent]) -> None:
    """Record events in the transaction of the change, while the subscriptions exist."""
    if events:
        await conn.execute(
            RECORD,
            [one.about.id for one in events],
            [one.type for one in events],
            [one.reason for one in events],
            [one.data for one in events],
        )
    if any(one.kind is SubscriptionEventKind.DISABLED for one in events):
        await conn.execute(NOTIFY_DISABLED)
