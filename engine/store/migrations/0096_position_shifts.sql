-- How the positions of a project's events have changed with each of its moves to another cell (ADR 16): a position up to
-- `boundary`, which is of the former cell, is less by `shift` than the one of the same event in the next cell. Those have the
-- positions from boundary + 2 to `last`.
create table position_shift (
    project text not null,
    boundary bigint not null,
    shift bigint not null,
    last bigint not null,
    primary key (project, boundary)
);
