"""Claims due deliveries and reads the data for their attempts.

A claim is a lease, which is renewed during the attempt. Until it expires, no other process attempts
the delivery; its number fences late results. Subscriptions are served in turn, so that the backlog
of one does not delay others.

The first ordered delivery of a stack is claimed together with those that follow it. They are a run,
which is attempted in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from channels.store.hook_notifications import sent_notifications_of
from channels.store.records import DeliveryStackHeader, Key, NotificationRecord, PendingDelivery
from channels.store.secret_rotation import signing_secrets
from channels.store.subscriptions import answerer
from engine.hooks.deadline import NotificationDelivered, apply_reports
from engine.store.connection import Connection
from engine.store.encryption.secret_values import DecryptionFailed
from engine.store.hooks.deadlines import clock_of
from engine.store.records import EventRecord, HookRecord
from engine.words import HookState

CLAIM = "select * from claim_deliveries($1, $2, $3, $4, $5, $6, $7, $8, $9)"
# `offset 0` forces one lookup by key for each row: the planner may keep a plan that it made while
# the tables were empty.
READ_CLAIMED = """
select c.stack_id, c.sequence, c.subscription_id, c.id, c.project, c.hook_id, c.claim, c.attempts,
       s.channel, s.target, s.ordered, s.name, s.origin, s.owner as s_owner, s.owner_id,
       s.owner_roles, s.project as s_project,
       s.secrets, s.rotated_at, s.quiet_hours, s.digest, c.digest_at,
       k.name as stack_name, k.owner, coalesce(r.tags, k.tags) as tags,
       k.created_at as stack_created_at, k.path as stack_path, k.root_id, r.name as root_name,
       now() as now,
       e.id as event_id, e.type, e.time, e.resource_name, e.resource_type, e.physical_id, e.action,
       e.status, e.reason, e.data, e.traceparent,
       h.id as h_id, h.project as h_project, h.traversal as h_traversal,
       h.node as h_node,
       h.root_stack_id as h_root_stack_id, h.root_stack_name as h_root_stack_name,
       h.resource_name as h_resource_name, h.path as h_path, h.point as h_point, h.mode as h_mode,
       h.state as h_state, h.opened_at as h_opened_at, h.timeout as h_timeout,
       h.deadline as h_deadline, h.notified_at as h_notified_at,
       h.undeliverable_at as h_undeliverable_at,
       h.on_timeout as h_on_timeout, h.digest as h_digest, h.decision as h_decision,
       h.reason as h_reason, h.decided_by as h_decided_by, h.channel as h_channel,
       h.decided_at as h_decided_at, h.notification as h_notification, h.rule as h_rule,
       h.requested_by as h_requested_by, h.requested_by_id as h_requested_by_id,
       h.assigned as h_assigned,
       h.escalated_at as h_escalated_at, h.reminders as h_reminders,
       h.approved_by as h_approved_by, h.operator_approval as h_operator_approval
  from unnest($1::uuid[], $2::integer[]) key (id, claim)
 cross join lateral (
       select * from delivery c where c.id = key.id and c.claim = key.claim offset 0) c
 cross join lateral (select * from subscription s where s.id = c.subscription_id offset 0) s
 cross join lateral (
       select * from event e
        where e.stack_id = c.stack_id and e.sequence = c.sequence offset 0) e
  left join lateral (select * from stack k where k.id = c.stack_id offset 0) k on true
  left join lateral (select * from stack r where r.id = k.root_id offset 0) r on true
  left join lateral (
       select * from hook_details h
        where h.stack_id = c.stack_id and h.id = (e.data ->> 'hook_id')::uuid offset 0) h on true
 order by c.stack_id, c.sequence
"""
NEXT_DUE = """
select extract(epoch from min(next_at) - now())::double precision as seconds
  from subscriptions_with_turns($1) sender
 where id <> all ($2::uuid[])
   and (select s.state from subscription s where s.id = sender.id) = 'enabled'
"""
# Skips deliveries whose result is being written: they need no lease, and waiting could deadlock.
RENEW = """
with mine as (
    select d.id
      from unnest($1::uuid[], $2::integer[]) k (id, claim)
      join delivery d on d.id = k.id and d.claim = k.claim and d.state = 'pending'
       for no key update of d skip locked
)
update delivery d set next_at = now() + make_interval(secs => $3) from mine m where d.id = m.id
"""
_EVENT = (
    "type", "time", "resource_name", "resource_type", "physical_id", "action", "status", "reason",
    "data", "traceparent",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Capacity:
    """The free capacity of a delivery queue.

    free: attempts in all; retries: of these, at most so many that are not first attempts. each:
    concurrent attempts for each subscription; busy: active ones by subscription. behind: ordered
    deliveries that are claimed with the first one, except over the channels in `rate_limited`.
    """

    free: int
    retries: int
    each: int
    busy: Mapping[UUID, int]
    behind: int = 0
    rate_limited: Sequence[str] = ()

    @property
    def full(self) -> list[UUID]:
        return [one for one, count in self.busy.items() if count >= self.each]


async def claim_keys(
    conn: Connection, *, urgent: bool, capacity: Capacity, lease: float
) -> list[Key]:
    """Claim due deliveries for `lease` seconds. By stack, in order within a stack."""
    rows = await conn.fetch(
        CLAIM, urgent, list(capacity.busy), list(capacity.busy.values()), capacity.each,
        capacity.free, capacity.retries, lease, capacity.behind, list(capacity.rate_limited),
    )  # fmt: skip
    return [Key(*row) for row in rows]


async def read_claimed(conn: Connection, keys: Sequence[Key]) -> list[PendingDelivery]:
    """The claimed deliveries in the order of their keys, with the data for an attempt."""
    rows = await conn.fetch(READ_CLAIMED, *_columns(keys))
    hooks = sorted({(row["stack_id"], row["h_id"]) for row in rows if row["h_id"] is not None})
    notifications = await sent_notifications_of(conn, hooks) if hooks else {}
    return [_pending_delivery(row, notifications) for row in rows]


async def claim(
    conn: Connection, *, urgent: bool, capacity: Capacity, lease: float
) -> list[PendingDelivery]:
    """Claim and read."""
    keys = await claim_keys(conn, urgent=urgent, capacity=capacity, lease=lease)
    return await read_claimed(conn, keys)


def _columns(keys: Sequence[Key]) -> tuple[list[UUID], list[int]]:
    return [key.id for key in keys], [key.claim for key in keys]


def runs(claimed: Sequence[PendingDelivery]) -> list[list[PendingDelivery]]:
    """Group deliveries that are attempted in order."""
    found: dict[tuple[UUID, UUID, int], list[PendingDelivery]] = {}
    for delivery in claimed:
        key = delivery.key
        alone = 0 if delivery.ordered else key.sequence
        found.setdefault((key.subscription_id, key.stack_id, alone), []).append(delivery)
    return list(found.values())


async def renew(conn: Connection, keys: Sequence[Key], *, lease: float) -> None:
    """Extend claims to `lease` seconds from now; expired claims of others are not taken back."""
    await conn.execute(RENEW, *_columns(keys), lease)


async def seconds_to_next(conn: Connection, *, urgent: bool, capacity: Capacity) -> float | None:
    """Seconds until the next delivery is due, negative if it already is; None: there is none.

    Leaves out subscriptions at their limit.
    """
    seconds: float | None = await conn.fetchval(NEXT_DUE, urgent, capacity.full)
    return seconds


def _pending_delivery(
    row: Any, notifications: Mapping[UUID, list[NotificationRecord]]
) -> PendingDelivery:
    secrets, undecryptable = _secrets(row)
    return PendingDelivery(
        key=Key(row["stack_id"], row["sequence"], row["subscription_id"], row["claim"], row["id"]),
        id=row["id"],
        project=row["project"],
        stack_header=stack_header_of(row),
        hook_id=row["hook_id"],
        attempts=row["attempts"],
        channel=row["channel"],
        target=row["target"],
        ordered=row["ordered"],
        secrets=secrets,
        undecryptable=undecryptable,
        event=EventRecord(
            stack_id=row["stack_id"],
            sequence=row["sequence"],
            id=row["event_id"],
            **{name: row[name] for name in _EVENT},
        ),
        hook=_notified_hook(row) if row["h_id"] is not None else None,
        notifications=tuple(notifications.get(row["h_id"], ())),
        now=row["now"],
        quiet_hours=row["quiet_hours"],
        expires_at=_fixed_deadline(row),
        digest=row["digest"],
        digest_at=row["digest_at"],
        automation=answerer(dict(row) | {"id": row["subscription_id"], "owner": row["s_owner"]}),
    )


def _notified_hook(row: Any) -> HookRecord:
    """The hook with the deadline that applies if this attempt delivers its notification."""
    hook = hook_of(row)
    waiting = hook.state == HookState.WAITING
    clock = apply_reports(
        clock_of(row, "h_"), [NotificationDelivered()], row["now"], waiting=waiting
    )
    return replace(hook, deadline=clock.deadline)


def _fixed_deadline(row: Any) -> datetime | None:
    """The deadline of a waiting hook whose notification was delivered before, over any channel."""
    if row["h_state"] == HookState.WAITING and row["h_notified_at"] is not None:
        deadline: datetime = row["h_deadline"]
        return deadline
    return None


def _secrets(row: Any) -> tuple[tuple[str, ...], str]:
    """The signing secrets, or why they cannot be decrypted."""
    try:
        return signing_secrets(row, row["s_project"], row["subscription_id"]), ""
    except DecryptionFailed as error:
        return (), str(error)


def stack_header_of(row: Any) -> DeliveryStackHeader | None:
    if row["stack_name"] is None:
        return None
    return DeliveryStackHeader(
        row["stack_name"], row["owner"], tuple(row["tags"]), row["stack_created_at"],
        row["stack_path"], row["root_id"], row["root_name"],
    )  # fmt: skip


_HOOK = (
    "id", "project", "root_stack_id", "root_stack_name", "traversal", "node", "resource_name",
    "path", "point", "mode", "state", "opened_at",
    "deadline", "on_timeout", "digest", "decision", "reason", "decided_by", "channel", "decided_at",
    "notification", "rule", "requested_by", "requested_by_id", "assigned", "escalated_at",
    "reminders", "approved_by", "operator_approval",
)  # fmt: skip


def hook_of(row: Any) -> HookRecord:
    """row: has the columns of the hook with the prefix `h_`, stack_id and stack_name."""
    return HookRecord(
        stack_id=row["stack_id"],
        stack_name=row["stack_name"],
        **{name: row[f"h_{name}"] for name in _HOOK},
    )
