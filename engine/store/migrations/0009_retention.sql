-- How long things are kept; stacks that are kept for good; in whose trace things happen.

alter table stack
    add column pinned_by text,
    add column pinned_at timestamptz,            -- null: it goes when its time has come
    add column pinned_reason text;

-- The last place of a project's stream of which something is gone: who has read less has missed
-- something.
create table stream_floor (
    project text primary key,
    position bigint not null,
    sequence bigint not null
);

create index stack_deleted on stack (deleted_at) where deleted_at is not null;
create index traversal_ended on traversal (ended_at) where ended_at is not null;
create index hook_settled on hook (decided_at) where state <> 'waiting';
create index delivery_settled on delivery (settled_at) where settled_at is not null;
create index idempotency_by_age on idempotency (created_at);
create index decision_first on decision (at) where number = 1;

-- W3C traceparent of the request that began what is under way, or did last; null: it is of no trace.
alter table stack add column traceparent text;
alter table traversal add column traceparent text;
alter table event add column traceparent text;
