"""Storing what is told of subscriptions; see channels/news.py."""

from collections.abc import Sequence

from channels.news import News
from engine.store.database import Connection

# Numbered per subscription, and queued for publishing like the events of stacks.
RECORD = """
with draft as (
    select d.*, row_number() over (partition by d.id order by d.ordinality) as nth,
           count(*) over (partition by d.id) as many
      from unnest($1::uuid[], $2::text[], $3::text[], $4::jsonb[])
           with ordinality d (id, type, reason, data, ordinality)
), numbered as (
    update subscription s set sequence = s.sequence + d.many
      from (select distinct id, many from draft) d
     where s.id = d.id
    returning s.id, s.project, s.sequence - d.many as base, s.sequence as last
), queued as (
    insert into outbox (stack_id, project, first, last)
    select id, project, base + 1, last from numbered
)
insert into event (stack_id, sequence, id, type, time, reason, data)
select d.id, n.base + d.nth, gen_random_uuid(), d.type, now(), d.reason, d.data
  from draft d join numbered n on n.id = d.id
"""
TELL_PUBLISHERS = "select pg_notify('headgate_outbox', '')"


async def record_news(conn: Connection, told: Sequence[News]) -> None:
    """In the transaction that brings them about, while the subscriptions are there."""
    if told:
        await conn.execute(
            RECORD,
            [one.about.id for one in told],
            [one.type for one in told],
            [one.reason for one in told],
            [one.data for one in told],
        )
        await conn.execute(TELL_PUBLISHERS)
