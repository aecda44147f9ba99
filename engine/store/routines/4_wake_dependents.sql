-- Releases the nodes that waited for ended nodes: in the same traversal if they are done, in the newer
-- one also if they failed. Returns the nodes that became ready.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists wake_dependents(timestamptz, moved_node[]);

create function wake_dependents(p_now timestamptz, p_moved moved_node[]) returns node_key[]
language plpgsql as $$
declare
    v_ready node_key[];
begin
    with moved as (
        select * from unnest(p_moved)
    ), freed as (
        select m.stack_id, m.traversal, r.id, count(*) as times, null::uuid as moved_to
          from moved m cross join unnest(m.requirers) r (id)
         where m.state = 'done' group by 1, 2, 3
        union all
        -- Nodes that waited for an earlier operation continue with the replacement it created.
        select m.stack_id, m.current, m.successor, 1, m.moved_to
          from moved m
         where m.successor is not null and m.state in ('done', 'failed', 'stopped', 'dropped')
    ), released as (
        update node n
           set waits = n.waits - f.times,
               resource_id = case when n.direction = 'forward'
                                  then coalesce(f.moved_to, n.resource_id)
                                  else n.resource_id end,
               state = case when n.waits = f.times then 'ready' else n.state end,
               wake_at = case when n.waits = f.times then p_now else n.wake_at end
          from (select stack_id, traversal, id, sum(times)::integer as times,
                       (array_agg(moved_to) filter (where moved_to is not null))[1] as moved_to
                  from freed group by 1, 2, 3) f
         where n.stack_id = f.stack_id and n.traversal = f.traversal and n.id = f.id
           and n.state = 'waiting'
        returning n.stack_id, n.traversal, n.id, n.state
    )
    select array_agg(row (stack_id, traversal, id)::node_key) into v_ready
      from released where state = 'ready';
    return v_ready;
end;
$$;
