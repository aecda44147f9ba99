-- Hooks, whole: rules with people in them, live breakpoints, the stack's own gates, the audit trail.

alter table stack
    add column rules jsonb;                          -- breakpoints of the stack as a whole that stay

alter table traversal
    add column pace text check (pace in ('step', 'run')), -- null: as the rules say
    add column began boolean not null default false,      -- its plug-ins have let it pass
    add column watched jsonb,                             -- what they are to be told of; null: nothing
    add column tell_at timestamptz;                       -- while they are told: when to try again
create index traversal_watched on traversal (ended_at) where watched is not null and ended_at is not null;

alter table node
    add column confirmed jsonb,                      -- the answer to what its operation asked last
    add column patched jsonb,                        -- properties that an answer changed
    drop constraint node_operation_check,
    add constraint node_operation_check check (operation in (
        'create', 'update', 'replace', 'delete', 'adopt', 'check', 'suspend', 'resume',
        'snapshot', 'begin', 'finish'));

alter table hook
    add column rule jsonb not null default '{}',     -- as engine/hooks/rule.py encodes it
    add column requested_by text not null default '', -- who asked for the change
    add column wake_at timestamptz,                  -- the next reminder, or the escalation
    add column reminders integer not null default 0,
    add column escalated_at timestamptz,
    add column assigned text;                        -- to whom it was handed over
update hook h
   set rule = jsonb_strip_nulls(jsonb_build_object(
           'point', h.point, 'mode', h.mode, 'on_timeout', h.on_timeout,
           'timeout', extract(epoch from h.timeout))),
       requested_by = t.requested_by
  from traversal t
 where t.stack_id = h.stack_id and t.number = h.traversal;
alter table hook alter column rule drop default;
create index hook_data on hook (stack_id, traversal) where data is not null;
create index hook_wakes on hook (wake_at) where state = 'waiting' and wake_at is not null;

-- Breakpoints that somebody set on a live stack. pattern: a glob on resource names; '': the stack.
create table breakpoint (
    stack_id uuid not null,
    id uuid not null,
    pattern text not null,
    rule jsonb not null,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (stack_id, id)
);

-- Who decided what, through which door and why. Only ever added to; each row's hash covers the row
-- and the hash before it (engine/hooks/hash_chain.py). number: 1, 2, ... within a stack.
create table decision (
    stack_id uuid not null,
    number integer not null,
    hook_id uuid,                                    -- null: about breakpoints
    kind text not null,
    by text not null,
    door text not null,
    address text not null,
    reason text not null,
    digest text not null,
    data text not null,                              -- JSON, to the letter as it was hashed
    at timestamptz not null,
    hash text not null,
    primary key (stack_id, number)
);
create index decision_by_hook on decision (stack_id, hook_id) where hook_id is not null;

-- What a traversal may act with in the cloud, sealed with a key that is not in the database
-- (engine/store/encryption.py). Here only while the traversal has work.
create table credential (
    stack_id uuid not null,
    traversal integer not null,
    sealed bytea not null,
    primary key (stack_id, traversal)
);

-- Data that somebody sent to a resource whose type waits for it, early or in time.
create table resource_signal (
    stack_id uuid not null,
    resource_id uuid not null,
    number integer not null,
    data jsonb not null,
    by text not null,
    at timestamptz not null default clock_timestamp(),
    primary key (stack_id, resource_id, number)
);
