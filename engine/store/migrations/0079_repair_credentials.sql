-- Whether repairs of drift may act with an observation credential of a project.
alter table observation_credential add column repairs boolean not null default false;
