-- Starts a traversal: makes it the current one of its stack, records its first event, and wakes the workers
-- after the commit. The stack's row is new, or the caller has locked it.
--
-- p_traversal: columns of its row; labels: those of its nodes, of which it has some if `labelled`. p_event: {type, action, status, reason, data}. p_trace: null: the
-- traceparent of the stack stays. p_rows: new rows of resources; p_nodes: the graph. Both are null if the
-- caller stores them itself, with COPY, which is faster for many. stepped_phase: the phase of a node in
-- stepping mode.
-- p_wake_at: of the nodes that are ready. p_stepped: stepping mode.
drop function if exists start_traversal(jsonb, jsonb, text, jsonb, jsonb);

create function start_traversal(p_traversal jsonb, p_event jsonb, p_trace text, p_rows jsonb,
                                p_nodes jsonb, out p_wake_at timestamptz, out p_stepped boolean)
language plpgsql
-- Planned once for each connection, for searches by key: see `advance`.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_new traversal := jsonb_populate_record(null::traversal, p_traversal);
begin
    if v_new.number > 1 or p_trace <> '' then -- a new stack has its first version and traversal
        update stack s
           set version = v_new.version, traversal = v_new.number, changed_at = now(),
               traceparent = case when p_trace is null then s.traceparent else nullif(p_trace, '') end
         where s.id = v_new.stack_id;
    end if;
    perform record_events(array[row (v_new.stack_id, e.type, null, null, v_new.stack_id::text, e.action,
                                     e.status, e.reason, e.data)::event_draft])
       from jsonb_to_record(p_event) as e (
            type text, action text, status text, reason text, data jsonb);
    insert into traversal (stack_id, number, project, action, version, state, reason, digest,
                           active_nodes, time_limit, working_since, out_of_date, wake_at, requested_by,
                           lifecycle_view, traceparent, nested_breakpoints, cleared_breakpoints,
                           parent_traversal, parent_node, parent_operation_key, parent_step,
                           working_time, step_mode, requested_by_id, excluded, labelled)
    select s.id, v_new.number, s.project, v_new.action, v_new.version, v_new.state, v_new.reason,
           v_new.digest, v_new.active_nodes,
           case when p.number is null then make_interval(mins => s.timeout_mins) else p.time_limit end,
           working_time_since(v_new.state, v_new.active_nodes, 0, clock_timestamp()),
           v_new.out_of_date, clock_timestamp(), v_new.requested_by, v_new.lifecycle_view,
           s.traceparent, v_new.nested_breakpoints, v_new.cleared_breakpoints,
           v_new.parent_traversal, v_new.parent_node, v_new.parent_operation_key, v_new.parent_step,
           -- A nested stack's working time begins with what its parent has worked.
           coalesce(working_time_at(p.working_time, p.working_since, clock_timestamp()), '0'),
           case when n.step_into then 'step' when p.step_mode = 'run' then 'run' end,
           v_new.requested_by_id, v_new.excluded, coalesce(v_new.labelled, false)
      from stack s
      left join traversal p on p.stack_id = s.parent_id and p.number = v_new.parent_traversal
      left join node n on n.stack_id = p.stack_id and n.traversal = p.number
                      and n.id = v_new.parent_node
     where s.id = v_new.stack_id
    returning wake_at, coalesce(step_mode = 'step', false) into p_wake_at, p_stepped;
    if v_new.labelled then
        -- Due now, so that a worker finds out when they are.
        insert into labelled_work (stack_id, traversal, label, project, wake_at)
        select s.id, v_new.number, l.label, s.project, p_wake_at
          from stack s cross join jsonb_array_elements_text(p_traversal -> 'labels') l (label)
         where s.id = v_new.stack_id;
    end if;
    if p_rows is not null then
        insert into resource (stack_id, id, name, type, action, status, reason, physical_id, attributes,
                              data, metadata, digest, requires, rules, label)
        select v_new.stack_id, r.id, r.name, r.type, r.action, r.status, r.reason, r.physical_id,
               r.attributes, r.data, r.metadata, r.digest, r.requires, r.rules, r.label
          from jsonb_to_recordset(p_rows) as r (
               id uuid, name text, type text, action text, status text, reason text,
               physical_id text, attributes jsonb, data jsonb, metadata jsonb, digest text,
               requires uuid[], rules jsonb, label text);
    end if;
    if p_nodes is not null then
        insert into node (stack_id, traversal, id, resource_id, replacement_id, name, type, operation,
                          direction, state, phase, pending_dependencies, dependents, requires, reads,
                          definition, rules, breakpoints_hit, claim, wake_at, bytes, label)
        select v_new.stack_id, v_new.number, n.id, n.resource_id, n.replacement_id, n.name, n.type,
               n.operation, n.direction, n.state,
               case when p_stepped then n.stepped_phase else n.phase end, n.pending_dependencies,
               n.dependents, n.requires, n.reads, n.definition, n.rules, n.breakpoints_hit, n.claim,
               case when n.pending_dependencies = 0 then p_wake_at end, n.bytes, n.label
          from jsonb_to_recordset(p_nodes) as n (
               id integer, resource_id uuid, replacement_id uuid, name text, type text,
               operation text, direction text, state text, phase text, stepped_phase text,
               pending_dependencies integer, dependents integer[], requires text[], reads text[],
               definition jsonb, rules jsonb, breakpoints_hit text[], claim integer, bytes integer, label text);
    end if;
    if v_new.number > 1 then
        perform archive_nodes(v_new.stack_id, v_new.number, false);
        -- Nodes that waited for earlier operations belong to the previous traversal. Earlier traversals
        -- with such an operation are in the queue, and have active nodes; the nodes of others are not
        -- read.
        update node n set successor = null
          from archive_queue q join traversal t on t.stack_id = q.stack_id and t.number = q.traversal
         where q.stack_id = v_new.stack_id and q.traversal < v_new.number and t.active_nodes > 0
           and n.stack_id = q.stack_id and n.traversal = q.traversal and n.successor is not null;
    end if;
    perform pg_notify('headgate_work', '');
end;
$$;
