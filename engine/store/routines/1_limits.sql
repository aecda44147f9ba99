-- Limits of engine/store/traversals/advance.py (tests/integration/database/test_rules_in_sql.py compares them).

-- `MAX_EXPIRED_LEASES`.
create or replace function max_expired_leases()
returns integer
language sql immutable as $$ select 3 $$;

-- `TOO_LARGE`, in bytes.
create or replace function too_large()
returns bigint
language sql immutable as $$ select 100000000::bigint $$;
