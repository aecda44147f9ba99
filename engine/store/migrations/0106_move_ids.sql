-- Each move of a project between cells has an ID (ADR 16), which each of its steps compares.
alter table cell_project
    add column move_id uuid,                     -- of the move to moving_to; null: none, or one of an earlier version
    add column move_rows bigint,                 -- how many rows have left their tables with it; null: not known
    add column moving_since timestamptz;         -- when it was announced
-- In the database of the new cell: how each move has ended. The first transaction that adds the row decides: a move
-- that was undone never arrives, and one that has arrived is never undone.
create table move_outcome (
    move_id uuid primary key,
    has_arrived boolean not null,                -- false: it was undone
    decided_at timestamptz not null default clock_timestamp()
);
