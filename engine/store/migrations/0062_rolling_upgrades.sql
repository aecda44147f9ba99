-- The programs that may use this database: those that know this migration, or a later one
-- (engine/store/schema/compatibility.py).
create table oldest_program (
    only_one boolean primary key default true check (only_one),
    migration text not null,
    required_by text not null                    -- version of the program that requires it
);

alter table process
    add column version text not null default '', -- of its program; '': of an earlier one, which does not report it
    add column migration text not null default '', -- the newest migration that it knows
    add column routines integer not null default 0; -- the version of its functions and views
