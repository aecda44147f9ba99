-- Queues the graph of the traversal before p_before for archiving (engine/store/traversals/graph_archive.py). p_all:
-- the stack is deleted; its active nodes are archived at once, so that their operations have no effect.
-- The caller has locked the stack's row.
create or replace function archive_nodes(p_stack uuid, p_before integer, p_all boolean) returns void
language sql as $$
    with deleted as materialized (
        delete from node n
         where p_all and n.stack_id = p_stack and n.traversal < p_before
           and n.state in ('running', 'parked', 'ready')
        returning n.traversal, n.id, n.name, n.type, n.operation, n.direction, n.state, n.phase,
                  n.reason, n.dependents
    ), archived as (
        insert into archived_graph (stack_id, traversal, part, ids, names, types, operations,
                                    directions, states, phases, reasons, dependents)
        select p_stack, traversal, min(id), array_agg(id), array_agg(name), array_agg(type),
               array_agg(operation), array_agg(direction), array_agg(state), array_agg(phase),
               array_agg(reason), array_agg(dependents::text)
          from deleted group by traversal
    )
    insert into archive_queue (stack_id, traversal)
    select p_stack, p_before - 1 where p_before > 1
    on conflict do nothing
$$;
