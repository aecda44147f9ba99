-- This database as a cell of several that one address serves.
create table cell (
    only_one boolean primary key default true check (only_one),
    name text not null,                          -- in [cells] of the processes that serve it
    id uuid not null,
    announced integer not null default 0,        -- the newest revision of [cells] of any process
    agreed integer not null default 0,           -- the newest revision in placements; 0: none
    placements jsonb not null default '[]'       -- all revisions up to it, the newest first
);
-- The projects that are in this cell.
create table cell_project (
    project text primary key,
    since timestamptz not null default clock_timestamp()
);
