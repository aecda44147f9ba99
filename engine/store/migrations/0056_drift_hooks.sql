-- The last drift of a resource about which a hook was opened, and its answer.
create table drift_hook (
    stack_id uuid not null,
    resource_id uuid not null,
    hook_id uuid not null,
    state text not null,                         -- as in observation
    differences jsonb not null,                  -- as in observation
    recorded_at timestamptz not null,            -- as in observation
    decision text,                               -- of the hook; null: it waits
    ignored_until timestamptz,                   -- an answer ignores all drift until then; null: none
    decided_by text not null default '',
    decided_by_id text not null default '',
    primary key (stack_id, resource_id)
);
