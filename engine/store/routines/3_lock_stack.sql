-- Locks a stack, and returns it with its current traversal; no row: the project (null: any) has no such stack. Two
-- statements: one that waits for a lock would see the other tables as they were before it waited, and the traversal
-- of a change that was accepted meanwhile not at all.
drop function if exists lock_stack(uuid, text);

create function lock_stack(p_stack uuid, p_project text)
returns table (id uuid, project text, name text, version integer, traversal integer, deleted boolean,
               newest integer, disable_rollback boolean, state text, action text, requested_by text,
               requested_by_id text, excluded text[], now timestamptz, root text, path text, tags text[],
               region text)
language plpgsql as $$
#variable_conflict use_column
begin
    perform from stack s where s.id = p_stack and s.project = coalesce(p_project, s.project)
       for no key update;
    return query
    select s.id, s.project, s.name, s.version, s.traversal, s.deleted_at is not null,
           (select max(v.version) from template v where v.stack_id = s.id), s.disable_rollback,
           t.state, t.action, t.requested_by, t.requested_by_id, t.excluded, now(), o.name, s.path,
           s.tags, s.region
      from stack s join traversal t on t.stack_id = s.id and t.number = s.traversal
      left join stack o on o.id = s.root_id
     where s.id = p_stack and s.project = coalesce(p_project, s.project);
end;
$$;
