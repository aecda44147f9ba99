-- Nested stacks whose owning resource is removed while they are kept: they become root stacks.

-- The nested stacks that these steps detach, with their own nested stacks. The caller locks them.
create or replace function stacks_to_detach(p_steps jsonb) returns uuid[]
language sql stable as $$
    with recursive detached (id) as (
        select c.id
          from jsonb_array_elements(p_steps) s
         -- Without "deleted_at" inside: the index stack_by_name has all stacks that are not deleted.
         cross join lateral (
               select c.id, c.deleted_at from stack c
                where c.parent_id = (s ->> 'stack_id')::uuid
                  and c.parent_resource = (s #>> '{resource,id}')::uuid offset 0) c
         where s #>> '{resource,write}' = 'remove' and c.deleted_at is null
        union all
        select c.id from detached l
         cross join lateral (select c.id from stack c where c.parent_id = l.id offset 0) c
    )
    select array_agg(id) from detached
$$;

-- Makes each of these stacks whose owning resource is gone a root stack.
create or replace function detach_stacks(p_stacks uuid[]) returns void
language sql as $$
    with recursive detached (id, root_id, suffix_start) as (
        select c.id, c.id, length(c.path) + 2
          from unnest(p_stacks) p (id)
         cross join lateral (
               select s.id, s.path, s.parent_id, s.parent_resource from stack s
                where s.id = p.id and s.parent_id is not null and s.deleted_at is null offset 0) c
         where not exists (select from resource r
                            where r.stack_id = c.parent_id and r.id = c.parent_resource offset 0)
        union all
        select c.id, l.root_id, l.suffix_start
          from detached l
         cross join lateral (select s.id from stack s where s.parent_id = l.id offset 0) c
    )
    update stack s
       set parent_id = case when l.id <> l.root_id then s.parent_id end,
           parent_resource = case when l.id <> l.root_id then s.parent_resource end,
           root_id = nullif(l.root_id, l.id),
           private_outputs = s.private_outputs or l.id = l.root_id,
           path = substr(s.path, l.suffix_start)
      from detached l
     where s.id = l.id
$$;
