-- The stacks of a project by their newest change, and what is only tried out in them.

alter table stack add column changed_at timestamptz not null default now(); -- its traversal began
update stack s set changed_at = t.started_at
  from traversal t where t.stack_id = s.id and t.number = s.traversal;
create index stack_by_change on stack (project, changed_at, id)
    where parent_id is null and deleted_at is null;
create index hook_dry on hook (stack_id, traversal) where rule ->> 'dry' = 'true';
