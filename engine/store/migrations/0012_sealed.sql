-- What nobody is shown is sealed at rest: jsonb holds sealed values in the place of plain ones.

alter table instance
    add column key_check bytea;  -- tells whether a key is the one that values are sealed with
alter table resource alter column reference type jsonb using to_jsonb(reference);
alter table subscription alter column secrets type jsonb using to_jsonb(secrets);
