-- Operations that a service has accepted, and that the observer completes.
create table completion (
    stack_id uuid not null,
    operation_key uuid not null,
    request_id uuid not null,                    -- the request that finds its object
    object_id text not null,                     -- of the object in the response
    definition jsonb not null,                   -- of the request, and when the object is complete
    result jsonb,                                -- the object; null: it is not complete
    primary key (stack_id, operation_key)
);
create index completion_request_object on completion (request_id, object_id);
create index completion_object on completion (object_id);

-- Requests of the observer, each for all operations of one project, type and list.
create table completion_request (
    id uuid primary key,                         -- a digest of project, type and list
    project text not null,
    type text not null,
    next_at timestamptz not null,                -- due then; while it is sent: end of the lease
    claim integer not null default 0,            -- fencing number: increases with each claim
    claimed_at timestamptz,                      -- null: it is not sent now
    requested boolean not null default false,    -- an event arrived while it was sent
    ended_at timestamptz,                        -- end of the last one
    sent integer not null default 0,             -- since an operation was added
    failures integer not null default 0,         -- consecutive ones
    max_pause interval not null                  -- between two of them
);
create index completion_request_due on completion_request (next_at);
