-- What each project has used, by day in UTC: see engine/store/projects/usage.py. A row is written after the day
-- has ended.
create table project_usage (
    project text not null,
    day date not null,
    observations bigint not null,                -- of resources
    provider_requests bigint not null,           -- requests of these observations
    drift_found bigint not null,                 -- resources that became different
    repairs bigint not null,
    operations bigint not null,
    hooks bigint not null,                       -- that ended
    hook_seconds bigint not null,                -- for which they waited
    resource_hours bigint not null,
    primary key (project, day)
);
-- The day up to which project_usage is complete.
create table usage_roll_up (
    only_one boolean primary key default true check (only_one),
    day date not null
);
insert into usage_roll_up (day) values ((now() at time zone 'UTC')::date - 1);

-- What observers have done on days that are not rolled up. slot: a project has several rows, so that
-- observers seldom wait for one another.
create table observer_usage (
    project text not null,
    day date not null,
    slot integer not null,
    observations bigint not null,
    provider_requests bigint not null,
    drift_found bigint not null,
    primary key (project, day, slot)
) with (fillfactor = 50);
-- The number of resources at each hour of days that are not rolled up.
create table resource_sample (
    project text not null,
    at timestamptz not null,
    resources bigint not null,
    primary key (project, at)
);
create index resource_sample_by_time on resource_sample (at);

-- The subject of a project's events about usage.
create table usage_feed (
    project text primary key,
    id uuid not null default gen_random_uuid(),
    number bigint not null default 0             -- of the newest event
);
