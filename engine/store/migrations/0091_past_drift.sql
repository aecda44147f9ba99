-- Stacks in which something drifted are observed sooner for a while (engine/plan/observation_risk.py).
alter table observation_schedule
    add column drifted_at timestamptz;           -- when drift of a resource was last found or ended; null: never
