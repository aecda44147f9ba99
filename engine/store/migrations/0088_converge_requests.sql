-- A converge with several rounds: of each stack the last one. After the update of a round, the stack is
-- observed, and another round begins if it still differs.
create table converge_request (
    stack_id uuid primary key,
    traversal integer not null,                  -- of the current round
    round integer not null,                      -- the current one, from 1
    rounds integer not null,                     -- how many there may be
    state text not null,                         -- running: the update; observing: after it; complete;
                                                 -- incomplete: it still differs; ended: without a result
    reason text not null default '',
    selected text[],                             -- names of the resources that it repairs; null: all
    request jsonb not null,                      -- only, except, hooks_clear, hooks_add
    requested_by text not null,
    requested_by_id text not null,
    encrypted bytea,                             -- the credential of the request, until it has ended
    trust uuid,                                  -- the credential is this trust; 0: it is no trust
    ended_at timestamptz
);
create index converge_request_pending on converge_request (stack_id)
    where state in ('running', 'observing');
create index converge_request_trust on converge_request (trust) where encrypted is not null;
-- Whether an update repairs drift, for a policy or an answer to a hook. It is not rolled back.
alter table traversal add column repairs_drift boolean;
