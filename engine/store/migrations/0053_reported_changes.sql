-- Changes of physical resources that were reported. These resources alone are observed, before those
-- that a policy schedules.
alter table observation_schedule
    add column reported uuid[],                  -- the resources; null: none
    add column reported_at timestamptz,          -- last report; later than claimed_at: still due
    add column resume_at timestamptz;            -- next_at before the report
comment on column observation_schedule.next_at is
    'due then: epoch if it was requested, a second later if changes were reported; while it is observed: '
    'end of the lease; null: never';
-- The start of the ID, because an entry of an index has at most 2,704 bytes.
-- The condition holds for searches by ID only, so no other statement reads the table by this index.
create index resource_by_physical_id on resource (left(physical_id, 200))
    where left(physical_id, 200) is not null;
