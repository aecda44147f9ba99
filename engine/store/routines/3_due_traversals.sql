-- Traversals with due work, the longest due first. Those of p_changes are due at p_due_at, whatever their rows
-- say, because their nodes have just changed.

-- Of all projects.
create or replace function due_traversals(p_due_at timestamptz, p_changes traversal_change[],
                                          p_limit integer)
returns table (stack_id uuid, traversal integer, labelled boolean, wake_at timestamptz)
language sql stable as $$
    select d.stack_id, d.traversal, d.labelled, max(d.wake_at) as wake_at
      from ((select t.stack_id, t.number as traversal, t.labelled, t.wake_at
               from traversal t
              where t.wake_at <= p_due_at
              order by t.wake_at limit p_limit + cardinality(p_changes))
            union all
            select c.stack_id, c.traversal, c.labelled, p_due_at from unnest(p_changes) c) d
     group by 1, 2, 3 order by 4 limit p_limit
$$;

-- Of one project.
create or replace function due_traversals_of(p_project text, p_due_at timestamptz,
                                             p_changes traversal_change[], p_limit integer)
returns table (stack_id uuid, traversal integer, labelled boolean, wake_at timestamptz)
language sql stable as $$
    select d.stack_id, d.traversal, d.labelled, max(d.wake_at) as wake_at
      from ((select t.stack_id, t.number as traversal, t.labelled, t.wake_at
               from traversal t
              where t.project = p_project and t.wake_at <= p_due_at
              order by t.wake_at limit p_limit + cardinality(p_changes))
            union all
            select c.stack_id, c.traversal, c.labelled, p_due_at
              from unnest(p_changes) c where c.project = p_project) d
     group by 1, 2, 3 order by 4 limit p_limit
$$;
