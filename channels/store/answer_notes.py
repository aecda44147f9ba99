"""Answers by message that did not count, at the deliveries of the notifications of their hook."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from channels.store.subscriptions import answerer
from engine.hooks.automation import Automation
from engine.principal import Principal
from engine.store.connection import Connection

# Of the subscription whose token the answer has; or of all over the channel by which it came, where
# no answer is noted yet.
READ_NOTIFICATIONS = """
select d.id as delivery_id, s.id, s.name, s.origin, s.owner, s.owner_id, s.owner_roles,
       h.rule, h.requested_by, h.requested_by_id, h.escalated_at is not null as escalated
  from delivery d
  join hook h on h.stack_id = d.stack_id and h.id = d.hook_id
  join subscription s on s.id = d.subscription_id
 where d.hook_id = $1
   and case when $2::uuid is null then s.channel = $3 and d.ignored is null else s.id = $2 end
"""
# Whoever settles deliveries locks their subscriptions first, in this order.
NOTE = """
with locked as materialized (
    select id from subscription where id = any ($1::uuid[]) order by id for no key update
)
update delivery d
   set ignored = n.note, ignored_answer = nullif($4, '')
  from locked l, unnest($2::uuid[], $3::text[]) n (id, note)
 where d.id = n.id and d.subscription_id = l.id and (d.ignored is null or $5)
"""


@dataclass(frozen=True, slots=True)
class Notification:
    """The delivery of a hook's notification, with what decides whether its subscription may answer.

    automation: whether its owner may answer is to be looked up. requester: of the change.
    """

    delivery_id: UUID
    automation: Automation
    rule: Any
    requester: Principal
    escalated: bool


async def notifications(
    conn: Connection, hook_id: UUID, subscription_id: UUID | None, channel: str
) -> list[Notification]:
    """Of a hook: those to one subscription; None: those over a channel that have no note yet."""
    rows: list[Any] = await conn.fetch(READ_NOTIFICATIONS, hook_id, subscription_id, channel)
    return [
        Notification(
            row["delivery_id"],
            answerer(row),
            row["rule"],
            Principal(row["requested_by_id"], row["requested_by"]),
            row["escalated"],
        )
        for row in rows
    ]


async def write_notes(
    conn: Connection,
    noted: Sequence[tuple[Notification, str]],
    *,
    answer: str,
    replace: bool,
) -> None:
    """answer: what it said. replace: also where an earlier answer is noted."""
    await conn.execute(
        NOTE,
        [one.automation.id for one, _ in noted],
        [one.delivery_id for one, _ in noted],
        [note for _, note in noted],
        answer,
        replace,
    )
