-- Releases the nodes that waited for ended nodes: in the same traversal if they are done, in the newer
-- one also if they failed. Returns the nodes that became ready.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists wake_dependents(timestamptz, changed_node[]);

create function wake_dependents(p_now timestamptz, p_changed changed_node[]) returns node_key[]
language plpgsql as $$
declare
    v_ready node_key[];
begin
    with changed as (
        select * from unnest(p_changed)
    ), satisfied as (
        select m.stack_id, m.traversal, r.id, count(*) as times, null::uuid as replacement_id
          from changed m cross join unnest(m.dependents) r (id)
         where m.state = 'done' group by 1, 2, 3
        union all
        -- Nodes that waited for an earlier operation continue with the replacement it created.
        select m.stack_id, m.current_traversal, m.successor, 1, m.replacement_id
          from changed m
         where m.successor is not null and is_ended(m.state)
    ), released as (
        update node n
           set pending_dependencies = n.pending_dependencies - f.times,
               resource_id = case when n.direction = 'forward'
                                  then coalesce(f.replacement_id, n.resource_id)
                                  else n.resource_id end,
               state = case when n.pending_dependencies = f.times then 'ready' else n.state end,
               wake_at = case when n.pending_dependencies = f.times then p_now else n.wake_at end
          from (select stack_id, traversal, id, sum(times)::integer as times,
                       (array_agg(replacement_id) filter (where replacement_id is not null))[1]
                           as replacement_id
                  from satisfied group by 1, 2, 3) f
         where n.stack_id = f.stack_id and n.traversal = f.traversal and n.id = f.id
           and n.state = 'waiting'
        returning n.stack_id, n.traversal, n.id, n.state
    )
    select array_agg(row (stack_id, traversal, id)::node_key) into v_ready
      from released where state = 'ready';
    return v_ready;
end;
$$;
