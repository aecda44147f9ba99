"""Claiming due deliveries, with all that is needed to try them.

A claim is a lease, renewed while the attempt lasts: until it ends nobody else tries the delivery,
and its number fences whoever comes late. Subscriptions take turns, so that no backlog of one holds
up another.

Where order is kept, the first delivery of a stack is claimed together with those behind it: a run,
to be tried one after the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from channels.store.notices import notices_of
from channels.store.records import Due, Key, NoticeRecord, StackPlate
from channels.store.subscriptions import ROTATION
from engine.store.connection import Connection
from engine.store.records import EventRecord, HookRecord

# The recursion walks over the subscriptions that have something to send, by the index; it costs
# one step for each of them, however much they have.
CLAIM = """
with recursive sender (id) as (
    (select subscription_id from delivery
      where state = 'pending' and next_at is not null and urgent = $1
      order by subscription_id limit 1)
    union all
    select (select d.subscription_id from delivery d
             where d.state = 'pending' and d.next_at is not null and d.urgent = $1
               and d.subscription_id > sender.id
             order by d.subscription_id limit 1)
      from sender where sender.id is not null
), candidate as (
    select d.*, row_number() over (partition by d.attempts > 0 order by d.turn, d.next_at) as place
      from sender
      join subscription s on s.id = sender.id and s.state = 'enabled'
      left join unnest($2::uuid[], $3::bigint[]) b (id, busy) on b.id = s.id
     cross join lateral (
           select d.stack_id, d.sequence, d.subscription_id, d.next_at, d.attempts,
                  row_number() over (order by d.next_at, d.sequence) as turn
             from delivery d
            where d.state = 'pending' and d.next_at <= now() and d.urgent = $1
              and d.subscription_id = s.id
              -- What a dead dispatcher left of a run is due all at once: its first comes first.
              and not (s.ordered and exists (
                  select 1 from delivery e
                   where e.subscription_id = d.subscription_id and e.stack_id = d.stack_id
                     and e.state = 'pending' and e.next_at is not null
                     and e.sequence < d.sequence))
            order by d.next_at, d.sequence limit greatest($4 - coalesce(b.busy, 0), 0)) d
), chosen as (
    select d.stack_id, d.sequence, d.subscription_id, d.attempts
      from candidate c
      join delivery d on d.stack_id = c.stack_id and d.sequence = c.sequence
       and d.subscription_id = c.subscription_id
     where (c.attempts = 0 or c.place <= $6)
       and d.state = 'pending' and d.next_at <= now()
     order by c.attempts > 0, c.place limit $5
       for no key update of d skip locked
), behind as materialized (
    select b.row, b.nth
      from chosen c
      join subscription s on s.id = c.subscription_id and s.channel <> all ($10::text[])
     cross join lateral (
           select d.ctid as row, d.urgent, row_number() over (order by d.sequence) as nth
             from delivery d
            where d.subscription_id = c.subscription_id and d.stack_id = c.stack_id
              and d.state = 'pending' and d.next_at is null
            order by d.sequence limit $9) b
     where c.attempts = 0 and b.urgent = $1
), held as (
    select d.stack_id, d.sequence, d.subscription_id, b.nth
      from behind b
      join delivery d on d.ctid = b.row
     where d.state = 'pending' and d.next_at is null
       for no key update of d skip locked
), counted as (
    select h.*, row_number() over (partition by subscription_id, stack_id order by nth) as place
      from held h
), run as (
    select stack_id, sequence, subscription_id from chosen
     union all
    -- Up to the first that somebody else holds: a run has no gap.
    select stack_id, sequence, subscription_id from counted where place = nth
), claimed as (
    update delivery d
       set claim = d.claim + 1, attempts = d.attempts + 1,
           next_at = now() + make_interval(secs => $7)
      from run r
     where d.stack_id = r.stack_id and d.sequence = r.sequence
       and d.subscription_id = r.subscription_id
       and d.state = 'pending' and (d.next_at is null or d.next_at <= now())
    returning d.stack_id, d.sequence, d.subscription_id, d.id, d.project, d.hook_id, d.claim,
              d.attempts
)
select c.stack_id, c.sequence, c.subscription_id, c.id, c.project, c.hook_id, c.claim, c.attempts,
       s.channel, s.target, s.ordered,
       case when s.rotated_at > now() - $8::interval then s.secrets
            else jsonb_build_array(s.secrets -> 0) end as secrets,
       k.name as stack_name, k.owner, coalesce(r.tags, k.tags) as tags,
       k.created_at as stack_created_at, k.path as stack_path, k.root_id, r.name as root_name,
       now() as now,
       e.id as event_id, e.type, e.time, e.resource_name, e.resource_type, e.physical_id, e.action,
       e.status, e.reason, e.data, e.traceparent,
       h.id as h_id, h.project as h_project, h.traversal as h_traversal,
       h.node as h_node,
       h.root_stack_id as h_root_stack_id, h.root_stack_name as h_root_stack_name,
       h.resource_name as h_resource_name, h.path as h_path, h.point as h_point, h.mode as h_mode,
       h.state as h_state, h.opened_at as h_opened_at,
       case when h.state = 'waiting' and h.told_at is null then now() + h.timeout
            else h.deadline end as h_deadline,
       h.on_timeout as h_on_timeout, h.digest as h_digest, h.decision as h_decision,
       h.reason as h_reason, h.decided_by as h_decided_by, h.door as h_door,
       h.decided_at as h_decided_at, h.notice as h_notice, h.rule as h_rule,
       h.requested_by as h_requested_by, h.assigned as h_assigned,
       h.escalated_at as h_escalated_at, h.reminders as h_reminders,
       h.approved_by as h_approved_by
  from claimed c
  join subscription s on s.id = c.subscription_id
  left join stack k on k.id = c.stack_id
  left join stack r on r.id = k.root_id
  join event e on e.stack_id = c.stack_id and e.sequence = c.sequence
  left join hook_now h on h.stack_id = c.stack_id and h.id = (e.data ->> 'hook_id')::uuid
 order by c.stack_id, c.sequence
"""
NEXT_DUE = """
with recursive sender (id) as (
    (select subscription_id from delivery
      where state = 'pending' and next_at is not null and urgent = $1
      order by subscription_id limit 1)
    union all
    select (select d.subscription_id from delivery d
             where d.state = 'pending' and d.next_at is not null and d.urgent = $1
               and d.subscription_id > sender.id
             order by d.subscription_id limit 1)
      from sender where sender.id is not null
)
select extract(epoch from min(d.next_at) - now())::double precision as seconds
  from sender
  join subscription s on s.id = sender.id and s.state = 'enabled'
 cross join lateral (
       select next_at from delivery d
        where d.state = 'pending' and d.next_at is not null and d.urgent = $1
          and d.subscription_id = s.id
        order by d.next_at limit 1) d
 where s.id <> all ($2::uuid[])
"""
# What is being settled now is let be: it needs no lease, and waiting for it could be a deadlock.
RENEW = """
with mine as (
    select d.stack_id, d.sequence, d.subscription_id
      from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::integer[])
           k (stack_id, sequence, subscription_id, claim)
      join delivery d on d.stack_id = k.stack_id and d.sequence = k.sequence
       and d.subscription_id = k.subscription_id and d.claim = k.claim and d.state = 'pending'
       for no key update of d skip locked
)
update delivery d set next_at = now() + make_interval(secs => $5)
  from mine m
 where d.stack_id = m.stack_id and d.sequence = m.sequence
   and d.subscription_id = m.subscription_id
"""
_EVENT = (
    "type", "time", "resource_name", "resource_type", "physical_id", "action", "status", "reason",
    "data", "traceparent",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Room:
    """How much a lane can take.

    free: attempts in all, of these at most `retries` that are not first ones. each: attempts at
    once per subscription; busy: how many each has under way here. behind: how many more come with
    one that is first in order, except over the channels in `paced`.
    """

    free: int
    retries: int
    each: int
    busy: Mapping[UUID, int]
    behind: int = 0
    paced: Sequence[str] = ()

    @property
    def full(self) -> list[UUID]:
        return [one for one, count in self.busy.items() if count >= self.each]


async def claim(conn: Connection, *, urgent: bool, room: Room, lease: float) -> list[Due]:
    """Take what is due in a lane, for `lease` seconds. By stack, each stack's in order."""
    rows = await conn.fetch(
        CLAIM, urgent, list(room.busy), list(room.busy.values()), room.each, room.free,
        room.retries, lease, ROTATION, room.behind, list(room.paced),
    )  # fmt: skip
    hooks = sorted({(row["stack_id"], row["h_id"]) for row in rows if row["h_id"] is not None})
    notices = await notices_of(conn, hooks) if hooks else {}
    return [_due(row, notices) for row in rows]


def runs(claimed: Sequence[Due]) -> list[list[Due]]:
    """What is to be tried one after the other. Pure."""
    found: dict[tuple[UUID, UUID, int], list[Due]] = {}
    for due in claimed:
        key = due.key
        alone = 0 if due.ordered else key.sequence
        found.setdefault((key.subscription_id, key.stack_id, alone), []).append(due)
    return list(found.values())


async def renew(conn: Connection, keys: Sequence[Key], *, lease: float) -> None:
    """Keep what is being tried for `lease` seconds more; what was lost meanwhile stays lost."""
    columns = ("stack_id", "sequence", "subscription_id", "claim")
    await conn.execute(RENEW, *([getattr(key, name) for key in keys] for name in columns), lease)


async def next_due(conn: Connection, *, urgent: bool, room: Room) -> float | None:
    """Seconds until something is due in a lane, negative when it is already; None: nothing is.

    Subscriptions that are busy to their limit are left out: they are looked at when they have room.
    """
    seconds: float | None = await conn.fetchval(NEXT_DUE, urgent, room.full)
    return seconds


def _due(row: Any, notices: Mapping[UUID, list[NoticeRecord]]) -> Due:
    return Due(
        key=Key(row["stack_id"], row["sequence"], row["subscription_id"], row["claim"]),
        id=row["id"],
        project=row["project"],
        plate=plate_of(row),
        hook_id=row["hook_id"],
        attempts=row["attempts"],
        channel=row["channel"],
        target=row["target"],
        ordered=row["ordered"],
        secrets=tuple(row["secrets"]),
        event=EventRecord(
            stack_id=row["stack_id"],
            sequence=row["sequence"],
            id=row["event_id"],
            **{name: row[name] for name in _EVENT},
        ),
        hook=hook_of(row) if row["h_id"] is not None else None,
        notices=tuple(notices.get(row["h_id"], ())),
        now=row["now"],
    )


def plate_of(row: Any) -> StackPlate | None:
    if row["stack_name"] is None:
        return None
    return StackPlate(
        row["stack_name"], row["owner"], tuple(row["tags"]), row["stack_created_at"],
        row["stack_path"], row["root_id"], row["root_name"],
    )  # fmt: skip


_HOOK = (
    "id", "project", "root_stack_id", "root_stack_name", "traversal", "node", "resource_name",
    "path", "point", "mode", "state", "opened_at",
    "deadline", "on_timeout", "digest", "decision", "reason", "decided_by", "door", "decided_at",
    "notice", "rule", "requested_by", "assigned", "escalated_at", "reminders", "approved_by",
)  # fmt: skip


def hook_of(row: Any) -> HookRecord:
    """The hook in the columns h_... of a row that also has stack_id and stack_name."""
    return HookRecord(
        stack_id=row["stack_id"],
        stack_name=row["stack_name"],
        **{name: row[f"h_{name}"] for name in _HOOK},
    )
