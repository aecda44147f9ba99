-- Repairs of a project, for its quota.
create index traversal_repairs on traversal (project, started_at)
    where requested_by_id = 'headgate:observer' and parent_traversal is null;
