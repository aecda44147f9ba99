-- Rules of engine/plan/drift.py, for statements that work on many rows
-- (tests/integration/database/test_rules_in_sql.py compares the two).

-- `is_applied`.
create or replace function is_applied(p_action text, p_status text, p_marked_at timestamptz)
returns boolean
language sql immutable as $$
    select p_status = 'COMPLETE' or p_action in ('CHECK', 'SNAPSHOT') or p_marked_at is not null
$$;

-- `is_marked_after`: when a converge marked the resource, after a write of its row by a node. p_started_at: when the
-- operation of the node began.
create or replace function marked_after(p_marked_at timestamptz, p_started_at timestamptz)
returns timestamptz
language sql immutable as $$ select case when p_started_at is null then p_marked_at end $$;
