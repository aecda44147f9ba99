-- The subscriptions with a delivery that has its turn, and the time of the first one. It steps through an
-- index from one subscription to the next: the cost depends on their number, not on that of deliveries.
create or replace function subscriptions_with_turns(p_urgent boolean)
returns table (id uuid, next_at timestamptz, is_retry boolean)
language sql stable as $$
    with recursive sender (id, next_at, attempts) as (
        (select d.subscription_id, d.next_at, d.attempts from delivery d
          where delivery_has_turn(d.state, d.next_at) and d.urgent = p_urgent
          order by d.subscription_id, d.next_at limit 1)
        union all
        select n.* from sender
         cross join lateral (
               select d.subscription_id, d.next_at, d.attempts from delivery d
                where delivery_has_turn(d.state, d.next_at) and d.urgent = p_urgent
                  and d.subscription_id > sender.id
                order by d.subscription_id, d.next_at limit 1) n
    )
    select s.id, s.next_at, is_retry(s.attempts) from sender s
$$;
