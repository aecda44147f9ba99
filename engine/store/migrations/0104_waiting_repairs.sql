-- Drift whose repair waits for other observations of its stack tree, or for the end of a change
-- (engine/store/observer/waiting_repairs.py).
alter table observation_schedule
    add column repair_root uuid,                 -- the root stack whose update will repair it; null: nothing waits
    add column repair_resources uuid[],          -- the resources with drift
    add column repair_found_at timestamptz,      -- start of the observation that has found it; null: they must be observed
                                                 -- again, when no change of the root stack is under way
    add column repair_waits_at timestamptz;      -- when the first of them began to wait
create index observation_waiting_repair on observation_schedule (repair_root) where repair_root is not null;
