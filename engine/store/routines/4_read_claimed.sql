-- The rows of `advance` for claimed nodes: with the resource, the values that its properties read,
-- answers and signals; and of kind 'later' for the nodes of runs. PostgreSQL inlines it in the calling
-- query, so its planner settings apply and its plan is kept. It would not if an argument contained a query
-- (`test_functions_in_sql_are_planned_with_the_statements_of_routines`).
drop function if exists read_claimed(node_key[], timestamptz);
drop function if exists read_claimed(run_node[], timestamptz);

create function read_claimed(p_nodes run_node[], p_now timestamptz) returns setof advance_row
language sql stable as $$
    select case when k.run_after is null then 'node' else 'later' end, n.stack_id, st.project,
           st.name, n.traversal, n.id, n.claim, n.resource_id, n.replacement_id, n.name, n.type,
           n.operation, n.direction, n.phase, n.definition, n.rules, n.breakpoints_hit,
           n.operation_key, n.progress, n.attempts, n.started_at is not null,
           case when n.rules is not null then
               array(select q.name from unnest(n.dependents) d (id)
                      cross join lateral (
                            select q.name from node q
                             where q.stack_id = n.stack_id and q.traversal = n.traversal
                               and q.id = d.id and q.direction = n.direction offset 0) q
                      order by d.id) end,
           r.type, r.action, r.status, r.physical_id, r.reference, r.properties,
           r.masked_properties, r.attributes, r.data,
           r.metadata, r.digest,
           r.tainted, r.protected, r.deletion_policy, r.replaced_by,
           case when n.reads <> '{}' then
               (select jsonb_object_agg(q.name, jsonb_build_array(x.reference, x.attributes,
                                                                   x.secret_attributes))
                  from unnest(n.reads) q (name)
                 cross join lateral (
                       select x.reference, x.attributes, x.secret_attributes from resource x
                        where x.name = q.name and x.stack_id = n.stack_id
                          and x.replaced_by is null offset 0) x) end, p_now,
           t.step_mode, n.confirmation, n.patched,
           case when n.breakpoints_hit <> '{}' then
               (select jsonb_object_agg(h.point, h.data order by h.opened_at, h.id) from hook h
                 where h.stack_id = n.stack_id and h.traversal = n.traversal and h.node = n.id
                   and h.data is not null) end,
           (select c.encrypted from credential c
             where c.stack_id = n.stack_id and c.traversal = n.traversal),
           case when n.phase = 'execute' then
               (select jsonb_agg(g.data order by g.number) from resource_signal g
                 where g.stack_id = n.stack_id
                   and g.resource_id = coalesce(n.signal_resource_id, case n.operation
                           when 'replace' then n.replacement_id else n.resource_id end)) end,
           t.traceparent, st.path, t.state,
           (select q.type from resource q
             where q.stack_id = n.stack_id and q.id = n.signal_resource_id),
           r.secret_attributes, n.expired_leases, n.restarts, n.restarted,
           n.bytes + coalesce(r.bytes, 0), k.run_after, r.lifecycle, n.cancelled,
           null::text, null::double precision
      from unnest(p_nodes) k
     cross join lateral (
           select * from node n
            where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id offset 0) n
     cross join lateral (select * from stack st where st.id = n.stack_id offset 0) st
     cross join lateral (
           select * from traversal t
            where t.stack_id = n.stack_id and t.number = n.traversal offset 0) t
      left join lateral (
           select * from resource r
            where r.stack_id = n.stack_id and r.id = n.resource_id offset 0) r on true;
$$;
