-- The schema of a new database. A database of an earlier version gets the same schema by a file of
-- engine/store/upgrades; a test compares the two. Functions and views are in engine/store/routines.
--
-- Every table that belongs to a stack has the stack's ID as the first column of its key.
-- Transactions take locks in this order: outbox_cursor, stacks by ID, subscriptions by ID, deliveries.
-- JSON columns contain encrypted values in place of secret ones (engine/store/encryption/secret_values.py).


-- Stacks

create table stack (
    id uuid primary key,
    project text not null,
    name text not null,
    owner text not null,
    tags text[] not null default '{}',
    timeout_mins integer,
    disable_rollback boolean not null default true,
    version integer not null,                    -- the wanted template version
    traversal integer not null,                  -- number of the current traversal
    sequence bigint not null default 0,          -- number of the newest event
    rules jsonb,                                 -- hook rules that stay with the whole stack
    traceparent text,                            -- W3C: of the request for the current change
    pinned_by text,
    pinned_at timestamptz,                       -- not null: the stack is never purged
    pinned_reason text,
    parent_id uuid,                              -- parent stack
    parent_resource uuid,                        -- resource of the parent that owns this stack
    root_id uuid,                                -- root stack; null: this is a root stack
    path text not null default '',               -- from the root stack, by resource names: web/0
    private_outputs boolean not null default false, -- a root stack that was nested: masked in the API
    created_at timestamptz not null default now(),
    changed_at timestamptz not null default now(), -- start of the current traversal
    deleted_at timestamptz
) with (fillfactor = 50);
create unique index stack_by_name on stack (project, name) where deleted_at is null;
create index stack_by_age on stack (project, created_at, id);
create index stack_by_change on stack (project, changed_at, id)
    where parent_id is null and deleted_at is null;
create index stack_by_parent on stack (parent_id, parent_resource) where parent_id is not null;
create index stack_by_root on stack (root_id) where root_id is not null;
create index stack_deleted on stack (deleted_at) where deleted_at is not null;

-- Template versions.
create table template (
    stack_id uuid not null,
    version integer not null,
    description text not null,
    template jsonb not null,
    environment jsonb not null,
    files jsonb not null,
    parameters jsonb not null,                   -- values of the request, by name
    masked_parameters jsonb not null,            -- text of the values for the API, secrets masked
    hidden_parameters text[] not null,           -- names of hidden parameters
    outputs jsonb not null,                      -- [{key, description, value: encoded expression}]
    source text,                                 -- the template as text, if it was sent as text
    requested_by text not null,
    -- Identity and roles with which subscriptions answer hooks that this version's event_sinks
    -- were the first to name. '': an earlier version wrote the row.
    requested_by_id text not null default '',
    requested_by_roles text[] not null default '{}',
    created_at timestamptz not null default now(),
    primary key (stack_id, version)
);

-- Idempotency-Key headers and the stack that the first request created.
create table idempotency (
    project text not null,
    key text not null,
    request_digest text not null,
    stack_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (project, key)
);
create index idempotency_by_age on idempotency (created_at);


-- Traversals

create table traversal (
    stack_id uuid not null,
    number integer not null,
    project text not null,                       -- of the stack; workers serve projects in turn
    action text not null,
    version integer not null,
    state text not null
        check (state in ('running', 'ending', 'complete', 'failed', 'stopped', 'superseded')),
    reason text not null,
    digest text not null,                        -- plan digest
    -- Nodes that are ready, running or parked, or wait for an operation of an earlier traversal.
    active_nodes integer not null,
    blocked_nodes integer not null default 0,    -- active nodes that are parked without a timer
    wake_at timestamptz,                         -- the earliest wake_at of its nodes
    time_limit interval,                         -- limit of the working time; null: none
    working_time interval not null default '0',  -- working time up to working_since
    working_since timestamptz,                   -- null: working time is not counted now
    out_of_date text[] not null default '{}',    -- resources that a partial update left out
    step_mode text check (step_mode in ('step', 'run')), -- null: hook rules apply
    accepted boolean not null default false,     -- its first node, with the lifecycle plug-ins, is done
    lifecycle_view jsonb,                        -- for lifecycle plug-ins at the end; null: none left
    notify_at timestamptz,                       -- next attempt to notify lifecycle plug-ins
    parent_traversal integer,                    -- of the node that started this traversal
    parent_node integer,
    parent_operation_key uuid,                   -- operation key of that node
    parent_step text,                            -- step of its operation
    nested_breakpoints jsonb not null default '[]', -- for nested stacks: [{pattern, rule, requested}]
    cleared_breakpoints text[] not null default '{}', -- patterns of breakpoints to skip
    traceparent text,
    requested_by text not null,
    requested_by_id text not null default '',    -- '': an earlier version wrote the row
    started_at timestamptz not null default now(),
    ended_at timestamptz,
    primary key (stack_id, number)
) with (fillfactor = 50);
create index traversal_due on traversal (wake_at) where wake_at is not null;
create index traversal_turn on traversal (project, wake_at) where wake_at is not null;
create index traversal_to_notify on traversal (ended_at)
    where lifecycle_view is not null and ended_at is not null;
create index traversal_ended on traversal (ended_at) where ended_at is not null;
create index traversal_checks on traversal (project, started_at) where action = 'CHECK';

-- The nodes of current traversals, and those of earlier ones whose operation has not ended.
create table node (
    stack_id uuid not null,
    traversal integer not null,
    id integer not null,
    resource_id uuid not null,
    replacement_id uuid,                         -- ID of the row that a replacement creates
    name text not null,                          -- of the resource; '': the whole stack
    type text not null,
    operation text not null check (operation in (
        'create', 'update', 'replace', 'delete', 'adopt', 'check', 'suspend', 'resume',
        'snapshot', 'begin', 'finish')),
    direction text not null check (direction in ('forward', 'cleanup')),
    state text not null check (state in (
        'waiting', 'ready', 'running', 'parked', 'done', 'failed', 'stopped', 'dropped')),
    phase text not null check (phase in ('pre', 'execute', 'confirm', 'post')),
    pending_dependencies integer not null,       -- number of nodes that it waits for
    dependents integer[] not null,               -- nodes that wait for it
    requires text[],                             -- resources it depends on; null: see the row
    reads text[] not null,                       -- resources that its properties read
    definition jsonb,                            -- {properties, masked, metadata, digest}
    bytes integer not null default 0,            -- size of a large definition as JSON
    rules jsonb,                                 -- hook rules that match it
    breakpoints_hit text[] not null,             -- points whose hooks have opened
    confirmation jsonb,                          -- answer to the last hook of its operation
    patched jsonb,                               -- properties that an answer changed
    step_into boolean not null default false,    -- its nested traversal starts in mode step
    successor integer,                           -- node of the current traversal that waits for it
    signal_resource_id uuid,                     -- whose signals it waits for; null: its own
    call_again boolean not null default false,   -- call its operation again when this call ends
    claim integer not null,                      -- fencing number: increases with each claim
    worker text,
    wake_at timestamptz,                         -- ready: since; running: lease; parked: timer
    operation_key uuid,
    progress jsonb,
    attempts integer not null default 0,         -- failures after which the operation was retried
    expired_leases integer not null default 0,   -- consecutive claims whose lease expired
    restarts integer not null default 0,         -- calls repeated because their process ended
    restarted boolean not null default false,    -- the current claim is such a repetition
    reason text,
    started_at timestamptz,
    ended_at timestamptz,
    primary key (stack_id, traversal, id)
) with (fillfactor = 40);
create index node_due on node (stack_id, traversal, wake_at) where wake_at is not null;

-- Graphs of ended traversals, without definitions and properties. Each array has one element for
-- each node.
create table archived_graph (
    stack_id uuid not null,
    traversal integer not null,
    ids integer[] not null default '{}',
    names text[] not null default '{}',
    types text[] not null default '{}',
    operations text[] not null default '{}',
    directions text[] not null default '{}',
    states text[] not null default '{}',
    phases text[] not null default '{}',
    reasons text[] not null default '{}',
    dependents text[] not null default '{}',     -- nodes that waited for it, as text: {1,2}
    primary key (stack_id, traversal)
);

-- Credentials of traversals that have work left, encrypted with a key that is not in the database.
create table credential (
    stack_id uuid not null,
    traversal integer not null,
    encrypted bytea not null,
    primary key (stack_id, traversal)
);


-- Resources

create table resource (
    stack_id uuid not null,
    id uuid not null,
    name text not null,
    type text not null,
    action text not null,
    status text not null,
    reason text not null,
    physical_id text,
    reference jsonb,                             -- value of get_resource
    properties jsonb,                            -- resolved values of the last operation
    masked_properties jsonb,                     -- properties, masked; null: nothing is secret
    attributes jsonb not null,
    -- Attributes that are secret because the resource was created from secrets: names; '' is the
    -- reference, '*' all attributes. Null: an earlier version wrote the row, and only the type
    -- defines which attributes are secret.
    secret_attributes jsonb,
    data jsonb not null,                         -- private data of the type
    metadata jsonb not null,
    bytes integer not null default 0,            -- size of large properties and attributes as JSON
    digest text not null,                        -- of the definition that was applied last
    requires uuid[] not null,                    -- resources it used when it was changed last
    rules jsonb,                                 -- hook rules that stay when it leaves the template
    tainted boolean not null default false,      -- an operation failed after it had started
    protected boolean not null default false,    -- must not be deleted or replaced
    deletion_policy text not null default 'Delete'
        check (deletion_policy in ('Delete', 'Retain', 'Snapshot')),
    replaced_by uuid,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (stack_id, id)
) with (fillfactor = 50);
-- The name is first, so that PostgreSQL does not use this index to find one ID in a stack.
create index resource_by_name on resource (name, stack_id);

create table snapshot (
    stack_id uuid not null,
    id uuid not null,
    name text not null,
    traversal integer not null,
    version integer not null,
    created_at timestamptz not null default now(),
    primary key (stack_id, id)
);

-- What resources saved: in the traversal of a snapshot, or before deletion because of
-- deletion_policy: Snapshot, which belongs to no snapshot.
create table resource_snapshot (
    stack_id uuid not null,
    traversal integer not null,
    resource_id uuid not null,
    name text not null,
    type text not null,
    physical_id text,
    properties jsonb,
    metadata jsonb,
    data jsonb not null,                         -- private data of the type
    created_at timestamptz not null default now(),
    primary key (stack_id, traversal, resource_id)
);

-- Signals that were sent to resources.
create table resource_signal (
    stack_id uuid not null,
    resource_id uuid not null,
    number integer not null,
    data jsonb not null,
    sent_by text not null,
    sent_at timestamptz not null default clock_timestamp(),
    primary key (stack_id, resource_id, number)
);

-- Software configs are immutable. config: text or a map; inputs, outputs: [{name, type, ...}].
create table software_config (
    id uuid primary key,
    project text not null,
    name text not null,
    "group" text not null,
    config jsonb not null,
    inputs jsonb not null,
    outputs jsonb not null,
    options jsonb not null,
    created_at timestamptz not null default clock_timestamp()
);
create index software_config_by_project on software_config (project, created_at, id);

create table software_deployment (
    id uuid primary key,
    project text not null,
    config_id uuid not null references software_config,
    server_id text not null,
    input_values jsonb not null,                 -- by name
    output_values jsonb,                         -- by name
    action text not null,
    status text not null,
    status_reason text not null,
    stack_id uuid,                               -- null: not a resource of a stack
    resource_id uuid,
    operation_key uuid,                          -- of the publishing operation; ID of its config
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz
);
create index software_deployment_by_project on software_deployment (project, created_at, id);
create index software_deployment_by_server on software_deployment (project, server_id);
create index software_deployment_by_config on software_deployment (config_id);


-- Hooks

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
    rule jsonb not null,                         -- see engine/hooks/rule.py
    on_timeout text not null,
    timeout interval not null,
    notification jsonb not null,                 -- masked properties, changes, dependents
    digest text not null,
    requested_by text not null default '',       -- who requested the change
    requested_by_id text not null default '',    -- '': an earlier version wrote the row
    opened_at timestamptz not null,
    deadline timestamptz not null,
    wake_at timestamptz,                         -- next reminder or escalation
    reminders integer not null default 0,
    escalated_at timestamptz,
    assigned text,                               -- principal to which the hook was handed over
    notified_at timestamptz,                     -- first notification that was delivered
    undeliverable_at timestamptz,                -- all notifications failed; null: not so
    decision text,
    reason text,
    data jsonb,
    decided_by text,
    decided_by_id text not null default '',
    channel text,                                -- answer channel
    decided_at timestamptz,
    primary key (stack_id, id)
);
create unique index hook_by_id on hook (id);
create index hook_due on hook (deadline) where state = 'waiting';
-- Deadlines are processed by project, so that one project does not delay another.
create index hook_due_by_project on hook (project, deadline) where state = 'waiting';
create index hook_inbox on hook (project, state, opened_at, id);
create index hook_by_stack on hook (stack_id, state, opened_at, id);
create index hook_waiting on hook (stack_id, traversal) where state = 'waiting';
create index hook_reminders on hook (wake_at) where state = 'waiting' and wake_at is not null;
create index hook_data on hook (stack_id, traversal) where data is not null;
create index hook_dry on hook (stack_id, traversal) where rule ->> 'dry' = 'true';
create index hook_decided on hook (decided_at) where state <> 'waiting';

-- Breakpoints set on a running stack. pattern: glob of resource names; '': the whole stack.
create table breakpoint (
    stack_id uuid not null,
    id uuid not null,
    pattern text not null,
    rule jsonb not null,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (stack_id, id)
);

-- The audit log. Rows are only added. Each hash covers the row and the hash of the row before it
-- (engine/hooks/hash_chain.py). number: 1, 2, ... in each stack.
create table decision (
    stack_id uuid not null,
    number integer not null,
    project text,                                -- null: the stack was purged by an earlier version
    hook_id uuid,                                -- null: the entry is about breakpoints
    kind text not null,
    by text not null,
    principal text not null default '',          -- identity of `by`; '': an older entry
    token_id text not null default '',           -- of the API token, or the subscription
    channel text not null,                       -- answer channel
    address text not null,
    reason text not null,
    digest text not null,
    data text not null,                          -- JSON, exactly as it was hashed
    form integer not null default 1,             -- which fields the hash covers
    at timestamptz not null,
    hash text not null,
    primary key (stack_id, number)
);
create index decision_by_hook on decision (stack_id, hook_id) where hook_id is not null;
create index decision_by_project on decision (project, at, stack_id, number);
create index decision_by_time on decision (at);
create index decision_first on decision (at) where number = 1;

-- Sets the project where a process of an earlier version writes an entry.
create function decision_of_project() returns trigger language plpgsql as $$
begin
    new.project := (select project from stack where id = new.stack_id);
    return new;
end;
$$;
create trigger decision_of_project before insert on decision
    for each row when (new.project is null) execute function decision_of_project();

-- Signed checkpoints of the audit log, one chain for each project (engine/hooks/checkpoint.py). The
-- signing key is in a file. id: subject of the events; number, digest: of the newest checkpoint.
create table audit_chain (
    project text primary key,
    id uuid not null default gen_random_uuid(),
    number integer not null default 0,
    digest text not null default repeat('0', 64)
);

create table audit_checkpoint (
    project text not null,
    number integer not null,
    at timestamptz not null,
    previous text not null,                      -- digest of the checkpoint before it
    heads jsonb not null,                        -- [[stack_id, number, hash]]
    digest text not null,
    key_id text not null,
    signature text not null,
    exported boolean not null default false,     -- it is in the file of checkpoints
    primary key (project, number)
);
create index audit_checkpoint_to_export on audit_checkpoint (project, number) where not exported;

-- The last signed entry of each stack.
create table audit_head (
    stack_id uuid primary key,
    number integer not null
);


-- Events. stack_id and sequence, also in outbox and delivery: of the stack, or of the subscription
-- if the event is about a subscription.

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
    traceparent text,
    primary key (stack_id, sequence)
);
-- Without statistics, PostgreSQL uses any index whose first column has a given value. With the ID
-- first, a search by number does not read all events of a stack.
create index event_by_own_id on event (id, stack_id);
create index event_started on event (stack_id, sequence)
    where type like 'headgate.stack.%.started';

-- One row for each commit and stack: the events to publish. position: the order in which commits
-- became visible, assigned under the lock of `outbox_cursor`.
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

-- The last position that was assigned. A publisher locks this row.
create table outbox_cursor (
    only_one boolean primary key default true check (only_one),
    position bigint not null
);
insert into outbox_cursor (position) values (0);

-- The last position of each project whose events were purged. A reader of the stream that has read
-- less has missed events.
create table purged_position (
    project text primary key,
    position bigint not null,
    sequence bigint not null
);


-- Subscriptions

create table subscription (
    id uuid primary key,
    name text not null default '',               -- in the settings; '': of another origin
    project text not null,                       -- '*': every project; only in the settings
    stack_id uuid,                               -- origin environment: the only stack it is for
    channel text not null,
    target text not null,
    events text[] not null,                      -- globs of event types; empty: all
    stacks text[] not null,
    resources text[] not null,
    types text[] not null,
    points text[] not null,
    tags text[] not null default '{}',
    nested boolean not null default true,        -- includes nested stacks
    ordered boolean not null,
    secrets jsonb not null,                      -- newest first; two during a rotation
    rotated_at timestamptz,
    failures integer not null default 0,         -- undeliverable ones since the last delivered one
    state text not null check (state in ('enabled', 'disabled')),
    reason text not null default '',
    origin text not null check (origin in ('api', 'configuration', 'environment')),
    owner text not null default '',              -- who last changed its target or filters
    owner_id text not null default '',           -- '': an earlier version wrote the row
    owner_roles text[] not null default '{}',
    sequence bigint not null default 0,          -- number of its newest event
    -- Event that started a change to an environment without it; null: the environment names it.
    removed_at_sequence bigint,
    created_at timestamptz not null default now()
);
create index subscription_by_project on subscription (project, created_at, id);
create index subscription_by_stack on subscription (stack_id) where stack_id is not null;

create table delivery (
    stack_id uuid not null,
    sequence bigint not null,
    subscription_id uuid not null,
    id uuid not null default gen_random_uuid(),
    project text not null,
    event_id uuid not null,
    type text not null,
    hook_id uuid,                                -- not null: notification of a waiting hook
    urgent boolean not null,                     -- such notifications have a queue of their own
    state text not null check (state in ('pending', 'delivered', 'dead')),
    attempts integer not null default 0,
    claim integer not null default 0,            -- fencing number: increases with each claim
    -- Pending: time of the next attempt, or end of the lease; null: an earlier delivery of the same
    -- stack is pending (ordered subscriptions). Otherwise null.
    next_at timestamptz,
    code integer,
    error text,
    response text,                               -- start of the last response
    -- The last answer by message that did not count: the reason, and the answer. It can arrive
    -- before the attempt has ended, therefore it is not in error and response.
    ignored_reason text,
    ignored_answer text,
    created_at timestamptz not null default now(),
    ended_at timestamptz,
    primary key (stack_id, sequence, subscription_id)
) with (fillfactor = 70);
create unique index delivery_by_id on delivery (id);
create index delivery_due on delivery (urgent, subscription_id, next_at)
    where state = 'pending' and next_at is not null;
create index delivery_blocked on delivery (subscription_id, stack_id, sequence)
    where state = 'pending' and next_at is null;
-- The first columns of the next two are chosen as those of event_by_own_id.
create index delivery_sending on delivery (stack_id, subscription_id, sequence)
    where state = 'pending' and next_at is not null;
create index delivery_of_hook on delivery (hook_id, stack_id) where hook_id is not null;
create index delivery_notification on delivery (subscription_id)
    where state = 'pending' and hook_id is not null;
create index delivery_by_subscription on delivery (subscription_id, created_at, id);
create index delivery_ended on delivery (ended_at) where ended_at is not null;


-- Authentication

-- API tokens, and passwords for HTTP basic authentication, as hashes.
create table token (
    id uuid primary key,
    project text not null,                       -- '*': every project
    name text not null,                          -- of the principal
    roles text[] not null,
    kind text not null check (kind in ('token', 'password')),
    hash text not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    used_at timestamptz,                         -- not updated at each request
    revoked_at timestamptz,
    revoked_by text
);
create index token_by_project on token (project, created_at, id);
-- A principal has one password in a project.
create unique index token_password on token (project, name)
    where kind = 'password' and revoked_at is null;

-- [auth] mode in which a token was created; without a row: tokens. It is not a column of `token`,
-- because processes of an earlier version read all columns of that.
create table token_mode (
    token_id uuid primary key references token on delete cascade,
    mode text not null
);

create table session (
    id bytea primary key,                        -- hash of the cookie, which is not stored
    mode text not null,                          -- [auth] mode in which it started
    owner text not null,                         -- ID of a token, or of a Keystone user
    token_id uuid,                               -- mode tokens: the token or password
    name text not null,                          -- mode none: the name that was sent
    encrypted bytea,                             -- mode keystone: the token, by a key of the cookie
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);
create index session_by_owner on session (owner, created_at);
create index session_by_end on session (expires_at);

-- Failed and current attempts to sign in. A database crash empties the table: lockouts end early.
create unlogged table sign_in_attempt (
    key bytea primary key,                       -- hash of the address block, or of the name
    count integer not null,
    last_at timestamptz not null
);
create index sign_in_attempt_by_age on sign_in_attempt (last_at);

-- Address blocks from which a name has signed in. Attempts from there are counted separately, so
-- that strangers cannot lock out a name there.
create table sign_in_place (
    key bytea primary key,                       -- hash of the name and the address block
    last_at timestamptz not null
);
create index sign_in_place_by_age on sign_in_place (last_at);


-- The installation

create table instance (
    only_one boolean primary key default true check (only_one),
    signing_key bytea not null,                  -- first token key
    key_check bytea                              -- identifies the encryption key
);

-- Keys from which tokens of hooks, signal URLs and servers are derived.
create table token_key (
    version integer primary key,
    encrypted bytea not null,                    -- encrypted, see engine/store/encryption/secret_values.py
    created_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz,                      -- null: new tokens are derived from it
    expires_at timestamptz                       -- signal and server tokens are valid until then
);
create unique index token_key_current on token_key ((true)) where retired_at is null;

-- Running processes.
create table process (
    id uuid primary key,
    host text not null,
    roles text[] not null,                       -- process roles
    key_ids text[] not null default '{}',        -- its encryption keys; the first one encrypts
    report_interval interval not null,           -- time between reports
    started_at timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp()
);

-- The latest time that a process has read from the database's clock, and the last time that the
-- clock was set back.
create table database_clock (
    only_one boolean primary key default true check (only_one),
    seen_at timestamptz not null,
    set_back_at timestamptz,
    set_back_by interval
);
insert into database_clock (seen_at) values (clock_timestamp());

-- Version of the functions and views (engine/store/schema/routine_versions.py).
create table routines (
    only_one boolean primary key default true check (only_one),
    digest text not null,
    version integer not null default 0,
    released boolean not null default false      -- false: on the way to that version
);


-- Parameters of the functions in engine/store/routines.

create type node_key as (stack_id uuid, traversal integer, id integer);

create type event_draft as (
    stack_id uuid, type text, resource_name text, resource_type text, physical_id text,
    action text, status text, reason text, data jsonb
);
