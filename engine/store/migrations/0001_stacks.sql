-- Stacks, their versions, traversals, nodes, resources, hooks and events.
-- Every table that belongs to a stack leads its key with the stack's id.

create table instance (
    only_one boolean primary key default true check (only_one),
    signing_key bytea not null
);

create table stack (
    id uuid primary key,
    project text not null,
    name text not null,
    owner text not null,
    tags text[] not null default '{}',
    timeout_mins integer,
    disable_rollback boolean not null default true,
    version integer not null,           -- the template version it should be
    traversal integer not null,         -- the current walk toward that version
    sequence bigint not null default 0, -- number of the newest event
    created_at timestamptz not null default now(),
    deleted_at timestamptz
) with (fillfactor = 50);
create unique index stack_by_name on stack (project, name) where deleted_at is null;
create index stack_by_age on stack (project, created_at, id);

create table template (
    stack_id uuid not null,
    version integer not null,
    description text not null,
    template jsonb not null,
    environment jsonb not null,
    files jsonb not null,
    parameters jsonb not null, -- as given, by name
    shown jsonb not null,      -- as the API shows them: text, hidden ones masked
    hidden text[] not null,
    outputs jsonb not null,    -- [{key, description, value: encoded expression}]
    requested_by text not null,
    created_at timestamptz not null default now(),
    primary key (stack_id, version)
);

create table traversal (
    stack_id uuid not null,
    number integer not null,
    action text not null,
    version integer not null,
    state text not null check (state in ('running', 'ending', 'complete', 'failed', 'stopped', 'superseded')),
    reason text not null,
    digest text not null,
    active integer not null,      -- nodes ready, running, parked, or waiting for an older operation
    wake_at timestamptz,          -- when a worker should look: the earliest wake_at of its nodes
    requested_by text not null,
    started_at timestamptz not null default now(),
    ended_at timestamptz,
    primary key (stack_id, number)
) with (fillfactor = 50);
create index traversal_due on traversal (wake_at) where wake_at is not null;

create table node (
    stack_id uuid not null,
    traversal integer not null,
    id integer not null,
    resource_id uuid not null,
    replacement_id uuid,          -- the id a replacement would get
    name text not null,
    type text not null,
    operation text not null check (operation in ('create', 'update', 'replace', 'delete')),
    direction text not null check (direction in ('forward', 'cleanup')),
    state text not null check (state in ('waiting', 'ready', 'running', 'parked', 'done', 'failed', 'stopped', 'dropped')),
    phase text not null check (phase in ('pre', 'act', 'confirm', 'post')),
    waits integer not null,       -- how many nodes it still waits for
    requirers integer[] not null, -- the nodes that wait for it
    requires text[],              -- names of what it depends on; null: the resource's row has the ids
    reads text[] not null,        -- names whose reference or attributes its properties need
    definition jsonb,             -- {properties, masked, metadata, digest}, parameters filled in
    rules jsonb,                  -- the breakpoints that match it
    passed text[] not null,       -- points already asked
    successor integer,            -- node of the current traversal that waits for this superseded one
    claim integer not null,       -- fencing: counts up with every claim
    worker text,
    wake_at timestamptz,          -- ready: since; running: end of the lease; parked: its timer
    operation_key uuid,
    progress jsonb,
    reason text,
    started_at timestamptz,
    ended_at timestamptz,
    primary key (stack_id, traversal, id)
) with (fillfactor = 40);
create index node_due on node (stack_id, traversal, wake_at) where wake_at is not null;

create table resource (
    stack_id uuid not null,
    id uuid not null,
    name text not null,
    type text not null,
    action text not null,
    status text not null,
    reason text not null,
    physical_id text,
    reference text,               -- what get_resource gives
    properties jsonb,             -- resolved, as applied last
    shown jsonb,                  -- the same for people's eyes; null: nothing in it is secret
    attributes jsonb not null,
    data jsonb not null,          -- the type's own
    metadata jsonb not null,
    digest text not null,         -- of the definition applied last
    requires uuid[] not null,     -- resources it used when last changed
    rules jsonb,                  -- breakpoints that stay with it when it leaves the template
    broken boolean not null default false, -- an operation on it had begun and failed
    replaced_by uuid,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (stack_id, id)
) with (fillfactor = 50);
-- The name leads, so that whoever looks for an id is not tempted to scan a whole stack by it.
create index resource_by_name on resource (name, stack_id);

create table hook (
    stack_id uuid not null,
    id uuid not null,
    project text not null,
    traversal integer not null,
    node integer not null,
    resource_name text not null,
    path text not null,
    point text not null,
    mode text not null,
    state text not null check (state in ('waiting', 'answered', 'expired', 'superseded')),
    on_timeout text not null,
    timeout interval not null,
    notice jsonb not null,        -- what one needs to decide: properties (masked), changes, dependents
    digest text not null,
    opened_at timestamptz not null,
    deadline timestamptz not null,
    told_at timestamptz,
    decision text,
    reason text,
    data jsonb,
    decided_by text,
    door text,
    decided_at timestamptz,
    primary key (stack_id, id)
);
create unique index hook_by_id on hook (id);
create index hook_due on hook (deadline) where state = 'waiting';
create index hook_inbox on hook (project, opened_at, id);
create index hook_waiting on hook (stack_id, traversal) where state = 'waiting';

create table event (
    stack_id uuid not null,
    sequence bigint not null,
    id uuid not null,
    type text not null,
    time timestamptz not null,
    resource_name text,
    resource_type text,
    physical_id text,
    action text,
    status text,
    reason text not null,
    data jsonb,
    primary key (stack_id, sequence)
);
create index event_by_id on event (stack_id, id);

-- One row per commit and stack: which events are to be carried out. position is given in the
-- order in which commits became visible, by whoever publishes, under one advisory lock.
create table outbox (
    id bigint generated always as identity primary key,
    stack_id uuid not null,
    project text not null,
    first bigint not null,
    last bigint not null,
    position bigint unique,
    created_at timestamptz not null default now()
);
create index outbox_unpublished on outbox (id) where position is null;
create index outbox_by_project on outbox (project, position) where position is not null;

create table idempotency (
    project text not null,
    key text not null,
    request_digest text not null,
    stack_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (project, key)
);
