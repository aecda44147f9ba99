-- Software configs and their deployments; and which processes are at work.

-- Never changed once made. config: text, or a map. inputs, outputs: lists of {name, type, ...}.
-- config and inputs are sealed.
create table software_config (
    id uuid primary key,
    project text not null,
    name text not null,
    "group" text not null,
    config jsonb not null,
    inputs jsonb not null,
    outputs jsonb not null,
    options jsonb not null,
    created_at timestamptz not null default clock_timestamp()
);
create index software_config_by_project on software_config (project, created_at, id);

-- input_values, output_values: by name; sealed.
create table software_deployment (
    id uuid primary key,
    project text not null,
    config_id uuid not null references software_config,
    server_id text not null,
    input_values jsonb not null,
    output_values jsonb,
    action text not null,
    status text not null,
    status_reason text not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz
);
create index software_deployment_by_project on software_deployment (project, created_at, id);
create index software_deployment_by_server on software_deployment (project, server_id);
create index software_deployment_by_config on software_deployment (config_id);

-- One row for each process that runs, with the roles it has.
create table process (
    id uuid primary key,
    host text not null,
    roles text[] not null,
    report_interval interval not null, -- how often it says that it runs
    started_at timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp()
);
