-- The adopted values of a resource when its snapshot was taken (engine/plan/overrides.py).
alter table resource_snapshot add column overrides jsonb;
