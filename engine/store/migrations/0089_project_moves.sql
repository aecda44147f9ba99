-- Moves of projects between cells (ADR 16).
alter table cell_project
    add column moving_to text,                   -- the cell to which it moves, or has moved; null: none
    add column move_state text,                  -- announced, taken, moved; null: it does not move
    add column arrived_from text;                -- the cell from which it has moved here; null: created here

-- The rows of projects that move, from the time when they leave their tables in the one cell until
-- they are in those of the other one.
create table moving_row (
    project text not null,
    source_table text not null,
    number bigint generated always as identity,
    content text not null,                       -- the row as text
    primary key (project, source_table, number)
);
