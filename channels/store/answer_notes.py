"""Notes about ignored answers by message, at the deliveries of the hook's notifications."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from channels.store.subscriptions import answerer
from engine.hooks.answer_rights import Automation
from engine.principal import Principal
from engine.store.connection import Connection

# Notifications to the subscription of the token; without a valid token, those over the channel of
# the answer that have no note yet.
READ_NOTIFICATIONS = """
select d.id as delivery_id, s.id, s.name, s.origin, s.owner, s.owner_id, s.owner_roles,
       h.rule, h.requested_by, h.requested_by_id, h.escalated_at is not null as escalated
  from delivery d
  join hook h on h.stack_id = d.stack_id and h.id = d.hook_id
  join subscription s on s.id = d.subscription_id
 where d.hook_id = $1
   and case when $2::uuid is null then s.channel = $3 and d.ignored_reason is null
            else s.id = $2 end
"""
# Locks in the same order as the result writer: subscriptions first, by ID.
NOTE = """
with locked as materialized (
    select id from subscription where id = any ($1::uuid[]) order by id for no key update
)
update delivery d
   set ignored_reason = n.note, ignored_answer = nullif($4, '')
  from locked l, unnest($2::uuid[], $3::text[]) n (id, note)
 where d.id = n.id and d.subscription_id = l.id and (d.ignored_reason is null or $5)
"""


@dataclass(frozen=True, slots=True)
class Notification:
    """The delivery of a hook's notification, with what decides whether its subscription may answer.

    automation: without the current rights of its owner. requester: of the change.
    """

    delivery_id: UUID
    automation: Automation
    rule: Any
    requester: Principal
    escalated: bool


async def notifications(
    conn: Connection, hook_id: UUID, subscription_id: UUID | None, channel: str
) -> list[Notification]:
    """The notifications of a hook to one subscription; if None, those over a channel without a
    note."""
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
    """answer: its content. replace: overwrite the note of an earlier answer."""
    await conn.execute(
        NOTE,
        [one.automation.id for one, _ in noted],
        [one.delivery_id for one, _ in noted],
        [note for _, note in noted],
        answer,
        replace,
    )
