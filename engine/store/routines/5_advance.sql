-- Applies the decisions of the node machine, wakes dependents and claims due work, for any number of
-- nodes and stacks, in one call and one transaction. It calls one function for each part.
--
-- Every writer of a stack's nodes, hooks or events first locks the stack's row; several stacks in the
-- order of their IDs. So commits to one stack are serial, and different stacks are independent.
--
-- p_steps: [{stack_id, traversal, node, claim, state, phase, operation, passed, wake_at, progress,
--            attempts, reason, confirmed, awaits, resource, kept, hook, events}], one for each node that
--            changed its state. A step with an outdated claim is ignored: another worker has the node.
--            A step that opens hooks in an ended traversal is refused: nothing is written, the claim
--            remains valid, and the worker decides again (engine/node/machine.py).
-- p_after: the project that was served last; the others come first.
-- p_bytes: limit of the approximate size of the documents of newly claimed nodes; one node is always
-- claimed. Negative: their documents are not read.
-- p_suspects: false: claim no node whose last worker ended while it had the node, because the worker
-- makes the last try of such a node now.
--
-- Returns rows of these kinds:
--   turn     the project that was served last this time
--   refused  a step that was refused, with the state and reason of its traversal
--   end      a traversal to end: it has no active node, or its time limit is reached
--   unread   a claimed node whose documents are not read: its workers died too often, or it is too
--            large for one statement
--   node     a node for p_worker: it kept the node, or claims it now
drop function if exists advance(text, interval, integer, jsonb);
drop function if exists advance(text, interval, integer, jsonb, text);
drop function if exists advance(text, interval, integer, jsonb, text, bigint);
drop function if exists advance(text, interval, integer, jsonb, text, bigint, boolean);

create function advance(p_worker text, p_lease interval, p_want integer, p_steps jsonb,
                        p_after text, p_bytes bigint, p_suspects boolean)
returns setof advance_row
language plpgsql
-- Search by key. Planning each call costs more than executing it, and a plan made while the tables are
-- small must not scan them. The settings apply until this function ends, also in functions it calls.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_stacks uuid[] := '{}';
    v_detached uuid[];
    v_moved moved_node[];
    v_refused refused_step[];
    v_events event_draft[] := '{}';
    v_started event_draft[];
    v_mine node_key[] := '{}';
    v_claimed node_key[];
    v_unread unread_node[];
    v_due node_key[] := '{}';
    v_ends node_key[];
    v_served text;
    v_left boolean;
    v_row advance_row;
begin
    if jsonb_array_length(p_steps) > 0 then
        select array_agg(distinct (s ->> 'stack_id')::uuid) into v_stacks
          from jsonb_array_elements(p_steps) s;
        if p_steps @? '$[*].resource ? (@.write == "remove")' then
            v_detached := stacks_to_detach(p_steps);
        end if;
        perform 1 from stack where id = any (v_stacks || v_detached)
         order by id for no key update;
        v_now := clock_timestamp();
        select a.p_moved, a.p_events, a.p_refused into v_moved, v_events, v_refused
          from apply_transitions(p_worker, p_lease, v_now, p_steps) a;
        perform update_clock(v_now, v_moved, wake_dependents(v_now, v_moved));
        select coalesce(array_agg(row (m.stack_id, m.traversal, m.node)::node_key), '{}')
          into v_mine from unnest(v_moved) m where m.state = 'running';
        if exists (select 1 from jsonb_array_elements(p_steps) s where s ->> 'hook' is not null) then
            perform pg_notify('headgate_hook', '');
        end if;
    end if;

    if v_detached is not null then
        perform detach_stacks(v_detached);
    end if;

    if p_want > 0 then
        select c.p_now, c.p_due, c.p_ends, c.p_claimed, c.p_unread, c.p_served, c.p_events
          into v_now, v_due, v_ends, v_claimed, v_unread, v_served, v_started
          from claim_due(p_worker, p_lease, v_now, p_want, p_after, p_bytes, p_suspects) c;
        v_events := v_events || v_started;
        v_mine := v_mine || v_claimed;
    end if;

    if cardinality(v_events) > 0 then
        perform record_events(v_events);
    end if;

    with touched as (
        select s as stack_id from unnest(v_stacks) s
        union select d.stack_id from unnest(v_due) d
    ), timed as (
        update traversal t
           set wake_at = case when t.state = 'ending' then t.wake_at else least(
                   (select min(n.wake_at) from node n
                     where n.stack_id = t.stack_id and n.traversal = t.number
                       and n.wake_at is not null),
                   case when t.state = 'running'
                        then working_time_over_at(t.worked, t.working_since, t.time_limit) end) end
          from touched
         where t.stack_id = touched.stack_id and t.wake_at is not null
        returning t.wake_at
    )
    select bool_or(wake_at <= v_now) into v_left from timed;
    if v_left then
        perform pg_notify('headgate_work', '');
    end if;

    if exists (select from credential) then
        perform delete_unused_credentials(v_stacks);
    end if;

    v_row.now := v_now;
    if v_served is not null then
        v_row.kind := 'turn';
        v_row.project := v_served;
        return next v_row;
    end if;
    v_row.kind := 'refused';
    for v_row.stack_id, v_row.traversal, v_row.node, v_row.claim, v_row.traversal_state,
        v_row.reason in
        select * from unnest(v_refused)
    loop
        return next v_row;
    end loop;
    v_row.traversal_state := null;
    v_row.reason := null;
    v_row.kind := 'end';
    for v_row.stack_id, v_row.project, v_row.stack_name, v_row.traversal in
        select e.stack_id, s.project, s.name, e.traversal
          from unnest(v_ends) e join stack s on s.id = e.stack_id
    loop
        return next v_row;
    end loop;
    v_row.kind := 'unread';
    for v_row.stack_id, v_row.project, v_row.stack_name, v_row.traversal, v_row.node, v_row.claim,
        v_row.resource_id, v_row.replacement_id, v_row.name, v_row.type, v_row.operation,
        v_row.direction, v_row.phase, v_row.passed, v_row.attempts, v_row.started, v_row.path,
        v_row.lost, v_row.size in
        select n.stack_id, st.project, st.name, n.traversal, n.id, n.claim, n.resource_id,
               n.replacement_id, n.name, n.type, n.operation, n.direction, n.phase, n.passed,
               n.attempts, n.started_at is not null, st.path, n.lost, u.size
          from unnest(v_unread) u
         cross join lateral (
               select * from node n
                where n.stack_id = u.stack_id and n.traversal = u.traversal
                  and n.id = u.id offset 0) n
         cross join lateral (select * from stack st where st.id = n.stack_id offset 0) st
    loop
        return next v_row;
    end loop;
    return query select * from read_claimed(v_mine, v_now);
end;
$$;
