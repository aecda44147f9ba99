"""Hooks that nobody could be told of: each notice was given up, or its subscription is disabled.

Their deadline runs from then, and an event says so.
"""

from collections.abc import Sequence
from uuid import UUID

from engine.store.connection import Connection
from engine.store.database import Database

# A notice may still arrive when its subscription is enabled. What was asked for again in vain has a
# new deadline, and is told of once. statement_timestamp() is one time for all of it.
UNHEARD = """
with unheard as (
    update hook h
       set deadline = statement_timestamp() + h.timeout,
           unheard_at = coalesce(h.unheard_at, statement_timestamp())
      from (select distinct * from unnest($1::uuid[], $2::uuid[])) n (stack_id, id)
     where h.stack_id = n.stack_id and h.id = n.id
       and h.state = 'waiting' and h.told_at is null and ($3 or h.unheard_at is null)
       and not exists (select 1 from delivery d
                         join subscription s on s.id = d.subscription_id and s.state = 'enabled'
                        where d.stack_id = h.stack_id and d.hook_id = h.id
                          and d.state = 'pending')
    returning h.*
)
select record_events(array_agg(
           row (stack_id, 'headgate.hook.unheard', nullif(resource_name, ''), notice ->> 'type',
                notice ->> 'physical_id', 'INIT', 'COMPLETE',
                'Hook ' || point || ' of ' || coalesce(nullif(resource_name, ''), 'the stack')
                    || ' waits, and nobody could be told',
                jsonb_build_object('hook_id', id, 'point', point, 'mode', mode))::event_draft
           order by stack_id, id))
  from unheard
 where unheard_at = statement_timestamp()
having count(*) > 0
"""
OF_DISABLED = """
select distinct d.stack_id, d.hook_id
  from subscription s
  join delivery d on d.subscription_id = s.id and d.state = 'pending' and d.hook_id is not null
  join hook h on h.stack_id = d.stack_id and h.id = d.hook_id
   and h.state = 'waiting' and h.told_at is null and h.unheard_at is null
 where s.state = 'disabled'
   and not exists (select 1 from delivery o
                     join subscription t on t.id = o.subscription_id and t.state = 'enabled'
                    where o.stack_id = d.stack_id and o.hook_id = d.hook_id
                      and o.state = 'pending')
 limit $1
"""
LOCK_STACKS = "select id from stack where id = any ($1::uuid[]) order by id for no key update"
TELL_TIMERS = "select pg_notify('headgate_hook', '')"

#: Hooks in one transaction.
AT_ONCE = 500


async def mark_unheard(
    conn: Connection, stacks: Sequence[UUID], hooks: Sequence[UUID], *, again: bool = True
) -> None:
    """Those of these hooks that nobody can be told of any more. The stacks are locked.

    again: the deadline of those that were marked before runs anew.
    """
    await conn.execute(UNHEARD, stacks, hooks, again)
    await conn.execute(TELL_TIMERS)


async def sweep_unheard(database: Database) -> bool:
    """The same for hooks whose notices wait for subscriptions that were disabled.

    Returns whether there may be more.
    """
    async with database.transaction("deliver") as conn:
        rows = await conn.fetch(OF_DISABLED, AT_ONCE)
        if rows:
            stacks, hooks = [row["stack_id"] for row in rows], [row["hook_id"] for row in rows]
            await conn.execute(LOCK_STACKS, sorted(set(stacks)))
            await mark_unheard(conn, stacks, hooks, again=False)
        return len(rows) == AT_ONCE
