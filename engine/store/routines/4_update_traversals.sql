-- `advance` writes the row of a traversal once: `traversal_changes` decides what the changed nodes change in it,
-- and `update_traversals` writes that when the claims are made, which decide when it is next due.
-- Only `advance` calls them, so its planner settings apply.
drop function if exists update_traversals(timestamptz, changed_node[], node_key[]);
drop function if exists update_traversals(timestamptz, interval, due_traversal[], traversal_change[], node_key[]);
drop function if exists traversal_changes(timestamptz, changed_node[], node_key[]);

-- The numbers of active and blocked nodes, and the working time (1_working_time.sql), of the traversals of
-- changed nodes. A traversal without active nodes is ending. p_ready: nodes that became ready.
create function traversal_changes(p_now timestamptz, p_changed changed_node[], p_ready node_key[])
returns traversal_change[]
language plpgsql as $$
declare
    v_changes traversal_change[];
begin
    with changed as (
        select * from unnest(p_changed)
    )
    select coalesce(array_agg(row (u.*)::traversal_change), '{}') into v_changes
      from (select t.stack_id, t.number, t.project, t.labelled,
                   case when t.state = 'running' and t.active_nodes + d.active = 0
                        then 'ending' else t.state end as state,
                   t.active_nodes + d.active, t.blocked_nodes + d.blocked,
                   working_time_at(t.working_time, t.working_since, p_now),
                   working_time_since(t.state, t.active_nodes + d.active,
                                      t.blocked_nodes + d.blocked, p_now),
                   t.accepted or d.accepted
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
             cross join lateral (
                   select * from traversal t
                    where t.stack_id = d.stack_id and t.number = d.traversal offset 0) t) u;
    return v_changes;
end;
$$;

-- Writes p_changes, and when these traversals, those of p_touched, and the current ones of their stacks are
-- next due. p_ends: traversals that the worker ends now; another one may try after p_lease. p_is_due: one of
-- them is due. p_labelled: one of them has nodes with a label.
create function update_traversals(p_now timestamptz, p_lease interval, p_touched due_traversal[],
                                  p_changes traversal_change[], p_ends node_key[],
                                  out p_is_due boolean, out p_labelled boolean)
language plpgsql as $$
begin
    with touched as (
        select k.stack_id, k.traversal, bool_or(k.is_changed) as is_changed, bool_or(k.ends) as ends,
               max(k.state) as state, max(k.active_nodes) as active_nodes,
               max(k.blocked_nodes) as blocked_nodes, max(k.working_time) as working_time,
               max(k.working_since) as working_since, bool_or(k.accepted) as accepted
          from (select c.stack_id, c.traversal, true as is_changed, false as ends, c.state,
                       c.active_nodes, c.blocked_nodes, c.working_time, c.working_since, c.accepted
                  from unnest(p_changes) c
                union all
                select d.stack_id, d.traversal, false, false, null, null, null, null, null, null
                  from unnest(p_touched) d
                union all
                select d.stack_id, d.current_traversal, false, false, null, null, null, null, null, null
                  from unnest(p_touched) d
                union all
                select e.stack_id, e.traversal, false, true, null, null, null, null, null, null
                  from unnest(p_ends) e) k
         group by 1, 2
    ), updated as (
        update traversal t
           set active_nodes = coalesce(k.active_nodes, t.active_nodes),
               blocked_nodes = coalesce(k.blocked_nodes, t.blocked_nodes),
               working_time = coalesce(k.working_time, t.working_time),
               working_since = case when k.is_changed then k.working_since else t.working_since end,
               accepted = coalesce(k.accepted, t.accepted),
               state = coalesce(k.state, t.state),
               wake_at = case when t.state = 'ending' or k.state = 'ending'
                              then case when k.ends then p_now + p_lease
                                        when k.is_changed then p_now else t.wake_at end
                              else least(
                   case when t.labelled then
                       (select min(n.wake_at) from node n
                         where n.stack_id = t.stack_id and n.traversal = t.number
                           and n.label = '' and n.wake_at is not null) else
                       (select min(n.wake_at) from node n
                         where n.stack_id = t.stack_id and n.traversal = t.number
                           and n.wake_at is not null) end,
                   case when t.state = 'running' -- and not ending, see above
                        then time_limit_at(
                                 coalesce(k.working_time, t.working_time),
                                 case when k.is_changed then k.working_since else t.working_since end,
                                 t.time_limit) end) end
          from touched k
         where t.stack_id = k.stack_id and t.number = k.traversal
           and (k.is_changed or t.wake_at is not null)
        returning t.wake_at, t.labelled
    )
    select coalesce(bool_or(wake_at <= p_now), false), coalesce(bool_or(labelled), false)
      into p_is_due, p_labelled from updated;
end;
$$;
