-- What quotas count, found without looking at everything.

create index hook_waiting_by_project on hook (project) where state = 'waiting';
create index traversal_checks on traversal (project, started_at) where action = 'CHECK';
