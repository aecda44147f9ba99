"""Deliveries are claimed by key: the rows that a claim reads grow with the subscriptions that have
pending deliveries and with the claimed deliveries, not with all deliveries, also without table
statistics.
"""

from collections import Counter

import pytest

from channels.store.claim import Capacity, claim
from engine.store.database import open_database
from tests.support.keys import KEYRING
from tests.support.postgres import TestServer
from tests.support.rows_read import rows_read_so_far, without_statistics

SUBSCRIPTIONS, CLAIMS = 500, 6
CAPACITY = Capacity(free=32, retries=16, each=20, busy={}, behind=2)
#: Deliveries of one stack. $4: the attempts of the first one. With order, the first of each
#: subscription is due and the others wait for it; without, all are due.
FILL = """
with k as (
    insert into stack (id, project, name, owner, version, traversal)
    values (gen_random_uuid(), 'p', 's', 'o', 1, 1) returning id
), s as (
    insert into subscription (id, project, channel, target, events, stacks, resources, types,
                              points, ordered, secrets, state, origin, tags)
    select gen_random_uuid(), 'p', 'webhook', 'http://127.0.0.1:1/', '{}', '{}', '{}', '{}', '{}',
           $3, '[]', 'enabled', 'api', '{}' from generate_series(1, $1) returning id
), e as (
    insert into event (stack_id, sequence, id, type, time, reason)
    select k.id, n, gen_random_uuid(), 'headgate.resource.create.started', now(), 'r'
      from k, generate_series(1, $2::integer) n
    returning stack_id, sequence, id
)
insert into delivery (stack_id, sequence, subscription_id, project, event_id, type, urgent, state,
                      next_at, attempts)
select e.stack_id, e.sequence, s.id, 'p', e.id, 't', false, 'pending',
       case when e.sequence = 1 or not $3 then now() end,
       case when e.sequence = 1 or not $3 then $4::integer else 0 end
  from s, e
"""


async def rows_read(
    postgres: TestServer, each: int, *, ordered: bool, analysed: str, attempts: int
) -> tuple[Counter[str], int]:
    """The rows read by some claims, and the number of claimed deliveries."""
    async with postgres.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await without_statistics(conn)
                for _ in range(7):  # PostgreSQL keeps the plan that it made for empty tables
                    await claim(conn, urgent=False, capacity=CAPACITY, lease=60.0)
                if analysed == "while empty":
                    await conn.execute("analyze")
                await conn.execute(FILL, SUBSCRIPTIONS, each, ordered, attempts)
                if analysed == "when full":
                    await conn.execute("analyze")
                await conn.execute("select pg_stat_force_next_flush()")
            async with database.connection() as conn:
                before = await rows_read_so_far(conn)
                claimed = 0
                for _ in range(CLAIMS):
                    dues = await claim(conn, urgent=False, capacity=CAPACITY, lease=60.0)
                    claimed += len(dues)
                await conn.execute("select pg_stat_force_next_flush()")
            async with database.connection() as conn:
                return await rows_read_so_far(conn) - before, claimed
        finally:
            await database.close()


@pytest.mark.parametrize("analysed", ["never", "while empty", "when full"])
@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
@pytest.mark.parametrize("attempts", [0, 3], ids=["new", "receiver gone"])
async def test_a_claim_reads_by_key(
    postgres: TestServer, ordered: bool, analysed: str, attempts: int
) -> None:
    few, claimed = await rows_read(
        postgres, 3, ordered=ordered, analysed=analysed, attempts=attempts
    )
    many, same = await rows_read(
        postgres, 24, ordered=ordered, analysed=analysed, attempts=attempts
    )
    at_once = CAPACITY.retries if attempts else CAPACITY.free * (3 if ordered else 1)
    assert claimed == same == at_once * CLAIMS
    # A step for each subscription and claim, and a few reads for each claimed delivery.
    each = 30 if ordered else 2 * CAPACITY.each + 20
    assert many["delivery"] <= SUBSCRIPTIONS * CLAIMS + each * claimed
    assert many["subscription"] <= SUBSCRIPTIONS * CLAIMS + 5 * claimed
    assert many["event"] <= 2 * claimed
    assert many["stack"] <= 2 * claimed
    assert not ordered or many.total() <= 1.3 * few.total()
