-- Upgrades a database of schema 24, with its data, to the schema of migrations/0040_baseline.sql,
-- which has the meaning of the columns.

-- Stacks

alter table stack add column private_outputs boolean not null default false;
-- The name of a nested stack ends with a part of its ID.
update stack set private_outputs = true
 where parent_id is null and name like '%-' || right(replace(id::text, '-', ''), 12);

-- Traversals, nodes, resources

alter table traversal rename column active to active_nodes;
alter table traversal rename column held to blocked_nodes;
alter table traversal rename column worked to working_time;
alter table traversal rename column stale to out_of_date;
alter table traversal rename column pace to step_mode;
alter table traversal rename constraint traversal_pace_check to traversal_step_mode_check;
alter table traversal rename column began to accepted;
alter table traversal rename column watched to lifecycle_view;
alter index traversal_watched rename to traversal_to_notify;
alter table traversal rename column tell_at to notify_at;
alter table traversal rename column parent_key to parent_operation_key;
alter table traversal rename column step to parent_step;
alter table traversal rename column asked to nested_breakpoints;
alter table traversal rename column cleared to cleared_breakpoints;
alter table traversal add column requested_by_id text not null default '';
update traversal t
   set nested_breakpoints = (
       select jsonb_agg(b.value - 'asked' || jsonb_build_object('requested', b.value -> 'asked')
                        order by b.nth)
         from jsonb_array_elements(t.nested_breakpoints) with ordinality b (value, nth))
 where t.nested_breakpoints <> '[]';
-- Working time is not counted after the end; operations that outlived a traversal had started it.
update traversal set working_since = null
 where working_since is not null and state not in ('running', 'ending');

alter table node rename column waits to pending_dependencies;
alter table node rename column requirers to dependents;
alter table node rename column passed to breakpoints_hit;
alter table node rename column confirmed to confirmation;
alter table node rename column awaits to signal_resource_id;
alter table node rename column woken to call_again;
alter table node drop constraint node_phase_check;
update node set phase = 'execute' where phase = 'act';
alter table node add check (phase in ('pre', 'execute', 'confirm', 'post'));
alter table past_graph rename to archived_graph;
alter table archived_graph rename constraint past_graph_pkey to archived_graph_pkey;
alter table archived_graph rename column requirers to dependents;
update archived_graph set phases = array_replace(phases, 'act', 'execute')
 where 'act' = any (phases);
alter table node
    add column expired_leases integer not null default 0,
    add column restarts integer not null default 0,
    add column restarted boolean not null default false,
    add column bytes integer not null default 0;
alter table resource rename column shown to masked_properties;
alter table resource rename column broken to tainted;
alter table resource
    add column bytes integer not null default 0,
    add column secret_attributes jsonb;
-- Only large documents are measured.
update node
   set bytes = octet_length(definition::text)
 where state in ('waiting', 'ready', 'running', 'parked') and pg_column_size(definition) > 1000;
update resource
   set bytes = coalesce(octet_length(properties::text), 0) + coalesce(octet_length(attributes::text), 0)
 where coalesce(pg_column_size(properties), 0) + coalesce(pg_column_size(attributes), 0) > 1000;
-- Properties contain a secret, therefore each attribute may.
update resource set secret_attributes = '["*"]' where masked_properties is not null;
alter table resource_signal rename column by to sent_by;
alter table resource_signal rename column at to sent_at;
alter table credential rename column sealed to encrypted;

alter table template rename column shown to masked_parameters;
alter table template rename column hidden to hidden_parameters;
alter table template
    add column requested_by_id text not null default '',
    add column requested_by_roles text[] not null default '{}';

-- Snapshots of deleted stacks. What deletion_policy: Snapshot saved belongs to other actions.
delete from resource_snapshot k
 using traversal t
 where t.stack_id = k.stack_id and t.number = k.traversal and t.action = 'SNAPSHOT'
   and not exists (select from snapshot p
                    where p.stack_id = k.stack_id and p.traversal = k.traversal);

-- Hooks and the audit log

alter table hook rename column told_at to notified_at;
alter table hook rename column unheard_at to undeliverable_at;
alter table hook rename column notice to notification;
alter table hook rename column door to channel;
alter table hook
    add column requested_by_id text not null default '',
    add column decided_by_id text not null default '';
create index hook_due_by_project on hook (project, deadline) where state = 'waiting';
drop index hook_waiting_by_project;
drop index hook_inbox;
create index hook_inbox on hook (project, state, opened_at, id);
create index hook_by_stack on hook (stack_id, state, opened_at, id);
alter index hook_wakes rename to hook_reminders;
alter index hook_settled rename to hook_decided;

alter table decision rename column door to channel;
alter table decision
    add column principal text not null default '',
    add column token_id text not null default '',
    add column form integer not null default 1;
create index decision_by_time on decision (at);

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
    previous text not null,
    heads jsonb not null,
    digest text not null,
    key_id text not null,
    signature text not null,
    exported boolean not null default false,
    primary key (project, number)
);
create index audit_checkpoint_to_export on audit_checkpoint (project, number) where not exported;
create table audit_head (
    stack_id uuid primary key,
    number integer not null
);

-- Events, subscriptions, deliveries

alter table publishing rename to outbox_cursor;
alter table outbox_cursor rename constraint publishing_pkey to outbox_cursor_pkey;
alter table outbox_cursor rename constraint publishing_only_one_check to outbox_cursor_only_one_check;
alter table stream_floor rename to purged_position;
alter table purged_position rename constraint stream_floor_pkey to purged_position_pkey;

create index event_by_own_id on event (id, stack_id);
drop index event_by_id;

alter table subscription rename column named_until to removed_at_sequence;
alter table subscription
    add column name text not null default '',
    add column owner text not null default '',
    add column owner_id text not null default '',
    add column owner_roles text[] not null default '{}';
alter table delivery rename column answer to response;
alter table delivery rename column settled_at to ended_at;
alter index delivery_settled rename to delivery_ended;
alter index delivery_notice rename to delivery_notification;
alter table delivery
    add column ignored_reason text,
    add column ignored_answer text;
create index delivery_of_hook on delivery (hook_id, stack_id) where hook_id is not null;
drop index delivery_by_hook;
create index delivery_sending on delivery (stack_id, subscription_id, sequence)
    where state = 'pending' and next_at is not null;
drop index delivery_under_way;

-- Events of partial updates.
update event set data = data - 'stale' || jsonb_build_object('out_of_date', data -> 'stale')
 where data ? 'stale';
-- The event headgate.hook.unheard is now headgate.hook.undeliverable.
update event set type = 'headgate.hook.undeliverable' where type = 'headgate.hook.unheard';
update delivery set type = 'headgate.hook.undeliverable' where type = 'headgate.hook.unheard';
update subscription
   set events = array_replace(events, 'headgate.hook.unheard', 'headgate.hook.undeliverable')
 where 'headgate.hook.unheard' = any (events);

-- Authentication

create table token_mode (
    token_id uuid primary key references token on delete cascade,
    mode text not null
);
create table session (
    id bytea primary key,
    mode text not null,
    owner text not null,
    token_id uuid,
    name text not null,
    encrypted bytea,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);
create index session_by_owner on session (owner, created_at);
create index session_by_end on session (expires_at);
create unlogged table sign_in_attempt (
    key bytea primary key,
    count integer not null,
    last_at timestamptz not null
);
create index sign_in_attempt_by_age on sign_in_attempt (last_at);
create table sign_in_place (
    key bytea primary key,
    last_at timestamptz not null
);
create index sign_in_place_by_age on sign_in_place (last_at);

-- The installation

create table token_key (
    version integer primary key,
    encrypted bytea not null,
    created_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz,
    expires_at timestamptz
);
create unique index token_key_current on token_key ((true)) where retired_at is null;
alter table process add column key_ids text[] not null default '{}';
create table database_clock (
    only_one boolean primary key default true check (only_one),
    seen_at timestamptz not null,
    set_back_at timestamptz,
    set_back_by interval
);
insert into database_clock (seen_at) values (clock_timestamp());
alter table routines
    add column version integer not null default 0,
    add column released boolean not null default false;
