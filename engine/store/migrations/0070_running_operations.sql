-- Operations that run on the resources of a stack, or on one of them, are found by key: see `is_operating`.
create index node_operating on node (stack_id, resource_id)
    where started_at is not null and state in ('running', 'parked', 'ready') and phase in ('execute', 'confirm');
