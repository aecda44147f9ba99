-- Updates the traversals of moved nodes: the numbers of active and held nodes, and the working time
-- (1_working_time.sql). A traversal without active nodes is ending. p_ready: nodes that became ready.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists update_clock(timestamptz, moved_node[], node_key[]);

create function update_clock(p_now timestamptz, p_moved moved_node[], p_ready node_key[])
returns void
language plpgsql as $$
begin
    with moved as (
        select * from unnest(p_moved)
    )
    update traversal t
       set active = t.active + d.active, held = t.held + d.held, wake_at = p_now,
           worked = working_time(t.worked, t.working_since, p_now),
           working_since = working_time_since(t.state, t.active + d.active,
                                              t.held + d.held, p_now),
           began = t.began or d.began,
           state = case when t.state = 'running' and t.active + d.active = 0
                        then 'ending' else t.state end
      from (select c.stack_id, c.traversal, sum(c.active)::integer as active,
                   sum(c.held)::integer as held, bool_or(c.began) as began
              from (select stack_id, traversal,
                           operation = 'begin' and state = 'done' as began,
                           case when state in ('done', 'failed', 'stopped', 'dropped')
                                then -1 else 0 end as active,
                           holds::integer - held::integer as held
                      from moved
                    union all
                    select r.stack_id, r.traversal, false, 1, 0 from unnest(p_ready) r
                    union all -- a node that waited for an earlier operation was counted
                    select stack_id, current, false, -1, 0 from moved
                     where successor is not null
                       and state in ('done', 'failed', 'stopped', 'dropped')) c
             group by 1, 2) d
     where t.stack_id = d.stack_id and t.number = d.traversal;
end;
$$;
