-- Rules about deliveries. Each is in one place; PostgreSQL replaces a call by its body, so that indexes are
-- used. tests/integration/database/test_rules_in_sql.py checks them for all cases.

-- Whether a delivery has its turn: it is due, waits for a retry, or is claimed.
create or replace function delivery_has_turn(p_state text, p_next_at timestamptz)
returns boolean
language sql immutable as $$ select p_state = 'pending' and p_next_at is not null $$;

-- Whether it waits for an earlier delivery of its stack to the same subscription.
create or replace function delivery_is_blocked(p_state text, p_next_at timestamptz)
returns boolean
language sql immutable as $$ select p_state = 'pending' and p_next_at is null $$;

-- Whether it may be attempted: it has its turn, and no lease or pause before a retry.
create or replace function delivery_is_due(p_state text, p_next_at timestamptz, p_now timestamptz)
returns boolean
language sql immutable as $$ select p_state = 'pending' and p_next_at <= p_now $$;

-- Whether its next attempt is a retry.
create or replace function is_retry(p_attempts integer)
returns boolean
language sql immutable as $$ select p_attempts > 0 $$;
