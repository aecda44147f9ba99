-- Stacks of a project are observed together, even if not all of them are due yet.
alter table observation_schedule
    add column early_at timestamptz;             -- from then on, with others that are due; null: when due
