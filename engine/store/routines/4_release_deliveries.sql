-- Makes the earliest blocked delivery of each given (subscription, stack) due, unless one is under way.
-- The caller has locked the subscriptions' rows. Returns the number of deliveries.
create or replace function release_deliveries(p_subscriptions uuid[], p_stacks uuid[])
returns bigint
language sql as $$
    with pair as (
        select distinct subscription_id, stack_id
          from unnest(p_subscriptions, p_stacks) p (subscription_id, stack_id)
    ), head as materialized (
        select d.id
          from pair p
         cross join lateral (
               select d.id from delivery d
                where d.subscription_id = p.subscription_id and d.stack_id = p.stack_id
                  and delivery_is_blocked(d.state, d.next_at)
                order by d.sequence limit 1) d
         where not exists (
               select 1 from delivery d
                where d.subscription_id = p.subscription_id and d.stack_id = p.stack_id
                  and delivery_has_turn(d.state, d.next_at))
    ), released as (
        update delivery d set next_at = clock_timestamp()
          from head h
         where d.id = h.id
        returning 1
    )
    select count(*) from released
$$;
