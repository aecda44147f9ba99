-- Upgrades a database of schema 24, with its data, to the schema of migrations/0037_baseline.sql,
-- which has the meaning of the columns.

-- Traversals, nodes, resources

alter table traversal add column requested_by_id text not null default '';
-- Working time is not counted after the end; operations that outlived a traversal had started it.
update traversal set working_since = null
 where working_since is not null and state not in ('running', 'ending');

alter table node
    add column lost integer not null default 0,
    add column restarts integer not null default 0,
    add column restarted boolean not null default false,
    add column bytes integer not null default 0;
alter table resource
    add column bytes integer not null default 0,
    add column secret jsonb;
-- Only large documents are measured.
update node
   set bytes = octet_length(definition::text)
 where state in ('waiting', 'ready', 'running', 'parked') and pg_column_size(definition) > 1000;
update resource
   set bytes = coalesce(octet_length(properties::text), 0) + coalesce(octet_length(attributes::text), 0)
 where coalesce(pg_column_size(properties), 0) + coalesce(pg_column_size(attributes), 0) > 1000;
-- Properties contain a secret, therefore each attribute may.
update resource set secret = '["*"]' where shown is not null;

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
alter table hook
    add column requested_by_id text not null default '',
    add column decided_by_id text not null default '';
create index hook_due_by_project on hook (project, deadline) where state = 'waiting';
drop index hook_waiting_by_project;

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

create index event_by_own_id on event (id, stack_id);
drop index event_by_id;

alter table subscription
    add column name text not null default '',
    add column owner text not null default '',
    add column owner_id text not null default '',
    add column owner_roles text[] not null default '{}';
alter table delivery
    add column ignored text,
    add column ignored_answer text;
create index delivery_of_hook on delivery (hook_id, stack_id) where hook_id is not null;
drop index delivery_by_hook;
create index delivery_sending on delivery (stack_id, subscription_id, sequence)
    where state = 'pending' and next_at is not null;
drop index delivery_under_way;

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
    sealed bytea not null,
    created_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz,
    expires_at timestamptz
);
create unique index token_key_current on token_key ((true)) where retired_at is null;
alter table process add column key_ids text[] not null default '{}';
create table clock_mark (
    only_one boolean primary key default true check (only_one),
    seen_at timestamptz not null,
    set_back_at timestamptz,
    set_back_by interval
);
insert into clock_mark (seen_at) values (clock_timestamp());
alter table routines
    add column version integer not null default 0,
    add column released boolean not null default false;
