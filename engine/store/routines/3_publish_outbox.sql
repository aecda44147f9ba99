-- Gives the next stream positions to unpublished rows of the outbox, at most p_limit, in the order of
-- their IDs, and notifies the readers of streams. Only committed rows get positions, so a reader that
-- has read up to a position has every event before it.
--
-- One transaction at a time publishes: p_locked is false if another one does, and nothing is written. Nothing
-- is written, either, if all rows are published.
-- p_quick: the caller creates no deliveries. If a subscription or the environment of a stack may want
-- the events, p_subscribed is true and nothing is written.
-- p_stacks, p_projects, p_first, p_last: the published rows.

create or replace function publish_outbox(
    p_limit integer, p_quick boolean,
    out p_locked boolean, out p_subscribed boolean, out p_stacks uuid[], out p_projects text[],
    out p_first bigint[], out p_last bigint[])
-- Volatile: each statement of the function sees what has been committed before it starts. So the second
-- one sees all positions that the publisher before has given, and must not be part of the first one.
language plpgsql volatile
-- Search by key: see `advance`.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_position bigint;
    v_ids bigint[];
begin
    p_subscribed := false;
    p_locked := true;
    -- A lock would cost a durable commit. Commits notify publishers, also of what is not visible yet.
    if (select o.id from outbox o where o.position is null order by o.id limit 1) is null then
        return;
    end if;
    select p.position into v_position from outbox_cursor p for update skip locked;
    p_locked := v_position is not null;
    if not p_locked then
        return;
    end if;
    select array_agg(o.id), array_agg(o.stack_id), array_agg(o.project), array_agg(o.first),
           array_agg(o.last)
      into v_ids, p_stacks, p_projects, p_first, p_last
      from (select u.id, u.stack_id, u.project, u.first, u.last from outbox u
             where u.position is null order by u.id limit p_limit) o;
    if v_ids is null then
        return;
    end if;
    if p_quick then
        p_subscribed :=
            exists (select from subscription s
                     where s.project = any (p_projects || '*'::text) and s.state = 'enabled')
            or exists (
               select from unnest(p_stacks, p_first, p_last) w (stack_id, first, last)
                cross join lateral (
                      select e.data from event e
                       where e.stack_id = w.stack_id and e.sequence between w.first and w.last
                         and e.type like 'headgate.stack.%.started' offset 0) e
                where exists (select from subscription s
                               where s.stack_id = w.stack_id offset 0)
                   or exists (select from template t
                               where t.stack_id = w.stack_id
                                 and t.version = (e.data ->> 'version')::integer
                                 and t.environment -> 'event_sinks' is not null offset 0));
        if p_subscribed then
            return;
        end if;
    end if;
    update outbox o set position = v_position + w.nth
      from unnest(v_ids) with ordinality w (id, nth)
     where o.id = w.id;
    update outbox_cursor set position = v_position + cardinality(v_ids);
    perform pg_notify('headgate_published', '');
end;
$$;
