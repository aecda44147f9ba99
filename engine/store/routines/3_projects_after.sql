-- Projects that have something planned, in the order of their names, behind the one given. It hops
-- from one to the next by index, so its cost is in the projects it gives, not in their traversals.

create or replace function projects_after(p_after text, p_most integer) returns setof text
language sql stable as $$
    with recursive hop as (
        select (select min(t.project) from traversal t
                 where t.wake_at is not null and t.project > p_after) as project, 1 as nth
        union all
        select (select min(t.project) from traversal t
                 where t.wake_at is not null and t.project > h.project), h.nth + 1
          from hop h where h.project is not null and h.nth < p_most
    )
    select project from hop where project is not null;
$$;
