-- The nodes that a worker may execute with a node of p_first, in one run: each waits for the one before it
-- and for no other, its type is in p_types, it has the same label, and it has no hook rules. They are read, not claimed;
-- `apply_transitions` checks them again. At most 100, with small documents.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists later_nodes(node_key[], text[]);

create function later_nodes(p_first node_key[], p_types text[]) returns run_node[]
language plpgsql as $$
begin
    return (
        with recursive run as (
            select n.stack_id, n.traversal, n.id, null::integer as run_after, n.dependents,
                   n.label
              from unnest(p_first) k
             cross join lateral (
                   select n.stack_id, n.traversal, n.id, n.dependents, n.label from node n
                    where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id offset 0) n
             cross join lateral (
                   select from traversal t
                    where t.stack_id = n.stack_id and t.number = n.traversal
                      and has_runs(t.state, t.step_mode) offset 0) t
            union all
            select n.stack_id, n.traversal, n.id, r.id, n.dependents, n.label
              from run r
             cross join unnest(r.dependents) q (id)
             cross join lateral (
                   select n.stack_id, n.traversal, n.id, n.dependents, n.label from node n
                    where n.stack_id = r.stack_id and n.traversal = r.traversal and n.id = q.id
                      and n.type = any (p_types) and n.label is not distinct from r.label
                      and is_later_run_node(n.operation, n.phase, n.rules, n.state,
                                            n.pending_dependencies)
                      and n.bytes < 20000
                      and not exists (
                          select from unnest(n.reads) e (name)
                           cross join lateral (
                                 select x.bytes from resource x
                                  where x.name = e.name and x.stack_id = n.stack_id
                                    and x.replaced_by is null offset 0) x
                           where x.bytes > 20000) offset 0) n
        )
        select array_agg(row (l.stack_id, l.traversal, l.id, l.run_after)::run_node)
          from (select * from run where run_after is not null limit 100) l);
end;
$$;
