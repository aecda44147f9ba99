-- Drift that was reported by an event, for stacks whose convergence policy reports or repairs it.
alter table observation
    add column reported jsonb,                   -- the last event: {name, type, physical_id, state,
                                                 -- differences, unrepaired: why}; null: none
    add column resolved_at timestamptz;          -- it was reported, is resolved, and has no event yet
