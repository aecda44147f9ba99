-- Budgets of requests to endpoints of providers (engine/request_budget.py), for all processes.
create table provider_budget (
    endpoint text primary key,
    state jsonb not null,                        -- {paid, turns: {project: [at, count]}}, seconds since the epoch
    used_at timestamptz not null                 -- last change
);

-- Endpoints of providers that have failed, for all processes (engine/work/endpoint_back_off.py).
create table provider_failure (
    project text not null,
    type text not null,                          -- the resource type
    endpoint text not null,
    failures integer not null,                   -- consecutive ones
    until timestamptz not null,                  -- policies do not observe it until then
    since timestamptz not null,                  -- of the first of these failures
    reason text not null,
    public_reason text not null,                 -- the part of it that has no value of a resource
    throttled boolean not null,                  -- it has requested fewer requests
    primary key (project, type, endpoint)
);
create index provider_failure_until on provider_failure (until);

-- Resources that an observation has left out because the budget of requests was used up.
alter table observation_schedule
    add column deferred uuid[],                  -- observed at next_at, alone; null: none
    add column deferred_since timestamptz,       -- start of the observation that they complete; null: changes
                                                 -- of them were reported
    add column deferred_reason text not null default '';
alter table observation
    add column endpoint text not null default ''; -- of state unknown: the endpoint that was asked
