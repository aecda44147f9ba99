-- A stack with its current traversal and its wanted template version.

-- `STATUS_OF` in engine/words.py: the status of a stack by the state of its current traversal.
create or replace function traversal_status(p_state text)
returns text
language sql immutable as $$
    select case when p_state = 'running' or p_state = 'ending' then 'IN_PROGRESS'
                when p_state = 'complete' then 'COMPLETE'
                when p_state = 'stopped' then 'STOPPED' else 'FAILED' end
$$;

drop view if exists current_stack cascade; -- with its dependents, which are created later
drop view if exists current_stack_and_region cascade;

create view current_stack_and_region as
select s.id, s.project, s.name, v.description, t.action, traversal_status(t.state) as status, t.reason,
       s.owner, s.tags, s.timeout_mins, s.disable_rollback, s.created_at,
       case when t.number > 1 then t.started_at end as updated_at, s.deleted_at,
       s.traversal, s.version, s.pinned_by, s.pinned_at, s.pinned_reason,
       s.parent_id, s.root_id, s.path, s.private_outputs, s.region
  from stack s
  join traversal t on t.stack_id = s.id and t.number = s.traversal
  join template v on v.stack_id = s.id and v.version = s.version;

-- The columns that processes of release 0.2.0 read.
create view current_stack as
select id, project, name, description, action, status, reason, owner, tags, timeout_mins,
       disable_rollback, created_at, updated_at, deleted_at, traversal, version, pinned_by, pinned_at,
       pinned_reason, parent_id, root_id, path, private_outputs
  from current_stack_and_region;
