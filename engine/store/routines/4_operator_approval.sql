-- The point at which an operator rule without `patch` has approved what a node does: at the gates of its
-- stack and of the parent stacks, and at the node itself. Null: no such rule has. Answers to later hooks
-- must not patch the properties then.
create or replace function operator_approval(p_stack_id uuid, p_traversal integer, p_node integer)
returns text
language sql stable as $$
    with recursive enclosing as (
        select stack_id, number, parent_traversal, 0 as level
          from traversal where stack_id = p_stack_id and number = p_traversal
        union all
        select t.stack_id, t.number, t.parent_traversal, e.level + 1
          from enclosing e
         cross join lateral (
               select s.parent_id from stack s where s.id = e.stack_id offset 0) s
         cross join lateral (
               select t.stack_id, t.number, t.parent_traversal from traversal t
                where t.stack_id = s.parent_id and t.number = e.parent_traversal offset 0) t
    )
    select r.rule ->> 'point'
      from enclosing e
     cross join lateral (
           -- The gates are the last nodes of a graph (engine/plan/gates.py).
           (select g.id, g.operation, g.rules, g.breakpoints_hit from node g
             where g.stack_id = e.stack_id and g.traversal = e.number order by g.id desc limit 2)
           union all
           select o.id, o.operation, o.rules, o.breakpoints_hit from node o
            where e.level = 0 and o.stack_id = e.stack_id and o.traversal = e.number
              and o.id = p_node) n
     cross join lateral jsonb_array_elements(n.rules) r (rule)
     where (n.operation = 'begin' or (e.level = 0 and n.id = p_node))
       and r.rule ->> 'point' = any (n.breakpoints_hit)
       and (r.rule ->> 'by_operator')::boolean
       and rule_blocks(r.rule)
       and r.rule -> 'patch' is null
     order by e.level desc, n.id limit 1
$$;
