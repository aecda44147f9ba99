-- What keeps one node from harming others: how often it lost its worker, and how large it is.

alter table node
    -- Claims in a row that ended because the lease ran out, and not by a step that was written.
    add column lost integer not null default 0,
    -- How often its operation was called again because the process that ran it had ended.
    add column restarts integer not null default 0,
    add column restarted boolean not null default false, -- the claim that holds now is such a one
    add column bytes integer not null default 0;         -- of its definition, as JSON
alter table resource
    add column bytes integer not null default 0;         -- of what its last step wrote, as JSON

-- Small ones count as nothing.
update node
   set bytes = octet_length(definition::text)
 where state in ('waiting', 'ready', 'running', 'parked') and pg_column_size(definition) > 1000;
update resource
   set bytes = coalesce(octet_length(properties::text), 0) + coalesce(octet_length(attributes::text), 0)
 where coalesce(pg_column_size(properties), 0) + coalesce(pg_column_size(attributes), 0) > 1000;
