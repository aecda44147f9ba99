-- Working time: what counts towards a stack's `timeout_mins`. It is `worked`, plus the time since
-- `working_since` where that is set; every statement that needs it asks these functions.
--
-- Time counts while the traversal is running and at least one of its active nodes has something to
-- do: it is ready, an operation runs, or it waits for a timer (the next poll, a retry). It does not
-- count while every active node is held: parked without a timer, at a hook or for a nested stack. A
-- nested stack counts for itself, from what its parent had worked when it began; when it ends, its
-- parent has worked at least as long.

-- The working time until p_now.
create or replace function working_time(p_worked interval, p_since timestamptz, p_now timestamptz)
returns interval
language sql immutable as $$
    select p_worked + coalesce(p_now - p_since, interval '0')
$$;

-- `working_since` from p_now on, by the traversal's state and its active and held nodes; null: time
-- does not count. What counted before is added to `worked`.
create or replace function working_time_since(p_state text, p_active integer, p_held integer,
                                              p_now timestamptz)
returns timestamptz
language sql immutable as $$
    select case when p_state = 'running' and p_active > p_held then p_now end
$$;

-- When the time limit is reached if time keeps counting; null: there is no limit, or no time counts.
create or replace function working_time_over_at(p_worked interval, p_since timestamptz,
                                                p_limit interval)
returns timestamptz
language sql stable as $$
    select p_since + (p_limit - p_worked)
$$;
