-- Makes workers call the operations of waiting nodes again: now, or, if the operation is being called,
-- when that call ends. The caller has locked the stacks' rows.
create or replace function wake_nodes(p_nodes node_key[]) returns void
language sql as $$
    with called as (
        update node n
           set call_again = k.state = 'running',
               wake_at = case k.state when 'parked' then clock_timestamp() else n.wake_at end
          from (select n.stack_id, n.traversal, n.id, n.state,
                       n.state = 'parked' and n.wake_at is null as is_blocked
                  from unnest(p_nodes) w
                  join node n on n.stack_id = w.stack_id and n.traversal = w.traversal
                             and n.id = w.id
                 where n.phase = 'execute' and n.state in ('parked', 'running')) k
         where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id
        returning k.stack_id, k.traversal, k.state, k.is_blocked
    )
    update traversal t
       set blocked_nodes = t.blocked_nodes - w.unblocked,
           wake_at = case when w.due then clock_timestamp() else t.wake_at end,
           working_time = working_time_at(t.working_time, t.working_since, clock_timestamp()),
           working_since = working_time_since(t.state, t.active_nodes,
                                              t.blocked_nodes - w.unblocked, clock_timestamp())
      from (select stack_id, traversal, bool_or(state = 'parked') as due,
                   (count(*) filter (where is_blocked))::integer as unblocked
              from called group by 1, 2) w
     where t.stack_id = w.stack_id and t.number = w.traversal;
    select pg_notify('headgate_work', '');
$$;
