"""Writing down what came of attempts, many at once, in one transaction.

A settlement whose claim is no longer the delivery's is left out: somebody else has it now.
"""

from collections.abc import Callable, Sequence
from typing import Any

from channels.store import subscriptions
from channels.store.news import Kind, News, record_news
from channels.store.records import DeliveryState, Settlement, SubscriptionState
from channels.store.unheard import mark_unheard
from engine.store.database import Database

LOCK_STACKS = "select id from stack where id = any ($1::uuid[]) order by id for no key update"
LOCK_SUBSCRIPTIONS = """
select id from subscription where id = any ($1::uuid[]) order by id for no key update
"""
# What goes on waiting gets another number, so that no renewal under way takes it for its own.
SETTLE = """
update delivery d
   set state = s.state, claim = d.claim + (s.state = 'pending')::integer,
       code = case when s.untried then d.code else s.code end,
       error = case when s.untried then d.error else nullif(s.error, '') end,
       answer = case when s.untried then d.answer else nullif(s.answer, '') end,
       attempts = d.attempts - s.untried::integer,
       next_at = case when s.state = 'pending' and not s.untried
                      then clock_timestamp() + make_interval(secs => s.wait) end,
       settled_at = case when s.state <> 'pending' then clock_timestamp() end
  from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::integer[], $5::text[], $6::integer[],
              $7::text[], $8::text[], $9::float8[], $10::boolean[])
       s (stack_id, sequence, subscription_id, claim, state, code, error, answer, wait, untried)
 where d.stack_id = s.stack_id and d.sequence = s.sequence
   and d.subscription_id = s.subscription_id and d.claim = s.claim and d.state = 'pending'
returning d.id
"""
# statement_timestamp() is one time for all columns; the rows are locked before, so it is not early.
TOLD = """
update hook h
   set told_at = statement_timestamp(),
       deadline = case when h.state = 'waiting' then statement_timestamp() + h.timeout
                       else h.deadline end
  from (select distinct * from unnest($1::uuid[], $2::uuid[])) n (stack_id, id)
 where h.stack_id = n.stack_id and h.id = n.id and h.told_at is null
"""
NOT_YET_TOLD = """
update hook h
   set deadline = greatest(h.deadline,
                           statement_timestamp() + h.timeout + make_interval(secs => n.left))
  from (select stack_id, id, max(left_) as left
          from unnest($1::uuid[], $2::uuid[], $3::float8[]) u (stack_id, id, left_)
         group by stack_id, id) n
 where h.stack_id = n.stack_id and h.id = n.id and h.state = 'waiting' and h.told_at is null
"""
ARRIVED = "update subscription set failures = 0 where id = any ($1::uuid[]) and failures > 0"
GIVEN_UP = """
with news as (
    select u.subscription_id, count(*)::integer as times, bool_or(u.gone) as gone
      from unnest($1::uuid[], $2::boolean[]) u (subscription_id, gone) group by 1
)
update subscription s
   set failures = s.failures + n.times,
       state = case when n.gone or s.failures + n.times >= $3 then 'disabled' else s.state end,
       reason = case when n.gone then 'its endpoint said that it is gone for good'
                     when s.failures + n.times >= $3
                     then (s.failures + n.times) || ' deliveries in a row were given up'
                     else s.reason end
  from news n
 where s.id = n.subscription_id and s.state = 'enabled'
returning id, project, channel, target, events, stacks, resources, types, points, tags, ordered,
          state, reason, origin, stack_id, nested, named_until, failures, created_at
"""
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
RELEASE = "select release_deliveries($1::uuid[], $2::uuid[])"
TELL_LANES = "select pg_notify('headgate_delivery', '')"
TELL_TIMERS = "select pg_notify('headgate_hook', '')"

#: What becomes of deliveries of these is no news: two listeners would tell each other for ever.
SILENT = ("headgate.delivery.", "headgate.subscription.")


async def settle(
    database: Database, settlements: Sequence[Settlement], *, disable_after: int
) -> int:
    """Write settlements; return how many were still theirs to settle.

    disable_after: a subscription of which so many deliveries in a row were given up is disabled.
    """
    async with database.transaction("deliver") as conn:
        stacks = {one.key.stack_id for one in settlements if _touches_stack(one)}
        if stacks:
            await conn.execute(LOCK_STACKS, sorted(stacks))
        # Also so that no publisher adds to an order while its head leaves.
        await conn.execute(
            LOCK_SUBSCRIPTIONS, sorted({one.key.subscription_id for one in settlements})
        )
        rows = await conn.fetch(SETTLE, *_arrays(settlements, _SETTLED))
        written = {row["id"] for row in rows}
        done = [one for one in settlements if one.id in written]
        if not done:
            return 0
        arrived = [one for one in done if one.state is DeliveryState.DELIVERED]
        dead = [one for one in done if one.state is DeliveryState.DEAD]
        await _tell_hooks(conn, done)
        if news := [one for one in done if _is_news(one)]:
            await conn.execute(RECORD, *_arrays(news, _NEWS))
        if arrived:
            await conn.execute(ARRIVED, [one.key.subscription_id for one in arrived])
        if dead:
            await _bury(conn, dead, disable_after)
        if left := arrived + dead + [one for one in done if one.untried]:
            released = await conn.fetchval(RELEASE, *_arrays(left, _PAIR))
            if released:
                await conn.execute(TELL_LANES)
        return len(done)


def _touches_stack(one: Settlement) -> bool:
    return one.hook_id is not None or one.state is DeliveryState.DEAD


def _is_news(one: Settlement) -> bool:
    """What was given up; and the arrival of notices alone, for else each event would be two."""
    if one.state is DeliveryState.DEAD:
        return not one.event_type.startswith(SILENT)
    return one.state is DeliveryState.DELIVERED and one.hook_id is not None


async def _tell_hooks(conn: Any, done: Sequence[Settlement]) -> None:
    """Set the deadlines of hooks by what became of their notices."""
    tried = [one for one in done if not one.untried]
    by_state = {
        state: [one for one in tried if one.hook_id is not None and one.state is state]
        for state in DeliveryState
    }
    if arrived := by_state[DeliveryState.DELIVERED]:
        await conn.execute(TOLD, *_arrays(arrived, _HOOK))
    if failed := by_state[DeliveryState.PENDING]:
        await conn.execute(NOT_YET_TOLD, *_arrays(failed, _HOOK), [o.wait + o.left for o in failed])
    if dead := by_state[DeliveryState.DEAD]:
        await mark_unheard(conn, *_arrays(dead, _HOOK))
    if arrived:
        await conn.execute(TELL_TIMERS)


async def _bury(conn: Any, dead: Sequence[Settlement], disable_after: int) -> None:
    ids, gone = [one.key.subscription_id for one in dead], [one.gone for one in dead]
    rows = await conn.fetch(GIVEN_UP, ids, gone, disable_after)
    now = [subscriptions.record_of(row) for row in rows]
    disabled = [one for one in now if one.state == SubscriptionState.DISABLED]
    told = [News(Kind.DISABLED, one, one.reason, "headgate") for one in disabled]
    await record_news(conn, told)


_Columns = tuple[Callable[[Settlement], Any], ...]

_PAIR: _Columns = (lambda o: o.key.subscription_id, lambda o: o.key.stack_id)
_HOOK: _Columns = (lambda o: o.key.stack_id, lambda o: o.hook_id)
_SETTLED: _Columns = (
    lambda o: o.key.stack_id, lambda o: o.key.sequence, lambda o: o.key.subscription_id,
    lambda o: o.key.claim, lambda o: o.state, lambda o: o.code, lambda o: o.error,
    lambda o: o.answer, lambda o: o.wait, lambda o: o.untried,
)  # fmt: skip
_NEWS: _Columns = (
    lambda o: o.key.stack_id, lambda o: o.key.sequence, lambda o: o.key.subscription_id,
    lambda o: o.id, lambda o: o.event_id, lambda o: o.event_type, lambda o: o.channel,
    lambda o: o.target, lambda o: o.attempts, lambda o: o.code, lambda o: o.error,
    lambda o: o.state,
)  # fmt: skip


def _arrays(settlements: Sequence[Settlement], columns: _Columns) -> list[list[Any]]:
    return [[column(one) for one in settlements] for column in columns]
