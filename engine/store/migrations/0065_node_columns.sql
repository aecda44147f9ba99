-- contract: 0062_rolling_upgrades.sql
-- Programs that know that one work with this table: it has the same columns in another order.
-- The columns with which a node is planned come first, and those that steps change last. PostgreSQL writes
-- an update to the WAL from the first byte that differs to the last one, if the new row fits into the page
-- of the old one, for which the fill factor leaves room. So no step writes the definition again (ADR 13).
-- All locks are taken first, in the order of the engine's statements, and none while the table is written:
-- no process waits for the migration with a lock that the migration needs.
lock table stack in share row exclusive mode;
lock table node in access exclusive mode;
lock table resource, delivery in share row exclusive mode;
lock table event in access exclusive mode;
alter table node rename to node_before;
alter index node_pkey rename to node_before_pkey;
alter index node_due rename to node_before_due;
alter table node_before
    drop constraint node_operation_check, drop constraint node_direction_check,
    drop constraint node_state_check, drop constraint node_phase_check;

create table node (
    stack_id uuid not null,
    traversal integer not null,
    id integer not null,
    bytes integer not null default 0,            -- size of a large definition as JSON
    resource_id uuid not null,
    replacement_id uuid,                         -- ID of the row that a replacement creates
    name text not null,                          -- of the resource; '': the whole stack
    type text not null,
    operation text not null check (operation in (
        'create', 'update', 'replace', 'delete', 'adopt', 'check', 'suspend', 'resume',
        'snapshot', 'begin', 'finish')),
    direction text not null check (direction in ('forward', 'cleanup')),
    dependents integer[] not null,               -- nodes that wait for it
    requires text[],                             -- resources it depends on; null: see the row
    reads text[] not null,                       -- resources that its properties read
    rules jsonb,                                 -- hook rules that match it
    definition jsonb,                            -- {properties, masked, metadata, digest}
    patched jsonb,                               -- properties that an answer changed
    -- What steps change.
    wake_at timestamptz,                         -- ready: since; running: lease; parked: timer
    started_at timestamptz,
    ended_at timestamptz,
    claim integer not null,                      -- fencing number: increases with each claim
    pending_dependencies integer not null,       -- number of nodes that it waits for
    attempts integer not null default 0,         -- failures after which the operation was retried
    expired_leases integer not null default 0,   -- consecutive claims whose lease expired
    restarts integer not null default 0,         -- calls repeated because their process ended
    successor integer,                           -- node of the current traversal that waits for it
    restarted boolean not null default false,    -- the current claim is such a repetition
    call_again boolean not null default false,   -- call its operation again when this call ends
    cancelled boolean not null default false,    -- its operation is to end early
    step_into boolean not null default false,    -- its nested traversal starts in mode step
    state text not null check (state in (
        'waiting', 'ready', 'running', 'parked', 'done', 'failed', 'stopped', 'dropped')),
    phase text not null check (phase in ('pre', 'execute', 'confirm', 'post')),
    worker text,
    operation_key uuid,
    reason text,
    progress jsonb,
    confirmation jsonb,                          -- answer to the last hook of its operation
    breakpoints_hit text[] not null,             -- points whose hooks have opened
    signal_resource_id uuid,                     -- whose signals it waits for; null: its own
    primary key (stack_id, traversal, id)
) with (fillfactor = 40);
insert into node (
    stack_id, traversal, id, bytes, resource_id, replacement_id, name, type, operation, direction,
    dependents, requires, reads, rules, definition, patched, wake_at, started_at, ended_at, claim,
    pending_dependencies, attempts, expired_leases, restarts, successor, restarted, call_again,
    cancelled, step_into, state, phase, worker, operation_key, reason, progress, confirmation,
    breakpoints_hit, signal_resource_id)
select
    stack_id, traversal, id, bytes, resource_id, replacement_id, name, type, operation, direction,
    dependents, requires, reads, rules, definition, patched, wake_at, started_at, ended_at, claim,
    pending_dependencies, attempts, expired_leases, restarts, successor, restarted, call_again,
    cancelled, step_into, state, phase, worker, operation_key, reason, progress, confirmation,
    breakpoints_hit, signal_resource_id
  from node_before;
drop table node_before cascade; -- with views, which are created again with the routines
create index node_due on node (stack_id, traversal, wake_at) where wake_at is not null;
do $$
begin
    if exists (select from node) then -- else PostgreSQL would plan for a table that stays empty
        analyze node;
    end if;
end;
$$;
