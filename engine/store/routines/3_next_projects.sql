-- Projects with due or future work, by name, after p_after, at most p_limit. It steps through an index
-- from one project to the next: the cost depends on the number of projects, not of their traversals.

create or replace function next_projects(p_after text, p_limit integer) returns setof text
language sql stable as $$
    with recursive step as (
        select (select min(t.project) from traversal t
                 where t.wake_at is not null and t.project > p_after) as project, 1 as nth
        union all
        select (select min(t.project) from traversal t
                 where t.wake_at is not null and t.project > h.project), h.nth + 1
          from step h where h.project is not null and h.nth < p_limit
    )
    select project from step where project is not null;
$$;
