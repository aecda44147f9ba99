-- Makes workers call the operations of waiting nodes again: now, or, if the operation is being called,
-- when that call ends. The caller has locked the stacks' rows.
create or replace function wake_nodes(p_nodes node_key[]) returns void
language sql as $$
    with woken as (
        update node n
           set woken = k.state = 'running',
               wake_at = case k.state when 'parked' then clock_timestamp() else n.wake_at end
          from (select n.stack_id, n.traversal, n.id, n.state,
                       n.state = 'parked' and n.wake_at is null as held
                  from unnest(p_nodes) w
                  join node n on n.stack_id = w.stack_id and n.traversal = w.traversal
                             and n.id = w.id
                 where n.phase = 'act' and n.state in ('parked', 'running')) k
         where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id
        returning k.stack_id, k.traversal, k.state, k.held
    )
    update traversal t
       set held = t.held - w.held,
           wake_at = case when w.due then clock_timestamp() else t.wake_at end,
           worked = working_time(t.worked, t.working_since, clock_timestamp()),
           working_since = working_time_since(t.state, t.active, t.held - w.held, clock_timestamp())
      from (select stack_id, traversal, bool_or(state = 'parked') as due,
                   (count(*) filter (where held))::integer as held
              from woken group by 1, 2) w
     where t.stack_id = w.stack_id and t.number = w.traversal;
    select pg_notify('headgate_work', '');
$$;
