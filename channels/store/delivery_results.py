"""Writes the results of attempts, many in one transaction.

A result with an outdated claim is ignored: another process has claimed the delivery.
"""

from collections.abc import Callable, Sequence
from typing import Any

from channels.store import subscriptions
from channels.store.records import DeliveryResult, DeliveryState, Key, SubscriptionState
from channels.store.subscription_events import (
    SubscriptionEvent,
    SubscriptionEventKind,
    record_subscription_events,
)
from channels.store.undeliverable import report_given_up, without_notification
from engine.hooks.deadline import (
    NotificationDelivered,
    NotificationPending,
    NotificationReport,
    NotificationUndeliverable,
)
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks.deadlines import HookKey, report_notifications
from engine.store.stacks.stack_locks import lock_stacks

LOCK_SUBSCRIPTIONS = """
select id from subscription where id = any ($1::uuid[]) order by id for no key update
"""
# A delivery that stays pending gets a new claim number, so that a concurrent renewal does not
# match. Those of a digest that failed are due at the same time.
WRITE = """
update delivery d
   set state = s.state, claim = d.claim + (s.state = 'pending')::integer,
       code = case when s.unattempted or s.postponed then d.code else s.code end,
       error = case when s.unattempted then d.error else nullif(s.error, '') end,
       response = case when s.unattempted or s.postponed then d.response
                       else nullif(s.response, '') end,
       attempts = d.attempts - (s.unattempted or s.postponed)::integer,
       next_at = case when s.state = 'pending' and not s.unattempted
                      then statement_timestamp() + make_interval(secs => s.wait) end,
       ended_at = case when s.state <> 'pending' then clock_timestamp() end,
       digest_at = coalesce(s.digest_at, d.digest_at),
       digest_taken = d.digest_taken and s.state = 'pending' and not (s.unattempted or s.postponed)
  from unnest($1::uuid[], $2::integer[], $3::text[], $4::integer[],
              $5::text[], $6::text[], $7::float8[], $8::boolean[],
              $9::boolean[], $10::timestamptz[])
       s (id, claim, state, code, error, response, wait, unattempted, postponed, digest_at)
 where d.id = s.id and d.claim = s.claim and d.state = 'pending'
returning d.id
"""
RESET_FAILURES = "update subscription set failures = 0 where id = any ($1::uuid[]) and failures > 0"
COUNT_FAILURES = f"""
with dead as (
    select u.subscription_id, count(*)::integer as times, bool_or(u.gone) as gone
      from unnest($1::uuid[], $2::boolean[]) u (subscription_id, gone) group by 1
)
update subscription s
   set failures = s.failures + n.times,
       state = case when n.gone or s.failures + n.times >= $3 then 'disabled' else s.state end,
       reason = case when n.gone then 'its endpoint answered that it is permanently gone'
                     when s.failures + n.times >= $3
                     then (s.failures + n.times) || ' consecutive deliveries failed'
                     else s.reason end
  from dead n
 where s.id = n.subscription_id and s.state = 'enabled'
returning {subscriptions.COLUMNS}
"""  # noqa: S608 - of constants
RECORD = """
select record_events(array_agg(
           row (d.stack_id, 'headgate.delivery.' || d.state, null, null, null, null, null,
                d.event_type || case when d.state = 'dead'
                    then ' was not delivered to ' || d.target || ': ' || d.error
                    else ' was delivered to ' || d.target end,
                jsonb_build_object('subscription', d.subscription_id, 'channel', d.channel,
                                   'target', d.target, 'delivery', d.id, 'event_id', d.event_id,
                                   'event_type', d.event_type, 'event_sequence', d.sequence,
                                   'attempts', d.attempts, 'code', d.code, 'error', d.error)
                )::event_draft order by d.stack_id, d.sequence))
  from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[],
              $8::text[], $9::integer[], $10::integer[], $11::text[], $12::text[])
       d (stack_id, sequence, subscription_id, id, event_id, event_type, channel, target, attempts,
          code, error, state)
"""
# Does not read the delivery, whose data may raise the error.
FAIL = """
update delivery
   set state = 'dead', claim = claim + 1, code = null, error = $3, response = null, next_at = null,
       ended_at = clock_timestamp()
 where id = $1 and claim = $2 and state = 'pending'
returning hook_id
"""
#: Makes the next delivery of each order due; also for redelivery and for the publisher.
RELEASE = "select release_deliveries($1::uuid[], $2::uuid[])"
NOTIFY_QUEUES = "select pg_notify('headgate_delivery', '')"

#: Deliveries of these event types cause no events: two subscribers would notify each other forever.
SILENT = ("headgate.delivery.", "headgate.subscription.")


async def write_results(
    database: Database, results: Sequence[DeliveryResult], *, disable_after: int
) -> int:
    """Write results; return the number of those with a current claim.

    disable_after: consecutive dead deliveries that disable a subscription.
    """
    async with database.transaction("deliver") as conn:
        stacks = {one.key.stack_id for one in results if _touches_stack(one)}
        if stacks:
            await lock_stacks(conn, stacks)
        # Also prevents a publisher from adding to an order while its first delivery leaves.
        await conn.execute(LOCK_SUBSCRIPTIONS, sorted({one.key.subscription_id for one in results}))
        rows = await conn.fetch(WRITE, *_arrays(results, _WRITTEN))
        written = {row["id"] for row in rows}
        done = [one for one in results if one.id in written]
        if not done:
            return 0
        delivered = [one for one in done if one.state is DeliveryState.DELIVERED]
        dead = [one for one in done if one.state is DeliveryState.DEAD]
        await _report_notifications(conn, done)
        if recorded := [one for one in done if _causes_event(one)]:
            await conn.execute(RECORD, *_arrays(recorded, _RECORDED))
        if delivered:
            await conn.execute(RESET_FAILURES, [one.key.subscription_id for one in delivered])
        if dead:
            await _count_failures(conn, dead, disable_after)
        if left := delivered + dead + [one for one in done if one.unattempted]:
            released = await conn.fetchval(RELEASE, *_arrays(left, _PAIR))
            if released:
                await conn.execute(NOTIFY_QUEUES)
        return len(done)


async def fail_delivery(database: Database, key: Key, reason: str) -> None:
    """Mark a delivery dead after an internal error. Does not count as a failure of its receiver."""
    async with database.transaction("deliver") as conn:
        await lock_stacks(conn, [key.stack_id])
        await conn.execute(LOCK_SUBSCRIPTIONS, [key.subscription_id])
        failed = await conn.fetchrow(FAIL, key.id, key.claim, reason)
        if failed is None:
            return
        if failed["hook_id"] is not None:
            await report_given_up(conn, [(key.stack_id, failed["hook_id"])])
        if await conn.fetchval(RELEASE, [key.subscription_id], [key.stack_id]):
            await conn.execute(NOTIFY_QUEUES)


def _touches_stack(one: DeliveryResult) -> bool:
    return one.hook_id is not None or one.state is DeliveryState.DEAD


def _causes_event(one: DeliveryResult) -> bool:
    """Dead deliveries, and delivered hook notifications; of others, delivery causes no event."""
    if one.state is DeliveryState.DEAD:
        return not one.event_type.startswith(SILENT)
    return one.state is DeliveryState.DELIVERED and one.hook_id is not None


async def _report_notifications(conn: Connection, done: Sequence[DeliveryResult]) -> None:
    """Report the results of hook notifications to the engine."""
    reports: dict[HookKey, list[NotificationReport]] = {}
    given_up: list[HookKey] = []
    for one in done:
        if one.hook_id is None or one.unattempted:
            continue
        key = (one.key.stack_id, one.hook_id)
        match one.state:
            case DeliveryState.DELIVERED:
                reports.setdefault(key, []).append(NotificationDelivered())
            case DeliveryState.PENDING:
                reports.setdefault(key, []).append(NotificationPending(one.wait + one.left))
            case DeliveryState.DEAD:
                given_up.append(key)
    for key in await without_notification(conn, given_up):
        reports.setdefault(key, []).append(NotificationUndeliverable())
    await report_notifications(conn, reports)


async def _count_failures(
    conn: Connection, dead: Sequence[DeliveryResult], disable_after: int
) -> None:
    ids, gone = [one.key.subscription_id for one in dead], [one.gone for one in dead]
    rows = await conn.fetch(COUNT_FAILURES, ids, gone, disable_after)
    now = [subscriptions.record_of(row) for row in rows]
    disabled = [one for one in now if one.state == SubscriptionState.DISABLED]
    events = [
        SubscriptionEvent(SubscriptionEventKind.DISABLED, one, one.reason, "headgate")
        for one in disabled
    ]
    await record_subscription_events(conn, events)


_Columns = tuple[Callable[[DeliveryResult], Any], ...]

_PAIR: _Columns = (lambda o: o.key.subscription_id, lambda o: o.key.stack_id)
_WRITTEN: _Columns = (
    lambda o: o.key.id, lambda o: o.key.claim, lambda o: o.state, lambda o: o.code,
    lambda o: o.error, lambda o: o.response, lambda o: o.wait, lambda o: o.unattempted,
    lambda o: o.postponed, lambda o: o.digest_at,
)  # fmt: skip
_RECORDED: _Columns = (
    lambda o: o.key.stack_id, lambda o: o.key.sequence, lambda o: o.key.subscription_id,
    lambda o: o.id, lambda o: o.event_id, lambda o: o.event_type, lambda o: o.channel,
    lambda o: o.target, lambda o: o.attempts, lambda o: o.code, lambda o: o.error,
    lambda o: o.state,
)  # fmt: skip


def _arrays(results: Sequence[DeliveryResult], columns: _Columns) -> list[list[Any]]:
    return [[column(one) for one in results] for column in columns]
