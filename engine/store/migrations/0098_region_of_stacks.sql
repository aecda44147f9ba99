-- The region of the cloud in which a stack has its objects: the section `context` in the environment of its root
-- stack. '': the configured one.
alter table stack add column region text not null default '';
