-- Stepping through stacks inside of stacks.

alter table node add column step_into boolean not null default false; -- what it begins is stepped through
alter table traversal
    drop constraint traversal_pace_check,
    add constraint traversal_pace_check check (pace in ('step', 'run'));
