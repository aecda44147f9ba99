-- The schema of this database in which the rows of a project can be read while it moves to another cell (ADR 16).
create table moving_schema (
    project text primary key,
    name text not null,
    filled boolean not null default false        -- it has the rows of the project; otherwise, the tables have them
);
