-- Rules of engine/hooks/rule.py about a stored rule, for statements that work on many rows
-- (tests/integration/database/test_rules_in_sql.py compares the two).

-- `Rule.blocks`: whether it blocks a node that reaches its point.
create or replace function rule_blocks(p_rule jsonb)
returns boolean
language sql immutable as $$
    select p_rule ->> 'mode' is distinct from 'notify'
           and not coalesce((p_rule ->> 'dry')::boolean, false)
$$;
