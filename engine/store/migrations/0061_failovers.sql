-- What processes knew when another database server was promoted, and this database did not know.
create table failover_loss (
    id bigint generated always as identity primary key,
    detected_at timestamptz not null default clock_timestamp(),
    process text not null,                       -- host and process ID
    former_timeline integer,                     -- of the primary before
    timeline integer,                            -- of this one
    commits bigint not null,                     -- published commits that are missing, at least
    operations jsonb not null                    -- [{project, stack, stack_id, resource, type, operation,
                                                 -- operation_key}]
);
