-- Sets of states of a node (engine/node/node.py; tests/integration/database/test_rules_in_sql.py compares
-- them).

-- `ENDED`: the states of a node that never changes again.
create or replace function is_ended(p_state text)
returns boolean
language sql immutable as $$ select p_state in ('done', 'failed', 'stopped', 'dropped') $$;
