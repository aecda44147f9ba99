-- Adds nodes to running traversals: those that a step lists because it has replaced its resource. They
-- were planned with the graph (engine/plan/cleanup.py), with the nodes before and after them. Of these,
-- some may have ended, and some may not have been added, or never are.
-- p_steps: see `advance`; nodes: [{id, type, operation, definition, after, dependents, label}]. p_changed: the
-- steps that were applied; `wake_dependents` has not released the dependents of their nodes yet. Returns
-- the added nodes that are ready.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists add_nodes(timestamptz, jsonb, changed_node[]);

create function add_nodes(p_now timestamptz, p_steps jsonb, p_changed changed_node[])
returns node_key[]
language plpgsql as $$
declare
    v_added added_node[];
    v_ready node_key[];
begin
    select array_agg(row (s.stack_id, s.traversal, a.id, s.node, a.type, a.operation, a.definition,
                          a.after, a.dependents,
                          coalesce(a.label, case when t.labelled then '' end))::added_node)
      into v_added
      from jsonb_to_recordset(p_steps) as s (
           stack_id uuid, traversal integer, node integer, nodes jsonb)
      join unnest(p_changed) m on m.stack_id = s.stack_id and m.traversal = s.traversal
                              and m.node = s.node
      join traversal t on t.stack_id = s.stack_id and t.number = s.traversal and t.state = 'running'
     cross join jsonb_to_recordset(s.nodes) as a (
           id integer, type text, operation text, definition jsonb, after integer[],
           dependents integer[], label text)
     where s.nodes is not null;
    with inserted as (
        insert into node (stack_id, traversal, id, resource_id, name, type, operation, direction, state,
                          phase, pending_dependencies, dependents, reads, definition, rules,
                          breakpoints_hit, claim, wake_at, label)
        select a.stack_id, a.traversal, a.id, f.resource_id, f.name, a.type, a.operation, 'cleanup',
               case when w.count = 0 then 'ready' else 'waiting' end, 'pre', w.count,
               array(select d.id from unnest(a.dependents) d (id)
                      where exists (select from node n
                                     where n.stack_id = a.stack_id and n.traversal = a.traversal
                                       and n.id = d.id)
                         or exists (select from unnest(v_added) o
                                     where o.stack_id = a.stack_id and o.traversal = a.traversal
                                       and o.id = d.id)),
               '{}', a.definition, f.rules, '{}', 0, case when w.count = 0 then p_now end, a.label
          from unnest(v_added) a
         cross join lateral (
               select n.resource_id, n.name, n.rules from node n
                where n.stack_id = a.stack_id and n.traversal = a.traversal
                  and n.id = a.added_by offset 0) f
         cross join lateral (
               select count(*) from unnest(a.after) b (id)
                where exists (select from node n
                               where n.stack_id = a.stack_id and n.traversal = a.traversal
                                 and n.id = b.id and n.state <> 'done')
                   or exists (select from unnest(v_added) o
                               where o.stack_id = a.stack_id and o.traversal = a.traversal
                                 and o.id = b.id)) w
        returning stack_id, traversal, id, state
    )
    select coalesce(array_agg(row (stack_id, traversal, id)::node_key)
                        filter (where state = 'ready'), '{}')
      into v_ready from inserted;
    update node n set dependents = n.dependents || e.ids
      from (select a.stack_id, a.traversal, b.id, array_agg(a.id) as ids
              from unnest(v_added) a cross join unnest(a.after) b (id) group by 1, 2, 3) e
     where n.stack_id = e.stack_id and n.traversal = e.traversal and n.id = e.id
       and n.state <> 'done'
       and not exists (select from unnest(v_added) o
                        where o.stack_id = n.stack_id and o.traversal = n.traversal and o.id = n.id);
    update node n set pending_dependencies = n.pending_dependencies + e.count
      from (select a.stack_id, a.traversal, d.id, count(*) as count
              from unnest(v_added) a cross join unnest(a.dependents) d (id) group by 1, 2, 3) e
     where n.stack_id = e.stack_id and n.traversal = e.traversal and n.id = e.id
       and n.state = 'waiting'
       and not exists (select from unnest(v_added) o
                        where o.stack_id = n.stack_id and o.traversal = n.traversal and o.id = n.id);
    return v_ready;
end;
$$;
