-- When the resources of stacks are observed.
create table observation_schedule (
    stack_id uuid primary key,
    project text not null,                       -- of the stack; projects are observed in turn
    next_at timestamptz,                         -- due then; while it is observed: end of the lease
    requested_at timestamptz not null default clock_timestamp(),
    claim integer not null default 0,            -- fencing number: increases with each claim
    claimed_at timestamptz,
    observed_at timestamptz,                     -- start of the last complete observation; null: none
    observable integer not null default 0,       -- resources that it observed
    not_observable integer not null default 0    -- resources whose type cannot be observed
);
create index observation_due on observation_schedule (next_at) where next_at is not null;

-- Resources whose observed state differs from the recorded one. All others are as recorded.
create table observation (
    stack_id uuid not null,
    resource_id uuid not null,
    state text not null check (state in ('missing', 'changed', 'degraded', 'unknown')),
    differences jsonb not null,                  -- [{path, desired, observed}], secrets masked
    reason text not null,
    recorded_at timestamptz not null,            -- updated_at of the resource row that it is about
    since timestamptz not null,                  -- first observed in this state
    observed_at timestamptz not null,            -- last written
    primary key (stack_id, resource_id)
);
