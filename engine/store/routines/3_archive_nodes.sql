-- Moves the ended nodes of a stack's traversals before p_before to past_graph; p_all: all nodes. The
-- caller has locked the stack's row.
create or replace function archive_nodes(p_stack uuid, p_before integer, p_all boolean) returns void
language sql as $$
    with gone as materialized (
        delete from node n
         where n.stack_id = p_stack and n.traversal < p_before
           and (p_all or n.state not in ('running', 'parked', 'ready'))
        returning n.traversal, n.id, n.name, n.type, n.operation, n.direction, n.state, n.phase,
                  n.reason, n.requirers
    ), kept as (
        insert into past_graph as p (stack_id, traversal, ids, names, types, operations, directions,
                                     states, phases, reasons, requirers)
        select p_stack, traversal, array_agg(id), array_agg(name), array_agg(type),
               array_agg(operation), array_agg(direction), array_agg(state), array_agg(phase),
               array_agg(reason), array_agg(requirers::text)
          from gone group by traversal
        on conflict (stack_id, traversal) do update -- nodes that ended later
           set ids = p.ids || excluded.ids, names = p.names || excluded.names,
               types = p.types || excluded.types, operations = p.operations || excluded.operations,
               directions = p.directions || excluded.directions,
               states = p.states || excluded.states, phases = p.phases || excluded.phases,
               reasons = p.reasons || excluded.reasons, requirers = p.requirers || excluded.requirers
    )
    -- A traversal without nodes also gets a row.
    insert into past_graph (stack_id, traversal)
    select p_stack, p_before - 1
     where p_before > 1 and not exists (select from gone where traversal = p_before - 1)
    on conflict do nothing
$$;
