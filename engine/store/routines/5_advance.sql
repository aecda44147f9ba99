-- Applies the decisions of the node machine, wakes dependents and claims due work, for any number of
-- nodes and stacks, in one call and one transaction. It calls one function for each part.
--
-- Every writer of a stack's nodes, hooks or events first locks the stack's row; several stacks in the
-- order of their IDs. So commits to one stack are serial, and different stacks are independent.
--
-- p_steps: [{stack_id, traversal, node, claim, state, phase, operation, breakpoints_hit, wake_at,
--            progress, attempts, reason, step_mode, confirmation, signal_resource_id, resource,
--            snapshot, hook, events, nodes, run, run_size, operation_key}], one for each node that
--            changed its state.
--
-- Steps that are not applied:
--   ignored  The claim is outdated, because another worker has the node.
--   refused  The step opens hooks, but its traversal has ended. Or it opens hooks or begins an
--            operation, but it was decided for another step mode than the current one. Nothing of the
--            step is written, the claim remains valid, and the worker decides again
--            (engine/work/nodes/job.py).
--
-- Runs: a worker executes nodes whose operations only compute together with those that wait for them
-- alone. `run` is the first node, which the worker has claimed; the others wait. All have run_size, the
-- number of nodes of the run. Of the later nodes, all are written or none: none if one of them has
-- changed since, or has a hook rule now, or the traversal is in another step mode. Then the rows of kind
-- 'alone' name the first one, and the others become ready as usual.
--
-- p_after: the project that was served last; the others come first.
-- p_bytes: limit of the approximate size of the documents of newly claimed nodes; one node is always
-- claimed. Negative: their documents are not read.
-- p_include_suspects: false: claim no node whose last worker ended while it had the node, because the
-- worker makes the last try of such a node now.
-- p_run_types: types whose operations only compute; at most 100 later nodes of runs are returned.
-- p_labels: of the worker. It claims nodes that have one of them; '': nodes without a label, and traversals
-- to end. Programs that do not know labels claim these.
--
-- Returns rows of these kinds:
--   turn     the project that was served last this time
--   refused  a step that was refused, with the state, reason and step mode of its traversal
--   end      a traversal to end: it has no active node, or its time limit is reached
--   unread   a claimed node whose documents are not read: its workers died too often, or it is too
--            large for one statement
--   node     a node for p_worker: it kept the node, or claims it now
--   later    a node that p_worker may execute after the node run_after, without a claim
--   alone    the first node of a run whose later nodes were not written
--   idle     there is no such node nor end; due_in: seconds until work is due, negative if another worker
--            has locked its stack; null: no work is planned
drop function if exists advance(text, interval, integer, jsonb);
drop function if exists advance(text, interval, integer, jsonb, text);
drop function if exists advance(text, interval, integer, jsonb, text, bigint);
drop function if exists advance(text, interval, integer, jsonb, text, bigint, boolean);
drop function if exists advance(text, interval, integer, jsonb, text, bigint, boolean, text[]);
drop function if exists advance(text, interval, integer, jsonb, text, bigint, boolean, text[], text[]);

create function advance(p_worker text, p_lease interval, p_limit integer, p_steps jsonb,
                        p_after text, p_bytes bigint, p_include_suspects boolean,
                        p_run_types text[] default '{}', p_labels text[] default '{""}')
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
    v_changed changed_node[];
    v_refused refused_step[];
    v_events event_draft[] := '{}';
    v_started event_draft[];
    v_ready node_key[] := '{}';
    v_changes traversal_change[] := '{}';
    v_nodes node_key[] := '{}';
    v_claimed node_key[];
    v_first node_key[];
    v_later run_node[];
    v_read run_node[];
    v_unread unread_node[];
    v_due due_traversal[] := '{}';
    v_current due_traversal[]; -- the current traversals of the stacks
    v_labelled boolean;
    v_ends node_key[];
    v_last_project text;
    v_more boolean;
    v_row advance_row;
begin
    if jsonb_array_length(p_steps) > 0 then
        select array_agg(distinct (s ->> 'stack_id')::uuid) into v_stacks
          from jsonb_array_elements(p_steps) s;
        if p_steps @? '$[*].resource ? (@.write == "remove")' then
            v_detached := stacks_to_detach(p_steps);
        end if;
        select array_agg(row (s.id, s.traversal, null, s.traversal)::due_traversal) filter (where s.id = any (v_stacks))
          into v_current
          from (select id, traversal from stack where id = any (v_stacks || v_detached)
                 order by id for no key update) s;
        v_now := clock_timestamp();
        select a.p_changed, a.p_events, a.p_refused into v_changed, v_events, v_refused
          from apply_transitions(p_worker, p_lease, v_now, p_steps) a;
        if p_steps @? '$[*].nodes[*] ? (@ != null)' then
            v_ready := add_nodes(v_now, p_steps, v_changed);
        end if;
        v_changes := traversal_changes(v_now, v_changed, v_ready || wake_dependents(v_now, v_changed));
        select coalesce(array_agg(row (m.stack_id, m.traversal, m.node)::node_key), '{}')
          into v_nodes from unnest(v_changed) m where m.state = 'running';
        if exists (select 1 from jsonb_array_elements(p_steps) s where s ->> 'hook' is not null) then
            perform pg_notify('headgate_hook', '');
        end if;
    end if;

    if v_detached is not null then
        perform detach_stacks(v_detached);
    end if;

    if p_limit > 0 then
        select c.p_now, c.p_due, c.p_ends, c.p_claimed, c.p_unread, c.p_first, c.p_last_project,
               c.p_events
          into v_now, v_due, v_ends, v_claimed, v_unread, v_first, v_last_project, v_started
          from claim_due(p_worker, p_lease, v_now, p_limit, p_after, p_bytes, p_include_suspects,
                         p_run_types, p_labels, v_changes) c;
        v_events := v_events || v_started;
        v_nodes := v_nodes || v_claimed;
        if v_first <> '{}' then
            v_later := later_nodes(v_first, p_run_types);
        end if;
    end if;

    if cardinality(v_events) > 0 then
        perform record_events(v_events);
    end if;

    if v_current is not null or v_due <> '{}' then
        select u.p_is_due, u.p_labelled into v_more, v_labelled
          from update_traversals(v_now, p_lease, v_due || v_current, v_changes, v_ends) u;
        if v_labelled or exists (select from unnest(v_due) d where d.labelled) then
            v_more := time_labelled_work(v_stacks || array(select d.stack_id from unnest(v_due) d))
                      or v_more;
        end if;
    end if;
    if v_more then
        perform pg_notify('headgate_work', '');
    end if;

    if v_stacks <> '{}' and exists (select from credential c where c.stack_id = any (v_stacks)) then
        perform delete_unused_credentials(v_stacks);
    end if;

    v_row.now := v_now;
    if v_last_project is not null then
        v_row.kind := 'turn';
        v_row.project := v_last_project;
        return next v_row;
    end if;
    v_row.kind := 'refused';
    for v_row.stack_id, v_row.traversal, v_row.node, v_row.claim, v_row.traversal_state,
        v_row.reason, v_row.step_mode in
        select * from unnest(v_refused)
    loop
        return next v_row;
    end loop;
    v_row.traversal_state := null;
    v_row.reason := null;
    v_row.step_mode := null;
    if p_steps @? '$[*].run ? (@ != null)' then
        v_row.kind := 'alone';
        for v_row.stack_id, v_row.traversal, v_row.node, v_row.claim in
            select s.stack_id, s.traversal, s.run, min(s.claim) filter (where s.node = s.run)
              from jsonb_to_recordset(p_steps) as s (
                   stack_id uuid, traversal integer, node integer, claim integer, run integer)
             where s.run is not null
             group by s.stack_id, s.traversal, s.run
            having not exists (select from unnest(v_changed) m
                                where m.was_waiting and m.stack_id = s.stack_id
                                  and m.traversal = s.traversal
                                  and m.node = max(s.node) filter (where s.node <> s.run))
        loop
            return next v_row;
        end loop;
    end if;
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
        v_row.direction, v_row.phase, v_row.breakpoints_hit, v_row.attempts, v_row.started,
        v_row.path, v_row.expired_leases, v_row.size in
        select n.stack_id, st.project, st.name, n.traversal, n.id, n.claim, n.resource_id,
               n.replacement_id, n.name, n.type, n.operation, n.direction, n.phase,
               n.breakpoints_hit, n.attempts, n.started_at is not null, st.path, n.expired_leases, u.size
          from unnest(v_unread) u
         cross join lateral (
               select * from node n
                where n.stack_id = u.stack_id and n.traversal = u.traversal
                  and n.id = u.id offset 0) n
         cross join lateral (select * from stack st where st.id = n.stack_id offset 0) st
    loop
        return next v_row;
    end loop;
    if v_nodes <> '{}' then
        v_read := array(select row (k.stack_id, k.traversal, k.id, null)::run_node
                          from unnest(v_nodes) k) || v_later;
        return query select * from read_claimed(v_read, v_now);
    elsif coalesce(v_ends, '{}') = '{}' and coalesce(v_unread, '{}') = '{}' then
        v_row := null;
        v_row.kind := 'idle';
        if p_labels = '{""}' then
            v_row.due_in := (select extract(epoch from min(t.wake_at) - clock_timestamp())
                               from traversal t where t.wake_at is not null);
        else
            v_row.due_in := labelled_work_due_in(p_labels);
        end if;
        return next v_row;
    end if;
end;
$$;
