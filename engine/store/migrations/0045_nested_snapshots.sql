-- The snapshot of the root stack to which a snapshot of a nested stack belongs.
alter table snapshot add column root_id uuid;
create index snapshot_by_root on snapshot (root_id) where root_id is not null;
