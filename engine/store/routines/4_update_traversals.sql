-- Updates the traversals of changed nodes: the numbers of active and blocked nodes, and the working time
-- (1_working_time.sql). A traversal without active nodes is ending. p_ready: nodes that became ready.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists update_traversals(timestamptz, changed_node[], node_key[]);

create function update_traversals(p_now timestamptz, p_changed changed_node[], p_ready node_key[])
returns void
language plpgsql as $$
begin
    with changed as (
        select * from unnest(p_changed)
    )
    update traversal t
       set active_nodes = t.active_nodes + d.active, blocked_nodes = t.blocked_nodes + d.blocked,
           wake_at = p_now,
           working_time = working_time_at(t.working_time, t.working_since, p_now),
           working_since = working_time_since(t.state, t.active_nodes + d.active,
                                              t.blocked_nodes + d.blocked, p_now),
           accepted = t.accepted or d.accepted,
           state = case when t.state = 'running' and t.active_nodes + d.active = 0
                        then 'ending' else t.state end
      from (select c.stack_id, c.traversal, sum(c.active)::integer as active,
                   sum(c.blocked)::integer as blocked, bool_or(c.accepted) as accepted
              from (select stack_id, traversal,
                           operation = 'begin' and state = 'done' as accepted,
                           case when is_ended(state) then -1 else 0 end
                           + was_waiting::integer as active,
                           is_blocked::integer - was_blocked::integer as blocked
                      from changed
                    union all
                    select r.stack_id, r.traversal, false, 1, 0 from unnest(p_ready) r
                    union all -- a node that waited for an earlier operation was counted
                    select stack_id, current_traversal, false, -1, 0 from changed
                     where successor is not null and is_ended(state)) c
             group by 1, 2) d
     where t.stack_id = d.stack_id and t.number = d.traversal;
end;
$$;
