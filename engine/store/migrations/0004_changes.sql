-- Every change: rollback, time limits, visits (check, suspend, resume), snapshots, partial updates.

alter table traversal
    add column project text not null default '',     -- the stack's; for turns between projects
    add column held integer not null default 0,      -- of the active nodes, those parked at a hook
    add column time_limit interval,                  -- how long it may work; null: any time
    add column worked interval not null default '0', -- how long it has, hooks apart
    add column working_since timestamptz,            -- null while nothing but hooks is left
    add column stale text[] not null default '{}';   -- resources a partial update left out
update traversal t
   set project = s.project,
       held = (select count(*) from node n
                where n.stack_id = t.stack_id and n.traversal = t.number
                  and n.state = 'parked' and n.phase <> 'act')
  from stack s where s.id = t.stack_id;
update traversal set working_since = clock_timestamp()
 where state = 'running' and active > held;
alter table traversal alter column project drop default;
create index traversal_turn on traversal (project, wake_at) where wake_at is not null;

alter table node
    add column attempts integer not null default 0,  -- how often its operation failed and is retried
    drop constraint node_operation_check,
    add constraint node_operation_check check (operation in (
        'create', 'update', 'replace', 'delete', 'adopt', 'check', 'suspend', 'resume',
        'snapshot'));

alter table resource
    add column deletion_policy text not null default 'Delete'
        check (deletion_policy in ('Delete', 'Retain', 'Snapshot')),
    add column protected boolean not null default false; -- neither deleted nor replaced

-- A snapshot is a version of the template and what the resources kept in one traversal. What a
-- resource keeps before it is deleted (deletion_policy Snapshot) belongs to no snapshot.
create table snapshot (
    stack_id uuid not null,
    id uuid not null,
    name text not null,
    traversal integer not null,
    version integer not null,
    created_at timestamptz not null default now(),
    primary key (stack_id, id)
);
create table resource_snapshot (
    stack_id uuid not null,
    traversal integer not null,
    resource_id uuid not null,
    name text not null,
    type text not null,
    physical_id text,
    properties jsonb,
    metadata jsonb,
    data jsonb not null,        -- the type's own
    created_at timestamptz not null default now(),
    primary key (stack_id, traversal, resource_id)
);
