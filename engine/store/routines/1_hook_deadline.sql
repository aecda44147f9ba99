-- Rules of engine/hooks/deadline.py, for statements that work on many rows
-- (tests/integration/hooks/test_deadline_rules.py compares the two).

-- The first deadline of a hook, which opens at p_now.
create or replace function first_deadline(p_timeout interval, p_now timestamptz)
returns timestamptz
language sql stable as $$ select p_now + p_timeout $$;

-- `has_expired`: whether a deadline has passed.
create or replace function hook_has_expired(p_deadline timestamptz, p_now timestamptz)
returns boolean
language sql immutable as $$ select p_deadline <= p_now $$;
