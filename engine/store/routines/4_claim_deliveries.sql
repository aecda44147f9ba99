-- Claims due deliveries of one queue for p_lease seconds: p_limit attempts, of which at most
-- p_retry_limit are retries, and p_per_subscription at a time for one subscription, of which p_active
-- are under way. For ordered subscriptions, up to p_following deliveries after the first one of a stack
-- are claimed with it, except for the channels in p_rate_limited.
--
-- It finds the subscriptions with due deliveries, and then reads only the deliveries that have waited
-- longest, as many as p_limit allows. The cost depends on the number of subscriptions and on p_limit, not
-- on the number of deliveries.
--
-- Deliveries are found by ID: for stack, number and subscription, PostgreSQL may choose an index whose
-- first column is the subscription, and read all deliveries of the subscription.
drop function if exists claim_deliveries(boolean, uuid[], bigint[], bigint, bigint, bigint,
                                         double precision, bigint, text[]);

create function claim_deliveries(
    p_urgent boolean, p_subscriptions uuid[], p_active bigint[], p_per_subscription bigint,
    p_limit bigint, p_retry_limit bigint, p_lease double precision, p_following bigint,
    p_rate_limited text[])
returns table (stack_id uuid, sequence bigint, subscription_id uuid, claim integer, id uuid)
language plpgsql
-- Search by key also in tables that were empty when the plan was made or have no statistics.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    return query
    with ready as materialized (
        -- Subscriptions whose first delivery is a first attempt, and those with a retry, have separate
        -- shares: many failing endpoints do not delay those that work.
        select w.id, s.ordered, least(p_per_subscription - w.active, p_limit) as free,
               row_number() over (partition by w.is_retry order by w.next_at, w.id) as place
          from (select sender.*, coalesce((select b.active from unnest(p_subscriptions, p_active)
                                                  b (id, active) where b.id = sender.id), 0) as active
                  from subscriptions_with_turns(p_urgent) sender
                 where sender.next_at <= now() offset 0) w
         cross join lateral (
               select s.ordered from subscription s
                where s.id = w.id and s.state = 'enabled' offset 0) s
         where w.active < p_per_subscription
    ), candidate as materialized (
        select d.*, row_number() over (partition by d.is_retry order by d.turn, d.next_at)
                        as place
          from ready r
         cross join lateral (
               select d.id, d.next_at, is_retry(d.attempts) as is_retry,
                      row_number() over (order by d.subscription_id, d.next_at) as turn
                 from delivery d
                where delivery_is_due(d.state, d.next_at, now()) and d.urgent = p_urgent
                  -- A range in the order of the index `delivery_due`; no other index has that order.
                  and d.subscription_id >= r.id and d.subscription_id <= r.id
                  -- The leases of a dead dispatcher end together: the first delivery comes first.
                  and not (r.ordered and exists (
                      select 1 from delivery e
                       where e.subscription_id = d.subscription_id and e.stack_id = d.stack_id
                         and delivery_has_turn(e.state, e.next_at)
                         and e.sequence < d.sequence))
                order by d.subscription_id, d.next_at limit r.free) d
         where r.place <= p_limit
    ), chosen as (
        select d.id, d.stack_id, d.subscription_id, c.is_retry
          from candidate c
          join delivery d on d.id = c.id
         where (not c.is_retry or c.place <= p_retry_limit)
           -- Not the condition of the partial indexes, which do not help to find an ID.
           and case when delivery_is_due(d.state, d.next_at, now()) then true end
         order by c.is_retry, c.place limit p_limit
           for no key update of d skip locked
    ), following as materialized (
        select b.row, b.nth
          from chosen c
         cross join lateral (
               select s.id from subscription s
                where s.id = c.subscription_id and s.channel <> all (p_rate_limited) offset 0) s
         cross join lateral (
               select d.ctid as row, d.urgent, row_number() over (order by d.sequence) as nth
                 from delivery d
                where d.subscription_id = c.subscription_id and d.stack_id = c.stack_id
                  and delivery_is_blocked(d.state, d.next_at)
                order by d.sequence limit p_following) b
         where not c.is_retry and b.urgent = p_urgent
    ), locked as (
        select d.id, d.stack_id, d.subscription_id, b.nth
          from following b
          join delivery d on d.ctid = b.row
         where delivery_is_blocked(d.state, d.next_at)
           for no key update of d skip locked
    ), counted as (
        select h.*, row_number() over (partition by h.subscription_id, h.stack_id order by h.nth)
                        as place
          from locked h
    ), run as materialized (
        select c.id from chosen c
         union all
        -- Up to the first delivery that another dispatcher has claimed, without gaps.
        select c.id from counted c where c.place = c.nth
    ), claimed as (
        update delivery d
           set claim = d.claim + 1, attempts = d.attempts + 1,
               next_at = now() + make_interval(secs => p_lease)
          from run r
         where d.id = r.id
           and (delivery_is_blocked(d.state, d.next_at)
                or delivery_is_due(d.state, d.next_at, now()))
        returning d.stack_id, d.sequence, d.subscription_id, d.claim, d.id
    )
    select c.stack_id, c.sequence, c.subscription_id, c.claim, c.id from claimed c
     order by c.stack_id, c.sequence;
end;
$$;
