-- Which attributes of a resource are secret because the resource was made from secrets: a list of
-- names, in which '' stands for the reference and '*' for every attribute. Null: a process of an
-- earlier version wrote the row, and only the resource's type says which attributes are secret.
alter table resource add column secret jsonb;

update resource set secret = '["*"]' where shown is not null;
