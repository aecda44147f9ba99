-- Requests to providers that have failed while their endpoint works, for all processes
-- (engine/work/observer/endpoint_back_off.py).
create table failed_request (
    project text not null,
    type text not null,                          -- the resource type
    endpoint text not null,
    request text not null,                       -- a digest; or the ID of a stack most of whose requests failed
    failures integer not null,                   -- consecutive ones
    until timestamptz not null,                  -- policies do not repeat it until then
    reason text not null,
    public_reason text not null,                 -- the part of it that has no value of a resource
    primary key (project, type, endpoint, request)
);
create index failed_request_until on failed_request (until);
create index failed_request_of_project on failed_request (project, until);
create index provider_failure_of_project on provider_failure (project, until);

alter table observation
    add column request text not null default ''; -- of state unknown: the request that observes it, as in
                                                 -- failed_request
