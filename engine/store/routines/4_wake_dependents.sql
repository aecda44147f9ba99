-- Releases the nodes that waited for ended nodes: in the same traversal if they are done, in the newer
-- one also if they failed. Returns the nodes that became ready.
--
-- A delete that was planned in case its resource is replaced is done at once if the resource was not
-- replaced: no worker claims it, because the decision would be the same (`cleanup_change` in
-- engine/plan/resource_change.py, and `begin` in engine/node/decisions.py). The next round of the loop
-- releases the nodes that waited for it. In the last round, such deletes become ready.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists wake_dependents(timestamptz, changed_node[]);

create function wake_dependents(p_now timestamptz, p_changed changed_node[]) returns node_key[]
language plpgsql as $$
declare
    v_changed changed_node[] := p_changed;
    v_released node_key[];
    v_ready node_key[] := '{}';
    v_round integer := 0;
begin
    while cardinality(v_changed) > 0 loop
        v_round := v_round + 1;
        with changed as (
            select * from unnest(v_changed)
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
                   (state, wake_at, ended_at) = (
                       select m.state, case m.state when 'ready' then p_now end,
                              case m.state when 'done' then p_now end
                         from (select case when n.pending_dependencies <> f.times then n.state
                                           when v_round < 100 and n.direction = 'cleanup'
                                                and n.operation = 'delete' and n.phase = 'pre'
                                                and (n.definition ->> 'only_if_replaced')::boolean
                                                and exists (
                                                    select from resource r
                                                     where r.stack_id = n.stack_id
                                                       and r.id = n.resource_id
                                                       and r.replaced_by is null)
                                           then 'done' else 'ready' end as state) m)
              from (select stack_id, traversal, id, sum(times)::integer as times,
                           (array_agg(replacement_id) filter (where replacement_id is not null))[1]
                               as replacement_id
                      from satisfied group by 1, 2, 3) f
             where n.stack_id = f.stack_id and n.traversal = f.traversal and n.id = f.id
               and n.state = 'waiting'
            returning n.stack_id, n.traversal, n.id, n.state, n.operation, n.dependents
        )
        select coalesce(array_agg(row (stack_id, traversal, id)::node_key)
                        filter (where state = 'ready'), '{}'),
               coalesce(array_agg(row (stack_id, traversal, id, state, operation, false, false,
                                       dependents, null, null, null, true)::changed_node)
                        filter (where state = 'done'), '{}')
          into v_released, v_changed
          from released;
        v_ready := v_ready || v_released;
    end loop;
    return v_ready;
end;
$$;
