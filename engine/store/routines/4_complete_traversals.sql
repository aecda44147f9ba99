-- Ends traversals whose nodes have all succeeded, in one transaction for any number of stacks: writes
-- the result and its event, and wakes the nodes of parent stacks that wait for them.
--
-- It never waits for a lock, so a locked stack does not delay the others. It leaves to
-- engine/service/traversals/end.py, which ends traversals one at a time: stacks that another transaction
-- has locked, also if only the parent is locked; traversals that failed, stopped or timed out; deletes
-- and rollbacks; and nested stacks that have a credential to pass on.
--
-- p_ends: traversals, without a node. p_results: by action, the result of a traversal whose nodes have
-- all succeeded (event_type, state, status, shown, reason). p_unsuccessful: the states of nodes that
-- have not succeeded. The caller decides both, by engine/plan/traversal_result.py.
-- p_ended: traversals that this call has ended, or that had been ended before. p_parents_due: it has
-- made nodes of parent stacks due.
drop function if exists complete_traversals(node_key[], jsonb);

create or replace function complete_traversals(p_ends node_key[], p_results jsonb,
                                               p_unsuccessful text[],
                                               out p_ended node_key[], out p_parents_due boolean)
language plpgsql volatile
-- Search by key: see `advance`.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_locked uuid[];
    v_ends node_key[];
    v_parents node_key[];
begin
    p_ended := '{}';
    p_parents_due := false;
    select array_agg(l.id) into v_locked
      from (select s.id from stack s
             where s.id = any (array(
                   select unnest(array[c.id, c.parent_id])
                     from unnest(p_ends) e join stack c on c.id = e.stack_id))
               for no key update skip locked) l;
    -- Read under the locks.
    select array_agg(e::node_key) filter (where t.ending), array_agg(e::node_key)
      into v_ends, p_ended
      from unnest(p_ends) e
     cross join lateral (
           select s.parent_id, s.traversal from stack s
            where s.id = e.stack_id and e.stack_id = any (v_locked)
              and (s.parent_id is null or s.parent_id = any (v_locked)) offset 0) s
     cross join lateral (
           select t.action, t.state = 'ending' and s.traversal = t.number as ending,
                  t.state = 'running' as running
             from traversal t
            where t.stack_id = e.stack_id and t.number = e.traversal offset 0) t
     where not t.running
       and (not t.ending
            or t.action <> 'DELETE' and t.action <> 'ROLLBACK'
               and not (s.parent_id is not null
                        and exists (select from credential c
                                     where c.stack_id = e.stack_id offset 0))
               and not exists (select from node n
                                where n.stack_id = e.stack_id and n.traversal = e.traversal
                                  and n.state = any (p_unsuccessful) offset 0));
    p_ended := coalesce(p_ended, '{}');
    if v_ends is null then
        return;
    end if;
    perform record_events(
        (select array_agg(row (t.stack_id, r.result ->> 'event_type', null, null,
                               t.stack_id::text, t.action, r.result ->> 'shown',
                               r.result ->> 'reason',
                               jsonb_build_object('traversal', t.number, 'version', t.version,
                                                  'status', r.result -> 'status'))::event_draft)
           from unnest(v_ends) e
           join traversal t on t.stack_id = e.stack_id and t.number = e.traversal
          cross join lateral (select p_results -> t.action as result) r));
    update traversal t
       set state = p_results -> t.action ->> 'state', reason = p_results -> t.action ->> 'reason',
           wake_at = null, ended_at = clock_timestamp()
      from unnest(v_ends) e
     where t.stack_id = e.stack_id and t.number = e.traversal;
    with nested as (
        select s.parent_id, c.parent_traversal, max(c.working_time) as working_time,
               array_agg(c.parent_node) as nodes
          from unnest(v_ends) e
         cross join lateral (
               select s.parent_id from stack s where s.id = e.stack_id offset 0) s
         cross join lateral (
               select c.parent_traversal, c.parent_node, c.working_time from traversal c
                where c.stack_id = e.stack_id and c.number = e.traversal offset 0) c
         where s.parent_id is not null
         group by 1, 2
    ), timed as (
        update traversal p
           set working_time = working_time_after_nested(
                   p.working_time, p.working_since, n.working_time, clock_timestamp())
          from nested n
         where p.stack_id = n.parent_id and p.number = n.parent_traversal
        returning p.stack_id, p.number, n.nodes
    )
    select array_agg(row (w.stack_id, w.number, w.node)::node_key) into v_parents
      from (select t.stack_id, t.number, unnest(t.nodes) as node from timed t) w;
    if v_parents is not null then
        p_parents_due := true;
        perform wake_nodes(v_parents);
    end if;
    if exists (select from credential c where c.stack_id = any (v_locked)) then
        perform delete_unused_credentials(array(select e.stack_id from unnest(v_ends) e));
    end if;
end;
$$;
