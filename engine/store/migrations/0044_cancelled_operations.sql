-- The operation of the node is to end early: its change was cancelled, or superseded by a delete.
alter table node add column cancelled boolean not null default false;
