-- Working time, which `timeout_mins` of a stack limits: `working_time`, plus the time since
-- `working_since` if that is not null. Every statement that needs it calls these functions.
--
-- Time counts while the traversal is running and at least one of its active nodes is ready, runs an
-- operation, or waits for a timer (the next poll or retry). It does not count while every active node
-- is blocked: parked without a timer, at a hook or for a nested stack. The working time of a nested
-- stack starts with that of its parent; when it ends, its parent's is at least as long.

-- The working time until p_now.
create or replace function working_time_at(p_working_time interval, p_since timestamptz,
                                           p_now timestamptz)
returns interval
language sql immutable as $$
    select p_working_time + coalesce(p_now - p_since, interval '0')
$$;

-- The working time of a parent's traversal when its nested stack ends: at least that of the nested
-- stack, p_nested. `working_since` stays.
create or replace function working_time_after_nested(p_working_time interval, p_since timestamptz,
                                                     p_nested interval, p_now timestamptz)
returns interval
language sql immutable as $$
    select p_working_time
           + greatest('0', p_nested - working_time_at(p_working_time, p_since, p_now))
$$;

-- The new `working_since` for a traversal's state and its numbers of active and blocked nodes; null:
-- time does not count. The caller adds the time up to p_now to `working_time`.
create or replace function working_time_since(p_state text, p_active integer, p_blocked integer,
                                              p_now timestamptz)
returns timestamptz
language sql immutable as $$
    select case when p_state = 'running' and p_active > p_blocked then p_now end
$$;

-- When the time limit is reached if time continues to count; null: no limit, or time does not count.
create or replace function time_limit_at(p_working_time interval, p_since timestamptz,
                                         p_limit interval)
returns timestamptz
language sql stable as $$
    select p_since + (p_limit - p_working_time)
$$;

-- Whether a traversal is to be ended: no node is left, or its time limit is reached.
create or replace function must_end(p_state text, p_working_time interval, p_since timestamptz,
                                    p_limit interval, p_now timestamptz)
returns boolean
language sql stable as $$
    select p_state = 'ending' or p_state = 'running'
           and time_limit_at(p_working_time, p_since, p_limit) <= p_now
$$;
