-- Stacks and their nested stacks of all levels, without deleted ones. top: the name of the resource of
-- the first stack that owns the nested stack, also through other ones; null: it is the first stack.
-- "deleted_at" stands outside of the searches, because the index stack_by_name has all stacks that are not
-- deleted.
create or replace function stacks_of_roots(p_roots uuid[])
returns table (root_id uuid, id uuid, top text)
language sql stable as $$
    with recursive tree (root_id, id, top) as (
        select k.id, k.id, null::text
          from unnest(p_roots) k (id)
         cross join lateral (select s.deleted_at from stack s where s.id = k.id offset 0) s
         where s.deleted_at is null
        union all
        select t.root_id, c.id, coalesce(t.top, p.name)
          from tree t
         cross join lateral (select s.id, s.parent_resource, s.deleted_at from stack s
                              where s.parent_id = t.id offset 0) c
         cross join lateral (select r.name from resource r
                              where r.stack_id = t.id and r.id = c.parent_resource offset 0) p
         where c.deleted_at is null
    )
    select t.root_id, t.id, t.top from tree t
$$;
