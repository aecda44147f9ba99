-- A database of schema 24 with stacks, waiting hooks, secrets, a snapshot, software, a subscription and
-- pending deliveries, as written by the server of commit 5040538 and dumped with
-- `pg_dump --inserts --rows-per-insert=1000 --no-owner --no-privileges --no-comments`.

SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;

CREATE TYPE public.event_draft AS (
	stack_id uuid,
	type text,
	resource_name text,
	resource_type text,
	physical_id text,
	action text,
	status text,
	reason text,
	data jsonb
);

CREATE TYPE public.node_key AS (
	stack_id uuid,
	traversal integer,
	id integer
);

CREATE FUNCTION public.advance(p_worker text, p_lease interval, p_want integer, p_steps jsonb, p_after text) RETURNS TABLE(kind text, stack_id uuid, project text, stack_name text, traversal integer, node integer, claim integer, resource_id uuid, replacement_id uuid, name text, type text, operation text, direction text, phase text, definition jsonb, rules jsonb, passed text[], operation_key uuid, progress jsonb, attempts integer, started boolean, dependents text[], row_type text, action text, status text, physical_id text, reference jsonb, properties jsonb, shown jsonb, attributes jsonb, data jsonb, metadata jsonb, digest text, broken boolean, protected boolean, deletion_policy text, replaced_by uuid, inputs jsonb, now timestamp with time zone, pace text, confirmed jsonb, patched jsonb, answers jsonb, credential bytea, signals jsonb, traceparent text, path text, traversal_state text, awaited text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $_$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_stacks uuid[] := '{}';
    v_events event_draft[] := '{}';
    v_started event_draft[];
    v_mine node_key[] := '{}';
    v_claimed node_key[] := '{}';
    v_due node_key[] := '{}';
    v_ends node_key[] := '{}';
    v_left boolean;
    v_served text;
    v_gone jsonb;
    v_left_behind uuid[];
begin
    if jsonb_array_length(p_steps) > 0 then
        select array_agg(distinct (s ->> 'stack_id')::uuid) into v_stacks
          from jsonb_array_elements(p_steps) s;
        if p_steps @? '$[*].resource ? (@.write == "remove")' then
            v_left_behind := left_behind(p_steps);
        end if;
        perform 1 from stack where id = any (v_stacks || v_left_behind)
         order by id for no key update;
        v_now := clock_timestamp();

        with said as (
            select * from jsonb_to_recordset(p_steps) as s (
                stack_id uuid, traversal integer, node integer, claim integer, state text,
                phase text, operation text, passed text[], wake_at timestamptz, progress jsonb,
                attempts integer, reason text, confirmed jsonb, awaits uuid, resource jsonb,
                kept jsonb, hook jsonb, events jsonb)
        ), step as materialized (
            -- A traversal that is over opens no hooks: what was done is done.
            select s.stack_id, s.traversal, s.node, s.operation, s.passed,
                   case when n.woken and s.state = 'parked' and s.phase = 'act' then v_now
                        else s.wake_at end as wake_at,
                   case when t.state <> 'running' and s.phase = 'confirm'
                             and s.state in ('parked', 'stopped') then 'act' else s.phase end as phase,
                   s.progress, s.attempts, s.reason, s.awaits, s.resource, s.kept, s.events,
                   case when t.state = 'running' then s.hook end as hook,
                   -- What asks inside its operation goes on with it, refused.
                   case when t.state <> 'running' and s.phase = 'confirm'
                             and s.state in ('parked', 'stopped')
                        then jsonb_build_object('step', substr(s.passed[cardinality(s.passed)], 9),
                                                'accepted', false, 'by', 'nobody',
                                                'reason', 'superseded')
                        else nullif(s.confirmed, 'null') end as confirmed,
                   case when t.state = 'running' or s.hook is null then s.state
                        when s.phase = 'confirm' and s.state in ('parked', 'stopped') then 'ready'
                        when s.state = 'ready' then 'ready'
                        else 'done' end as state,
                   t.state <> 'running' as late, t.requested_by,
                   n.requirers, n.successor, n.requires, n.held, st.traversal as current,
                   st.project
              from said s
             -- One look-up by key for each step: a plain join was seen to read whole stacks.
             cross join lateral (
                   select n.requirers, n.successor, n.requires, n.woken,
                          n.state = 'parked' and n.wake_at is null as held
                     from node n
                    where n.stack_id = s.stack_id and n.traversal = s.traversal
                      and n.id = s.node and n.claim = s.claim
                      and n.state in ('ready', 'running', 'parked') offset 0) n
             cross join lateral (
                   select t.state, t.requested_by from traversal t
                    where t.stack_id = s.stack_id and t.number = s.traversal offset 0) t
              join stack st on st.id = s.stack_id
        ), moved as (
            update node n
               set state = s.state, phase = s.phase, operation = s.operation, passed = s.passed,
                   claim = n.claim + 1, -- what was said once cannot be said again
                   progress = s.progress, attempts = s.attempts, reason = s.reason,
                   confirmed = s.confirmed, awaits = s.awaits, woken = false,
                   wake_at = case s.state when 'running' then v_now + p_lease
                                          when 'ready' then v_now
                                          else s.wake_at end,
                   worker = case when s.state = 'running' then p_worker end,
                   started_at = case when s.phase = 'act' and s.state = 'running'
                                     then coalesce(n.started_at, v_now) else n.started_at end,
                   ended_at = case when s.state in ('done', 'failed', 'stopped', 'dropped') then v_now end,
                   -- An update that must replace has ended; the create is another operation.
                   operation_key = case when s.operation <> n.operation and s.phase <> 'act' then null
                                        when s.phase <> 'act' then n.operation_key
                                        when s.operation <> n.operation then gen_random_uuid()
                                        else coalesce(n.operation_key, gen_random_uuid()) end
              from step s
             where n.stack_id = s.stack_id and n.traversal = s.traversal and n.id = s.node
        ), written as (
            update resource r
               set action = s.resource ->> 'action', status = s.resource ->> 'status',
                   reason = coalesce(s.resource ->> 'reason', r.reason),
                   type = s.resource ->> 'type',
                   physical_id = s.resource ->> 'physical_id',
                   reference = nullif(s.resource -> 'reference', 'null'),
                   properties = s.resource -> 'properties',
                   shown = nullif(s.resource -> 'shown', 'null'),
                   attributes = s.resource -> 'attributes',
                   data = s.resource -> 'data', metadata = s.resource -> 'metadata',
                   digest = s.resource ->> 'digest',
                   broken = (s.resource ->> 'broken')::boolean,
                   deletion_policy = s.resource ->> 'deletion_policy',
                   requires = case when s.requires is null then r.requires else
                       array(select q.id from resource q
                              where q.stack_id = s.stack_id and q.name = any (s.requires)
                                and q.replaced_by is null) end,
                   updated_at = v_now
              from step s
             where s.resource ->> 'write' = 'update' and r.stack_id = s.stack_id
               and r.id = (s.resource ->> 'id')::uuid
        ), removed as (
            delete from resource r using step s
             where s.resource ->> 'write' = 'remove' and r.stack_id = s.stack_id
               and r.id = (s.resource ->> 'id')::uuid
        ), unsignalled as (
            delete from resource_signal g using step s
             where s.resource ->> 'write' = 'remove' and g.stack_id = s.stack_id
               and g.resource_id = (s.resource ->> 'id')::uuid
        ), replaced as (
            -- "leave": the replacement failed and left something behind; the old one stays.
            update resource r
               set replaced_by = case s.resource ->> 'write' when 'insert'
                                      then (s.resource ->> 'id')::uuid end,
                   action = case s.resource ->> 'write' when 'leave' then 'UPDATE' else r.action end,
                   status = case s.resource ->> 'write' when 'leave' then 'FAILED' else r.status end,
                   reason = case s.resource ->> 'write' when 'leave'
                                 then s.resource ->> 'reason' else r.reason end,
                   updated_at = v_now
              from step s
             where s.resource ->> 'write' in ('insert', 'leave') and r.stack_id = s.stack_id
               and r.id = (s.resource ->> 'replaces')::uuid
        ), inserted as (
            insert into resource (stack_id, id, name, type, action, status, reason, physical_id,
                                  reference, properties, shown, attributes, data, metadata, digest,
                                  requires, rules, broken, replaced_by, deletion_policy)
            select s.stack_id, (s.resource ->> 'id')::uuid, s.resource ->> 'name',
                   s.resource ->> 'type', s.resource ->> 'action', s.resource ->> 'status',
                   s.resource ->> 'reason', s.resource ->> 'physical_id',
                   nullif(s.resource -> 'reference', 'null'), s.resource -> 'properties',
                   nullif(s.resource -> 'shown', 'null'),
                   s.resource -> 'attributes', s.resource -> 'data', s.resource -> 'metadata',
                   s.resource ->> 'digest',
                   array(select q.id from resource q
                          where q.stack_id = s.stack_id and q.name = any (s.requires)
                            and q.replaced_by is null),
                   -- What stays with a resource was last said of the row that it replaces.
                   case when s.resource ->> 'replaces' is null
                        then nullif(s.resource -> 'rules', 'null'::jsonb)
                        else (select q.rules from resource q
                               where q.stack_id = s.stack_id
                                 and q.id = (s.resource ->> 'replaces')::uuid) end,
                   (s.resource ->> 'broken')::boolean,
                   (s.resource ->> 'replaced_by')::uuid,
                   s.resource ->> 'deletion_policy'
              from step s where s.resource ->> 'write' in ('insert', 'leave')
        ), kept as (
            insert into resource_snapshot (stack_id, traversal, resource_id, name, type,
                                           physical_id, properties, metadata, data)
            select s.stack_id, s.traversal, k.id, k.name, k.type, k.physical_id, k.properties,
                   k.metadata, k.data
              from step s cross join jsonb_to_record(coalesce(s.kept, '{}')) as k (
                   id uuid, name text, type text, physical_id text, properties jsonb,
                   metadata jsonb, data jsonb)
             where s.kept is not null
        ), hooked as (
            insert into hook (stack_id, id, project, traversal, node, resource_name, path, point,
                              mode, state, on_timeout, timeout, notice, digest, opened_at,
                              deadline, decision, decided_by, door, decided_at, rule,
                              requested_by, wake_at)
            select s.stack_id, h.id, s.project, s.traversal, s.node, h.resource_name, h.path,
                   h.point, h.mode, h.state, h.on_timeout, make_interval(secs => h.timeout),
                   -- What people said at hooks before it is for who answers this one, too.
                   case when a.answers is null then h.notice
                        else h.notice || jsonb_build_object('answers', a.answers) end,
                   h.digest, v_now, v_now + make_interval(secs => h.timeout),
                   h.decision, case when h.state <> 'waiting' then 'rule' end,
                   case when h.state <> 'waiting' then 'rule' end,
                   case when h.state <> 'waiting' then v_now end,
                   h.rule, s.requested_by, v_now + make_interval(secs => h.wakes)
              from step s
             cross join jsonb_to_recordset(s.hook) as h (
                   id uuid, resource_name text, path text, point text, mode text, state text,
                   on_timeout text, timeout double precision, notice jsonb, digest text,
                   decision text, rule jsonb, wakes double precision)
             cross join lateral (
                   select jsonb_object_agg(o.path || ':' || o.point, o.data) as answers
                     from hook o
                    where o.stack_id = s.stack_id and o.traversal = s.traversal
                      and o.data is not null) a
        ), freed as (
            select s.stack_id, s.traversal, r.id, count(*) as times, null::uuid as moved_to
              from step s cross join unnest(s.requirers) r (id)
             where s.state = 'done' group by 1, 2, 3
            union all
            -- Who waited for an older operation goes on with what that has put in its place.
            select s.stack_id, s.current, s.successor, 1,
                   case when s.resource ->> 'write' = 'insert'
                        then (s.resource ->> 'id')::uuid end
              from step s
             where s.successor is not null and s.state in ('done', 'failed', 'stopped', 'dropped')
        ), released as (
            update node n
               set waits = n.waits - f.times,
                   resource_id = case when n.direction = 'forward'
                                      then coalesce(f.moved_to, n.resource_id)
                                      else n.resource_id end,
                   state = case when n.waits = f.times then 'ready' else n.state end,
                   wake_at = case when n.waits = f.times then v_now else n.wake_at end
              from (select stack_id, traversal, id, sum(times)::integer as times,
                           (array_agg(moved_to) filter (where moved_to is not null))[1] as moved_to
                      from freed group by 1, 2, 3) f
             where n.stack_id = f.stack_id and n.traversal = f.traversal and n.id = f.id
               and n.state = 'waiting'
            returning n.stack_id, n.traversal, n.state
        ), counted as (
            -- Time counts while anything is left to do but to wait for somebody: hooks, and stacks
            -- inside, which count their own.
            update traversal t
               set active = t.active + d.active, held = t.held + d.held, wake_at = v_now,
                   worked = case when t.working_since is not null
                                  and t.active + d.active <= t.held + d.held
                                 then t.worked + (v_now - t.working_since) else t.worked end,
                   working_since = case when t.active + d.active > t.held + d.held
                                        then coalesce(t.working_since, v_now) end,
                   began = t.began or d.began,
                   state = case when t.state = 'running' and t.active + d.active = 0
                                then 'ending' else t.state end
              from (select c.stack_id, c.traversal, sum(c.active)::integer as active,
                           sum(c.held)::integer as held, bool_or(c.began) as began
                      from (select stack_id, traversal,
                                   operation = 'begin' and state = 'done' as began,
                                   case when state in ('done', 'failed', 'stopped', 'dropped')
                                        then -1 else 0 end as active,
                                   (state = 'parked' and wake_at is null)::integer
                                   - held::integer as held
                              from step
                            union all
                            select stack_id, traversal, false, 1, 0
                              from released where state = 'ready'
                            union all -- what waited for an older operation was counted for it
                            select stack_id, current, false, -1, 0 from step
                             where successor is not null
                               and state in ('done', 'failed', 'stopped', 'dropped')) c
                     group by 1, 2) d
             where t.stack_id = d.stack_id and t.number = d.traversal
        ), drafted as (
            select row (s.stack_id, e.type, e.resource_name, e.resource_type, e.physical_id,
                        e.action, e.status, e.reason,
                        e.data || jsonb_build_object('traversal', s.traversal, 'node', s.node)
                       )::event_draft as draft
              from step s
             cross join jsonb_to_recordset(s.events) as e (
                   type text, resource_name text, resource_type text, physical_id text,
                   action text, status text, reason text, data jsonb)
             where not (s.late and e.type like 'headgate.hook.%')
        )
        select (select coalesce(array_agg(draft), '{}') from drafted),
               coalesce(array_agg(row (s.stack_id, s.traversal, s.node)::node_key)
                        filter (where s.state = 'running'), '{}'),
               jsonb_agg(s.resource || jsonb_build_object('stack_id', s.stack_id))
                   filter (where s.resource ->> 'write' = 'remove'
                             and s.resource ->> 'replaced_by' is not null)
          into v_events, v_mine, v_gone
          from step s;
        if exists (select 1 from jsonb_array_elements(p_steps) s where s ->> 'hook' is not null) then
            perform pg_notify('headgate_hook', '');
        end if;
        -- Whoever merely came after a resource that was replaced and is now gone, comes after its
        -- replacement.
        if v_gone is not null then
            update resource r set requires = array_replace(r.requires, g.id, g.replaced_by)
              from jsonb_to_recordset(v_gone) as g (stack_id uuid, id uuid, replaced_by uuid)
             where r.stack_id = g.stack_id and g.id = any (r.requires);
        end if;
    end if;

    if v_left_behind is not null then
        perform leave_behind(v_left_behind);
    end if;

    if p_want > 0 then
        -- Each project with something due has its turn before any has a second one. A stack
        -- somebody else is busy with is passed over: whoever holds it claims in it too.
        with project as (
            select p.name, p.nth from projects_after(p_after, 100) with ordinality p (name, nth)
            union all
            select p.name, 100 + p.nth
              from projects_after('', 100) with ordinality p (name, nth) where p.name <= p_after
        ), due as (
            select t.stack_id, t.number, p.name, p.nth, t.turn
              from project p cross join lateral (
                   select t.stack_id, t.number, row_number() over (order by t.wake_at) as turn
                     from traversal t
                    where t.project = p.name and t.wake_at <= v_now
                    order by t.wake_at limit 16) t
        ), first as (
            select d.* from due d order by d.turn, d.nth limit 16
        ), locked as (
            select f.* from first f join stack s on s.id = f.stack_id
               for no key update of s skip locked
        )
        select coalesce(array_agg(row (stack_id, number, null)::node_key), '{}'),
               (select name from first order by turn desc, nth desc limit 1)
          into v_due, v_served from locked;
        v_now := clock_timestamp();

        with ending as (
            update traversal t set wake_at = v_now + p_lease
              from unnest(v_due) d
             where t.stack_id = d.stack_id and t.number = d.traversal and t.wake_at <= v_now
               and (t.state = 'ending' or t.state = 'running'
                    and t.worked + (v_now - t.working_since) >= t.time_limit)
            returning row (t.stack_id, t.number, null)::node_key as key
        )
        select coalesce(array_agg(key), '{}') into v_ends from ending;

        with candidate as (
            select n.*, row_number() over (partition by n.stack_id order by n.wake_at, n.id) as turn
              from unnest(v_due) d
             cross join lateral (
                   select n.stack_id, n.traversal, n.id, n.wake_at,
                          n.phase = 'act' and n.started_at is null as starts
                     from node n
                    where n.stack_id = d.stack_id and n.traversal = d.traversal
                      and n.wake_at <= v_now
                    order by n.wake_at, n.id limit p_want) n
             where not exists (select from unnest(v_ends) e
                                where e.stack_id = d.stack_id and e.traversal = d.traversal)
        ), chosen as (
            select * from candidate order by turn limit p_want
        ), claimed as (
            update node n
               set state = 'running', claim = n.claim + 1, worker = p_worker,
                   wake_at = v_now + p_lease,
                   started_at = case when c.starts then v_now else n.started_at end,
                   operation_key = case when n.phase = 'act'
                                        then coalesce(n.operation_key, gen_random_uuid())
                                        else n.operation_key end
              from chosen c
             where n.stack_id = c.stack_id and n.traversal = c.traversal and n.id = c.id
            returning n.stack_id, n.traversal, n.id, n.resource_id, n.name, n.type, n.operation,
                      c.starts
        )
        select coalesce(array_agg(row (k.stack_id, k.traversal, k.id)::node_key order by k.id), '{}'),
               coalesce(array_agg(row (k.stack_id, 'headgate.resource.' || k.operation || '.started',
                                       k.name, k.type, r.physical_id, upper(k.operation),
                                       'IN_PROGRESS', 'state changed',
                                       jsonb_build_object('operation', k.operation, 'traversal',
                                                          k.traversal, 'node', k.id)
                                       || case when r.replaced_by is null then '{}'::jsonb
                                               else '{"replaced": true}' end)::event_draft
                                  order by k.id) filter (where k.starts), '{}')
          into v_claimed, v_started
          from claimed k
          left join lateral ( -- what is only to be made is nothing real yet
               select r.physical_id, r.replaced_by from resource r
                where k.starts and k.operation <> 'create'
                  and r.stack_id = k.stack_id and r.id = k.resource_id offset 0) r on true;
        v_events := v_events || v_started;
        v_mine := v_mine || v_claimed;
    end if;

    if cardinality(v_events) > 0 then
        perform record_events(v_events);
    end if;

    with touched as (
        select s as stack_id from unnest(v_stacks) s
        union select d.stack_id from unnest(v_due) d
    ), timed as (
        update traversal t
           set wake_at = case when t.state = 'ending' then t.wake_at else least(
                   (select min(n.wake_at) from node n
                     where n.stack_id = t.stack_id and n.traversal = t.number
                       and n.wake_at is not null),
                   case when t.state = 'running'
                        then t.working_since + (t.time_limit - t.worked) end) end
          from touched
         where t.stack_id = touched.stack_id and t.wake_at is not null
        returning t.wake_at
    )
    select bool_or(wake_at <= v_now) into v_left from timed;
    if v_left then
        perform pg_notify('headgate_work', '');
    end if;

    if exists (select from credential) then
        perform forget_credentials(v_stacks);
    end if;

    now := v_now;
    if v_served is not null then
        kind := 'turn';
        project := v_served;
        return next;
    end if;
    kind := 'end';
    for stack_id, project, stack_name, traversal in
        select e.stack_id, s.project, s.name, e.traversal
          from unnest(v_ends) e join stack s on s.id = e.stack_id
    loop
        return next;
    end loop;
    return query
    select 'node', n.stack_id, st.project, st.name, n.traversal, n.id, n.claim, n.resource_id,
           n.replacement_id, n.name, n.type, n.operation, n.direction, n.phase, n.definition,
           n.rules, n.passed, n.operation_key, n.progress, n.attempts, n.started_at is not null,
           case when n.rules is not null then
               array(select q.name from node q where q.stack_id = n.stack_id
                        and q.traversal = n.traversal and q.id = any (n.requirers)
                        and q.direction = n.direction order by q.id) end,
           r.type, r.action, r.status, r.physical_id, r.reference, r.properties,
           r.shown, r.attributes, r.data,
           r.metadata, r.digest,
           r.broken, r.protected, r.deletion_policy, r.replaced_by, i.inputs, v_now,
           t.pace, n.confirmed, n.patched,
           case when n.passed <> '{}' then
               (select jsonb_object_agg(h.point, h.data order by h.opened_at, h.id) from hook h
                 where h.stack_id = n.stack_id and h.traversal = n.traversal and h.node = n.id
                   and h.data is not null) end,
           (select c.sealed from credential c
             where c.stack_id = n.stack_id and c.traversal = n.traversal),
           case when n.phase = 'act' then
               (select jsonb_agg(g.data order by g.number) from resource_signal g
                 where g.stack_id = n.stack_id
                   and g.resource_id = coalesce(n.awaits, case n.operation
                           when 'replace' then n.replacement_id else n.resource_id end)) end,
           t.traceparent, st.path, t.state,
           (select q.type from resource q where q.stack_id = n.stack_id and q.id = n.awaits)
      from unnest(v_mine) k
      join node n on n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id
      join stack st on st.id = n.stack_id
      join traversal t on t.stack_id = n.stack_id and t.number = n.traversal
      left join resource r on r.stack_id = n.stack_id and r.id = n.resource_id
      left join lateral (
           select jsonb_object_agg(x.name, jsonb_build_array(x.reference, x.attributes)) as inputs
             from resource x
            where x.stack_id = n.stack_id and x.name = any (n.reads) and x.replaced_by is null) i
        on n.reads <> '{}';
end;
$_$;

CREATE FUNCTION public.decision_of_project() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.project := (select project from stack where id = new.stack_id);
    return new;
end;
$$;

CREATE FUNCTION public.forget_credentials(p_stacks uuid[]) RETURNS void
    LANGUAGE sql
    AS $$
    delete from credential c
     where c.stack_id = any (p_stacks)
       and not exists (select from node n
                        where n.stack_id = c.stack_id and n.traversal = c.traversal
                          and n.wake_at is not null)
       and not exists (select from traversal t
                        where t.stack_id = c.stack_id and t.number = c.traversal
                          and t.state = 'ending');
$$;

CREATE FUNCTION public.forget_nodes(p_stack uuid, p_before integer, p_all boolean) RETURNS void
    LANGUAGE sql
    AS $$
    with gone as materialized (
        delete from node n
         where n.stack_id = p_stack and n.traversal < p_before
           and (p_all or n.state not in ('running', 'parked', 'ready'))
        returning n.traversal, n.id, n.name, n.type, n.operation, n.direction, n.state, n.phase,
                  n.reason, n.requirers
    ), kept as (
        insert into past_graph as p (stack_id, traversal, ids, names, types, operations, directions,
                                     states, phases, reasons, requirers)
        select p_stack, traversal, array_agg(id), array_agg(name), array_agg(type),
               array_agg(operation), array_agg(direction), array_agg(state), array_agg(phase),
               array_agg(reason), array_agg(requirers::text)
          from gone group by traversal
        on conflict (stack_id, traversal) do update -- what had not ended yet
           set ids = p.ids || excluded.ids, names = p.names || excluded.names,
               types = p.types || excluded.types, operations = p.operations || excluded.operations,
               directions = p.directions || excluded.directions,
               states = p.states || excluded.states, phases = p.phases || excluded.phases,
               reasons = p.reasons || excluded.reasons, requirers = p.requirers || excluded.requirers
    )
    -- One that had nothing to do is not forgotten.
    insert into past_graph (stack_id, traversal)
    select p_stack, p_before - 1
     where p_before > 1 and not exists (select from gone where traversal = p_before - 1)
    on conflict do nothing
$$;

CREATE FUNCTION public.leave_behind(p_stacks uuid[]) RETURNS void
    LANGUAGE sql
    AS $$
    with recursive left_one (id, root_id, cut) as (
        select c.id, c.id, length(c.path) + 2
          from unnest(p_stacks) p (id)
          join stack c on c.id = p.id and c.parent_id is not null and c.deleted_at is null
         where not exists (select from resource r
                            where r.stack_id = c.parent_id and r.id = c.parent_resource)
        union all
        select c.id, l.root_id, l.cut from left_one l join stack c on c.parent_id = l.id
    )
    update stack s
       set parent_id = case when l.id <> l.root_id then s.parent_id end,
           parent_resource = case when l.id <> l.root_id then s.parent_resource end,
           root_id = nullif(l.root_id, l.id),
           path = substr(s.path, l.cut)
      from left_one l
     where s.id = l.id
$$;

CREATE FUNCTION public.left_behind(p_steps jsonb) RETURNS uuid[]
    LANGUAGE sql STABLE
    AS $$
    with recursive left_one (id) as (
        select c.id
          from jsonb_array_elements(p_steps) s
          join stack c
            on c.parent_id = (s ->> 'stack_id')::uuid and c.deleted_at is null
           and c.parent_resource = (s #>> '{resource,id}')::uuid
         where s #>> '{resource,write}' = 'remove'
        union all
        select c.id from left_one l join stack c on c.parent_id = l.id
    )
    select array_agg(id) from left_one
$$;

CREATE FUNCTION public.projects_after(p_after text, p_most integer) RETURNS SETOF text
    LANGUAGE sql STABLE
    AS $$
    with recursive hop as (
        select (select min(t.project) from traversal t
                 where t.wake_at is not null and t.project > p_after) as project, 1 as nth
        union all
        select (select min(t.project) from traversal t
                 where t.wake_at is not null and t.project > h.project), h.nth + 1
          from hop h where h.project is not null and h.nth < p_most
    )
    select project from hop where project is not null;
$$;

CREATE FUNCTION public.record_events(p_events public.event_draft[]) RETURNS void
    LANGUAGE sql
    AS $$
    with draft as (
        select d.*, row_number() over (partition by d.stack_id order by d.ordinality) as nth,
               count(*) over (partition by d.stack_id) as many
          from unnest(p_events) with ordinality d
    ), numbered as (
        update stack s set sequence = s.sequence + d.many
          from (select distinct stack_id, many from draft) d
         where s.id = d.stack_id
        returning s.id, s.project, s.traceparent, s.sequence - d.many as base, s.sequence as last
    ), queued as (
        insert into outbox (stack_id, project, first, last)
        select id, project, base + 1, last from numbered
    )
    insert into event (stack_id, sequence, id, type, time, resource_name, resource_type,
                       physical_id, action, status, reason, data, traceparent)
    select d.stack_id, n.base + d.nth, gen_random_uuid(), d.type, now(), d.resource_name,
           d.resource_type, d.physical_id, d.action, d.status, d.reason, d.data, n.traceparent
      from draft d join numbered n on n.id = d.stack_id;
    select pg_notify('headgate_outbox', '') where cardinality(p_events) > 0;
$$;

CREATE FUNCTION public.release_deliveries(p_subscriptions uuid[], p_stacks uuid[]) RETURNS bigint
    LANGUAGE sql
    AS $$
    with pair as (
        select distinct subscription_id, stack_id
          from unnest(p_subscriptions, p_stacks) p (subscription_id, stack_id)
    ), head as (
        select p.stack_id, p.subscription_id, d.sequence
          from pair p
         cross join lateral (
               select d.sequence from delivery d
                where d.subscription_id = p.subscription_id and d.stack_id = p.stack_id
                  and d.state = 'pending' and d.next_at is null
                order by d.sequence limit 1) d
         where not exists (
               select 1 from delivery d
                where d.subscription_id = p.subscription_id and d.stack_id = p.stack_id
                  and d.state = 'pending' and d.next_at is not null)
    ), released as (
        update delivery d set next_at = clock_timestamp()
          from head h
         where d.stack_id = h.stack_id and d.sequence = h.sequence
           and d.subscription_id = h.subscription_id
        returning 1
    )
    select count(*) from released
$$;

CREATE TABLE public.stack (
    id uuid NOT NULL,
    project text NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    timeout_mins integer,
    disable_rollback boolean DEFAULT true NOT NULL,
    version integer NOT NULL,
    traversal integer NOT NULL,
    sequence bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    rules jsonb,
    pinned_by text,
    pinned_at timestamp with time zone,
    pinned_reason text,
    traceparent text,
    parent_id uuid,
    parent_resource uuid,
    root_id uuid,
    path text DEFAULT ''::text NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.template (
    stack_id uuid NOT NULL,
    version integer NOT NULL,
    description text NOT NULL,
    template jsonb NOT NULL,
    environment jsonb NOT NULL,
    files jsonb NOT NULL,
    parameters jsonb NOT NULL,
    shown jsonb NOT NULL,
    hidden text[] NOT NULL,
    outputs jsonb NOT NULL,
    requested_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    source text
);

CREATE TABLE public.traversal (
    stack_id uuid NOT NULL,
    number integer NOT NULL,
    action text NOT NULL,
    version integer NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    digest text NOT NULL,
    active integer NOT NULL,
    wake_at timestamp with time zone,
    requested_by text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    project text NOT NULL,
    held integer DEFAULT 0 NOT NULL,
    time_limit interval,
    worked interval DEFAULT '00:00:00'::interval NOT NULL,
    working_since timestamp with time zone,
    stale text[] DEFAULT '{}'::text[] NOT NULL,
    pace text,
    began boolean DEFAULT false NOT NULL,
    watched jsonb,
    tell_at timestamp with time zone,
    traceparent text,
    parent_traversal integer,
    parent_node integer,
    parent_key uuid,
    step text,
    asked jsonb DEFAULT '[]'::jsonb NOT NULL,
    cleared text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT traversal_pace_check CHECK ((pace = ANY (ARRAY['step'::text, 'run'::text]))),
    CONSTRAINT traversal_state_check CHECK ((state = ANY (ARRAY['running'::text, 'ending'::text, 'complete'::text, 'failed'::text, 'stopped'::text, 'superseded'::text])))
)
WITH (fillfactor='50');

CREATE VIEW public.stack_now AS
 SELECT s.id,
    s.project,
    s.name,
    v.description,
    t.action,
        CASE t.state
            WHEN 'complete'::text THEN 'COMPLETE'::text
            WHEN 'failed'::text THEN 'FAILED'::text
            WHEN 'stopped'::text THEN 'STOPPED'::text
            ELSE 'IN_PROGRESS'::text
        END AS status,
    t.reason,
    s.owner,
    s.tags,
    s.timeout_mins,
    s.disable_rollback,
    s.created_at,
        CASE
            WHEN (t.number > 1) THEN t.started_at
            ELSE NULL::timestamp with time zone
        END AS updated_at,
    s.deleted_at,
    s.traversal,
    s.version,
    s.pinned_by,
    s.pinned_at,
    s.pinned_reason,
    s.parent_id,
    s.root_id,
    s.path
   FROM ((public.stack s
     JOIN public.traversal t ON (((t.stack_id = s.id) AND (t.number = s.traversal))))
     JOIN public.template v ON (((v.stack_id = s.id) AND (v.version = s.version))));

CREATE FUNCTION public.stack_wanted(s public.stack_now, f jsonb) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    select (f -> 'show_deleted' is not null or s.deleted_at is null)
       and (f -> 'show_nested' is not null or f -> 'parents' is not null or s.parent_id is null)
       and (f -> 'parents' is null or f -> 'parents' ? s.parent_id::text)
       and (f -> 'names' is null or f -> 'names' ? s.name)
       and (f -> 'ids' is null or f -> 'ids' ? s.id::text)
       and (f -> 'statuses' is null
            or f -> 'statuses' ?| array[s.status, s.action || '_' || s.status])
       and (f -> 'actions' is null or f -> 'actions' ? s.action)
       and (f -> 'owners' is null or f -> 'owners' ? s.owner)
       and (f -> 'projects' is null or f -> 'projects' ? s.project)
       and (f -> 'reasons' is null or f -> 'reasons' ? s.reason)
       and (f -> 'disable_rollback' is null
            or f -> 'disable_rollback' @> to_jsonb(s.disable_rollback))
       and (f -> 'timeout_mins' is null or f -> 'timeout_mins' @> to_jsonb(s.timeout_mins))
       and (f -> 'tags' is null or to_jsonb(s.tags) @> (f -> 'tags'))
       and (f -> 'tags_any' is null
            or s.tags && array(select jsonb_array_elements_text(f -> 'tags_any')))
       and (f -> 'not_tags' is null or not to_jsonb(s.tags) @> (f -> 'not_tags'))
       and (f -> 'not_tags_any' is null
            or not s.tags && array(select jsonb_array_elements_text(f -> 'not_tags_any')))
$$;

CREATE FUNCTION public.wake_nodes(p_nodes public.node_key[]) RETURNS void
    LANGUAGE sql
    AS $$
    with woken as (
        update node n
           set woken = k.state = 'running',
               wake_at = case k.state when 'parked' then clock_timestamp() else n.wake_at end
          from (select n.stack_id, n.traversal, n.id, n.state,
                       n.state = 'parked' and n.wake_at is null as held
                  from unnest(p_nodes) w
                  join node n on n.stack_id = w.stack_id and n.traversal = w.traversal
                             and n.id = w.id
                 where n.phase = 'act' and n.state in ('parked', 'running')) k
         where n.stack_id = k.stack_id and n.traversal = k.traversal and n.id = k.id
        returning k.stack_id, k.traversal, k.state, k.held
    )
    update traversal t
       set held = t.held - w.held,
           wake_at = case when w.due then clock_timestamp() else t.wake_at end,
           working_since = case when t.state = 'running' and t.active > t.held - w.held
                                then coalesce(t.working_since, clock_timestamp())
                                else t.working_since end
      from (select stack_id, traversal, bool_or(state = 'parked') as due,
                   (count(*) filter (where held))::integer as held
              from woken group by 1, 2) w
     where t.stack_id = w.stack_id and t.number = w.traversal;
    select pg_notify('headgate_work', '');
$$;

CREATE TABLE public.breakpoint (
    stack_id uuid NOT NULL,
    id uuid NOT NULL,
    pattern text NOT NULL,
    rule jsonb NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.credential (
    stack_id uuid NOT NULL,
    traversal integer NOT NULL,
    sealed bytea NOT NULL
);

CREATE TABLE public.decision (
    stack_id uuid NOT NULL,
    number integer NOT NULL,
    hook_id uuid,
    kind text NOT NULL,
    by text NOT NULL,
    door text NOT NULL,
    address text NOT NULL,
    reason text NOT NULL,
    digest text NOT NULL,
    data text NOT NULL,
    at timestamp with time zone NOT NULL,
    hash text NOT NULL,
    project text
);

CREATE TABLE public.delivery (
    stack_id uuid NOT NULL,
    sequence bigint NOT NULL,
    subscription_id uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    project text NOT NULL,
    event_id uuid NOT NULL,
    type text NOT NULL,
    hook_id uuid,
    urgent boolean NOT NULL,
    state text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    claim integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone,
    code integer,
    error text,
    answer text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    settled_at timestamp with time zone,
    CONSTRAINT delivery_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text])))
)
WITH (fillfactor='70');

CREATE TABLE public.event (
    stack_id uuid NOT NULL,
    sequence bigint NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    "time" timestamp with time zone NOT NULL,
    resource_name text,
    resource_type text,
    physical_id text,
    action text,
    status text,
    reason text NOT NULL,
    data jsonb,
    traceparent text
);

CREATE TABLE public.hook (
    stack_id uuid NOT NULL,
    id uuid NOT NULL,
    project text NOT NULL,
    traversal integer NOT NULL,
    node integer NOT NULL,
    resource_name text NOT NULL,
    path text NOT NULL,
    point text NOT NULL,
    mode text NOT NULL,
    state text NOT NULL,
    on_timeout text NOT NULL,
    timeout interval NOT NULL,
    notice jsonb NOT NULL,
    digest text NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    deadline timestamp with time zone NOT NULL,
    told_at timestamp with time zone,
    decision text,
    reason text,
    data jsonb,
    decided_by text,
    door text,
    decided_at timestamp with time zone,
    rule jsonb NOT NULL,
    requested_by text DEFAULT ''::text NOT NULL,
    wake_at timestamp with time zone,
    reminders integer DEFAULT 0 NOT NULL,
    escalated_at timestamp with time zone,
    assigned text,
    unheard_at timestamp with time zone,
    CONSTRAINT hook_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'answered'::text, 'expired'::text, 'superseded'::text])))
);

CREATE VIEW public.hook_now AS
 SELECT h.stack_id,
    h.id,
    h.project,
    h.traversal,
    h.node,
    h.resource_name,
    h.path,
    h.point,
    h.mode,
    h.state,
    h.on_timeout,
    h.timeout,
    h.notice,
    h.digest,
    h.opened_at,
    h.deadline,
    h.told_at,
    h.decision,
    h.reason,
    h.data,
    h.decided_by,
    h.door,
    h.decided_at,
    h.rule,
    h.requested_by,
    h.wake_at,
    h.reminders,
    h.escalated_at,
    h.assigned,
    h.unheard_at,
    s.name AS stack_name,
    s.path AS stack_path,
    COALESCE(s.root_id, s.id) AS root_stack_id,
        CASE
            WHEN (s.root_id IS NULL) THEN s.name
            ELSE ( SELECT r.name
               FROM public.stack r
              WHERE (r.id = s.root_id))
        END AS root_stack_name,
    ARRAY( SELECT d.by
           FROM public.decision d
          WHERE ((d.stack_id = h.stack_id) AND (d.hook_id = h.id) AND (d.kind = ANY (ARRAY['continue'::text, 'step'::text, 'step-into'::text, 'step-out'::text, 'run'::text, 'patch'::text])))
          GROUP BY d.by
          ORDER BY (min(d.number))) AS approved_by
   FROM (public.hook h
     JOIN public.stack s ON ((s.id = h.stack_id)));

CREATE VIEW public.event_told AS
 SELECT e.stack_id,
    e.sequence,
    e.id,
    e.type,
    e."time",
    e.resource_name,
    e.resource_type,
    e.physical_id,
    e.action,
    e.status,
    e.reason,
    e.data,
    e.traceparent,
    s.project AS stack_project,
    s.name AS stack_name,
    s.owner,
    COALESCE(r.tags, s.tags) AS tags,
    s.created_at AS stack_created_at,
    s.path AS stack_path,
    s.root_id,
    r.name AS root_name,
    h.id AS h_id,
    h.project AS h_project,
    h.traversal AS h_traversal,
    h.node AS h_node,
    h.root_stack_id AS h_root_stack_id,
    h.root_stack_name AS h_root_stack_name,
    h.resource_name AS h_resource_name,
    h.path AS h_path,
    h.point AS h_point,
    h.mode AS h_mode,
    h.state AS h_state,
    h.opened_at AS h_opened_at,
    h.deadline AS h_deadline,
    h.on_timeout AS h_on_timeout,
    h.digest AS h_digest,
    h.decision AS h_decision,
    h.reason AS h_reason,
    h.decided_by AS h_decided_by,
    h.door AS h_door,
    h.decided_at AS h_decided_at,
    h.notice AS h_notice,
    h.rule AS h_rule,
    h.requested_by AS h_requested_by,
    h.assigned AS h_assigned,
    h.escalated_at AS h_escalated_at,
    h.reminders AS h_reminders,
    h.approved_by AS h_approved_by
   FROM (((public.event e
     LEFT JOIN public.stack s ON ((s.id = e.stack_id)))
     LEFT JOIN public.stack r ON ((r.id = s.root_id)))
     LEFT JOIN public.hook_now h ON (((h.stack_id = e.stack_id) AND (h.id = ((e.data ->> 'hook_id'::text))::uuid))));

CREATE TABLE public.idempotency (
    project text NOT NULL,
    key text NOT NULL,
    request_digest text NOT NULL,
    stack_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.instance (
    only_one boolean DEFAULT true NOT NULL,
    signing_key bytea NOT NULL,
    key_check bytea,
    CONSTRAINT instance_only_one_check CHECK (only_one)
);

CREATE TABLE public.migration (
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.node (
    stack_id uuid NOT NULL,
    traversal integer NOT NULL,
    id integer NOT NULL,
    resource_id uuid NOT NULL,
    replacement_id uuid,
    name text NOT NULL,
    type text NOT NULL,
    operation text NOT NULL,
    direction text NOT NULL,
    state text NOT NULL,
    phase text NOT NULL,
    waits integer NOT NULL,
    requirers integer[] NOT NULL,
    requires text[],
    reads text[] NOT NULL,
    definition jsonb,
    rules jsonb,
    passed text[] NOT NULL,
    successor integer,
    claim integer NOT NULL,
    worker text,
    wake_at timestamp with time zone,
    operation_key uuid,
    progress jsonb,
    reason text,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    confirmed jsonb,
    patched jsonb,
    woken boolean DEFAULT false NOT NULL,
    awaits uuid,
    step_into boolean DEFAULT false NOT NULL,
    CONSTRAINT node_direction_check CHECK ((direction = ANY (ARRAY['forward'::text, 'cleanup'::text]))),
    CONSTRAINT node_operation_check CHECK ((operation = ANY (ARRAY['create'::text, 'update'::text, 'replace'::text, 'delete'::text, 'adopt'::text, 'check'::text, 'suspend'::text, 'resume'::text, 'snapshot'::text, 'begin'::text, 'finish'::text]))),
    CONSTRAINT node_phase_check CHECK ((phase = ANY (ARRAY['pre'::text, 'act'::text, 'confirm'::text, 'post'::text]))),
    CONSTRAINT node_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'ready'::text, 'running'::text, 'parked'::text, 'done'::text, 'failed'::text, 'stopped'::text, 'dropped'::text])))
)
WITH (fillfactor='40');

CREATE TABLE public.outbox (
    id bigint NOT NULL,
    stack_id uuid NOT NULL,
    project text NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    "position" bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.past_graph (
    stack_id uuid NOT NULL,
    traversal integer NOT NULL,
    ids integer[] DEFAULT '{}'::integer[] NOT NULL,
    names text[] DEFAULT '{}'::text[] NOT NULL,
    types text[] DEFAULT '{}'::text[] NOT NULL,
    operations text[] DEFAULT '{}'::text[] NOT NULL,
    directions text[] DEFAULT '{}'::text[] NOT NULL,
    states text[] DEFAULT '{}'::text[] NOT NULL,
    phases text[] DEFAULT '{}'::text[] NOT NULL,
    reasons text[] DEFAULT '{}'::text[] NOT NULL,
    requirers text[] DEFAULT '{}'::text[] NOT NULL
);

CREATE TABLE public.process (
    id uuid NOT NULL,
    host text NOT NULL,
    roles text[] NOT NULL,
    report_interval interval NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.publishing (
    only_one boolean DEFAULT true NOT NULL,
    "position" bigint NOT NULL,
    CONSTRAINT publishing_only_one_check CHECK (only_one)
);

CREATE TABLE public.resource (
    stack_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    action text NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    physical_id text,
    reference jsonb,
    properties jsonb,
    shown jsonb,
    attributes jsonb NOT NULL,
    data jsonb NOT NULL,
    metadata jsonb NOT NULL,
    digest text NOT NULL,
    requires uuid[] NOT NULL,
    rules jsonb,
    broken boolean DEFAULT false NOT NULL,
    replaced_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    deletion_policy text DEFAULT 'Delete'::text NOT NULL,
    protected boolean DEFAULT false NOT NULL,
    CONSTRAINT resource_deletion_policy_check CHECK ((deletion_policy = ANY (ARRAY['Delete'::text, 'Retain'::text, 'Snapshot'::text])))
)
WITH (fillfactor='50');

CREATE VIEW public.resource_now AS
 SELECT r.stack_id,
    r.id,
    r.name,
    r.type,
    r.action,
    r.status,
    r.reason,
    r.physical_id,
    r.reference,
    r.properties,
    r.shown,
    r.attributes,
    r.data,
    r.metadata,
    r.digest,
    r.requires,
    r.rules,
    r.broken,
    r.replaced_by,
    r.created_at,
    r.updated_at,
    r.deletion_policy,
    r.protected,
        CASE
            WHEN (n.id IS NULL) THEN r.action
            WHEN (n.operation = ANY (ARRAY['update'::text, 'replace'::text])) THEN 'UPDATE'::text
            ELSE upper(n.operation)
        END AS shown_action,
        CASE
            WHEN (n.id IS NULL) THEN r.status
            ELSE 'IN_PROGRESS'::text
        END AS shown_status,
    COALESCE(n.reason, r.reason) AS shown_reason
   FROM (public.resource r
     LEFT JOIN public.node n ON (((n.stack_id = r.stack_id) AND (n.resource_id = r.id) AND (n.started_at IS NOT NULL) AND (n.ended_at IS NULL) AND (n.phase = ANY (ARRAY['act'::text, 'confirm'::text])))));

CREATE TABLE public.resource_signal (
    stack_id uuid NOT NULL,
    resource_id uuid NOT NULL,
    number integer NOT NULL,
    data jsonb NOT NULL,
    by text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.resource_snapshot (
    stack_id uuid NOT NULL,
    traversal integer NOT NULL,
    resource_id uuid NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    physical_id text,
    properties jsonb,
    metadata jsonb,
    data jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.routines (
    only_one boolean DEFAULT true NOT NULL,
    digest text NOT NULL,
    CONSTRAINT routines_only_one_check CHECK (only_one)
);

CREATE TABLE public.snapshot (
    stack_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    traversal integer NOT NULL,
    version integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.software_config (
    id uuid NOT NULL,
    project text NOT NULL,
    name text NOT NULL,
    "group" text NOT NULL,
    config jsonb NOT NULL,
    inputs jsonb NOT NULL,
    outputs jsonb NOT NULL,
    options jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.software_deployment (
    id uuid NOT NULL,
    project text NOT NULL,
    config_id uuid NOT NULL,
    server_id text NOT NULL,
    input_values jsonb NOT NULL,
    output_values jsonb,
    action text NOT NULL,
    status text NOT NULL,
    status_reason text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    stack_id uuid,
    resource_id uuid,
    operation_key uuid
);

CREATE TABLE public.stream_floor (
    project text NOT NULL,
    "position" bigint NOT NULL,
    sequence bigint NOT NULL
);

CREATE TABLE public.subscription (
    id uuid NOT NULL,
    project text NOT NULL,
    channel text NOT NULL,
    target text NOT NULL,
    events text[] NOT NULL,
    stacks text[] NOT NULL,
    resources text[] NOT NULL,
    types text[] NOT NULL,
    points text[] NOT NULL,
    ordered boolean NOT NULL,
    secrets jsonb NOT NULL,
    rotated_at timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    state text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    origin text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    sequence bigint DEFAULT 0 NOT NULL,
    stack_id uuid,
    named_until bigint,
    nested boolean DEFAULT true NOT NULL,
    CONSTRAINT subscription_origin_check CHECK ((origin = ANY (ARRAY['api'::text, 'configuration'::text, 'environment'::text]))),
    CONSTRAINT subscription_state_check CHECK ((state = ANY (ARRAY['enabled'::text, 'disabled'::text])))
);

CREATE TABLE public.token (
    id uuid NOT NULL,
    project text NOT NULL,
    name text NOT NULL,
    roles text[] NOT NULL,
    kind text NOT NULL,
    hash text NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by text,
    CONSTRAINT token_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'password'::text])))
);

INSERT INTO public.decision VALUES
	('3dfc653b-21f4-4977-8320-9371042ff798', 1, '0fde4ce7-55d8-41a1-b1f0-f950b49305c8', 'continue', 'ann', 'api', '127.0.0.1', 'looks right', 'ebe137d6120ab6aa7c22ba505ee62a8936ea0bb96c434efe90944ac5cc44bf1f', 'null', '2026-11-23 11:10:34.855485+00', 'c4758e9b8d93b4a36518aae4c24ee9240036c5e4e3b3a9855992be10bdf1a8ac', 'p'),
	('3dfc653b-21f4-4977-8320-9371042ff798', 2, 'b279218d-fc07-497c-91cb-a1cd14cb2ff0', 'continue', 'ann', 'api', '127.0.0.1', 'looks right', '6b24ab43bf596978856f5d0b5c83f6dbe02067319e1c71f83e2b5d5273a74c54', 'null', '2026-11-23 11:10:35.08033+00', '64285bb78d2d82c7be47775d1da598680ba77a40e23b6bb76972eec9d159224f', 'p');

INSERT INTO public.delivery VALUES
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 2, 'ebce832c-03df-45bb-aab3-d68515449fc7', '6cf0345a-b47a-4a98-855e-187488d6126a', 'p', '78ce9d7b-76a2-4fe4-aff6-fb603822fc19', 'headgate.resource.create.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.579642+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 3, 'ebce832c-03df-45bb-aab3-d68515449fc7', '8944c446-f9a6-432a-9fbe-09d5bd171a1b', 'p', 'e1dbe558-d372-47a5-9144-674335333789', 'headgate.resource.create.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.579642+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 4, 'ebce832c-03df-45bb-aab3-d68515449fc7', '4195332c-82a8-4a23-ab71-1a00c356207a', 'p', 'c37fdfbc-ba54-4729-8e9e-18e8f4f30600', 'headgate.stack.create.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.579642+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 5, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'ae358fc8-7f03-4fee-81a8-f8ac4688eba4', 'p', 'a096fb90-4818-4873-8238-dca7dabb61c9', 'headgate.stack.update.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.624325+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 6, 'ebce832c-03df-45bb-aab3-d68515449fc7', '4899c8bf-34bb-4265-944a-3581624ba2f4', 'p', 'cd7e8445-4715-4a97-aea9-735720f66d56', 'headgate.resource.update.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.640304+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 7, 'ebce832c-03df-45bb-aab3-d68515449fc7', '86850a33-9fb8-4da2-9a87-45db1a8b20bd', 'p', '345dafc1-d845-4bf2-a711-9ecb540a97eb', 'headgate.resource.update.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.64912+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 8, 'ebce832c-03df-45bb-aab3-d68515449fc7', '125fa015-9511-435a-ad4a-2b7a2b3685a0', 'p', '265b328b-affd-4fe2-8507-415d49e20484', 'headgate.resource.create.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.64912+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 9, 'ebce832c-03df-45bb-aab3-d68515449fc7', '631534ed-f9a2-401c-a009-af0a905576e9', 'p', 'e61d76c5-e98b-4c7f-bc6c-50d329765601', 'headgate.resource.create.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.64912+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 10, 'ebce832c-03df-45bb-aab3-d68515449fc7', '90f0003d-a455-47c6-952f-0501fec571bd', 'p', '33274c5e-6704-449b-9814-3750f3ae66d8', 'headgate.stack.update.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.666882+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 11, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'ee2d6f96-b766-490c-87e3-25946808523b', 'p', 'bde06c9a-5c56-43f5-894d-3af4cbd8df6a', 'headgate.stack.snapshot.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.702654+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 12, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'a3223783-ddf5-4ca1-a6ed-894e26c9c9b2', 'p', 'a04f1cbe-5368-47db-9a2f-1051f824569f', 'headgate.resource.snapshot.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.702654+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 13, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'dc832110-5d42-4460-9ef7-eafbcfc40d66', 'p', 'f35c41c0-0fc8-43da-840b-03cb2f10f916', 'headgate.resource.snapshot.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.702654+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 14, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'a00d18c5-702d-406d-9dab-a5b0f7fce49f', 'p', '983f4123-af95-4c03-93b7-f7e0b90afaaf', 'headgate.resource.snapshot.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.718886+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 15, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'f37ce229-8908-46b2-8a5c-86ebb1f35943', 'p', 'd28790aa-346c-4336-8a91-0d7ca9ecc30f', 'headgate.resource.snapshot.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.718886+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 16, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'dc36fbd3-e7d8-44d4-9234-b2a9cb02ed41', 'p', 'cf7e6dac-bad3-41dd-9300-b498bdb24bf8', 'headgate.stack.snapshot.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.726431+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 2, 'ebce832c-03df-45bb-aab3-d68515449fc7', '7396e6b0-a9f0-43c2-97e2-93fd8fb7628f', 'p', '82c14c9d-137c-4947-8c0b-12fbf02b36f2', 'headgate.resource.create.started', NULL, false, 'pending', 0, 2, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.740829+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 3, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'c250e799-4983-42e6-ab89-8064fe0eaea7', 'p', 'a6e366e3-0bbc-4760-ad92-dee7dc53e465', 'headgate.resource.create.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.763192+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 4, 'ebce832c-03df-45bb-aab3-d68515449fc7', '1b9996e9-8a4d-43cb-84aa-990e1ce2a4ba', 'p', '4d5f7ee8-c4bd-4704-972e-1c3454d603fb', 'headgate.stack.create.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.781366+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 5, 'ebce832c-03df-45bb-aab3-d68515449fc7', '500bfc1e-b41e-4f88-aa3e-86c4e496f409', 'p', '9b5e6943-1f5f-43d5-a9bc-f3bf62d28083', 'headgate.stack.delete.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.814685+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 6, 'ebce832c-03df-45bb-aab3-d68515449fc7', '1c40d320-7c25-40cb-a8ea-b1fb72a044a3', 'p', 'f38acb89-0e5c-45ff-9c55-a376648f1d9c', 'headgate.resource.snapshot.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.814685+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 7, 'ebce832c-03df-45bb-aab3-d68515449fc7', '53745ebd-f7fc-46e5-8422-33cc831fa177', 'p', '441598a1-e184-457f-977d-bbb69a969896', 'headgate.resource.snapshot.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.83436+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 6, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'e86dcb65-820f-491f-abdf-cf059472b2a7', 'p', '78a5126d-fb5a-481f-8c81-1bcaaa1df868', 'headgate.resource.create.started', NULL, true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.895625+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 9, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'fd2803b5-9ba7-487e-a057-63e222f94afe', 'p', 'db755bb7-8143-4aca-8501-4f9da7b4ea21', 'headgate.hook.answered', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.08562+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 1, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'd0a2ab7b-9d49-47c2-b292-b0d7f6885a3b', 'p', '64ee3965-ab66-4b2a-a13a-c99fec99d476', 'headgate.stack.create.started', NULL, false, 'pending', 3, 6, '2026-11-23 11:10:40.572997+00', NULL, 'no connection to 127.0.0.1:9: Connect call failed (''127.0.0.1'', 9)', NULL, '2026-11-23 11:10:34.740829+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 1, 'ebce832c-03df-45bb-aab3-d68515449fc7', '4e402672-34b9-477f-8906-db6f6b018248', 'p', 'eaf38cf6-97da-451d-bc5b-729f463f5bcf', 'headgate.stack.create.started', NULL, false, 'pending', 3, 6, '2026-11-23 11:10:41.078024+00', NULL, 'no connection to 127.0.0.1:9: Connect call failed (''127.0.0.1'', 9)', NULL, '2026-11-23 11:10:34.541514+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 1, 'ebce832c-03df-45bb-aab3-d68515449fc7', '32316d5a-41ea-4a21-896f-27f902b40c6b', 'p', '64683e09-1b9a-4e8c-99c5-64c656ad5f9a', 'headgate.stack.create.started', NULL, true, 'pending', 3, 6, '2026-11-23 11:10:41.212781+00', NULL, 'no connection to 127.0.0.1:9: Connect call failed (''127.0.0.1'', 9)', NULL, '2026-11-23 11:10:34.83436+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 8, 'ebce832c-03df-45bb-aab3-d68515449fc7', '8739bcc9-6fc2-4fb5-9b06-aed658a231aa', 'p', '64fc1ad7-fe20-4c50-be93-ce36a1fa770d', 'headgate.resource.delete.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.83436+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 9, 'ebce832c-03df-45bb-aab3-d68515449fc7', '7a929858-e5f9-442c-8bad-687ab8ca43fb', 'p', '27b2a41e-70a4-4a11-88d9-9a75c79dfed2', 'headgate.resource.delete.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.83436+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 4, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'a6da613a-a041-47bb-8a76-82a38e5d9fe7', 'p', '929bb90f-5f7a-44eb-a8e0-2201ed656d63', 'headgate.hook.waiting', '0fde4ce7-55d8-41a1-b1f0-f950b49305c8', true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.851215+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 10, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'a1954004-15a2-449d-90e9-18e1d34f6c78', 'p', 'a5309db1-68ac-4ffe-9bed-2c2e18222354', 'headgate.stack.delete.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.851215+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 3, 'ebce832c-03df-45bb-aab3-d68515449fc7', '8090790a-ef37-401a-aae8-d20ae94c160a', 'p', '6e795553-fa42-4a6d-bcf5-f2f3ba4fbada', 'headgate.resource.create.completed', NULL, true, 'pending', 0, 2, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.83436+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 2, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'da69c921-9350-4cf6-b176-339391c16387', 'p', 'ee977a6c-70fb-4259-9049-9ffdd445431d', 'headgate.resource.create.started', NULL, true, 'pending', 0, 2, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.83436+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 8, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'b42fb994-53c9-4949-aaaf-d916783911da', 'p', '0c5405af-3be8-47c8-8c79-83dacc246fa4', 'headgate.hook.waiting', 'b279218d-fc07-497c-91cb-a1cd14cb2ff0', true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.9002+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 5, 'ebce832c-03df-45bb-aab3-d68515449fc7', '30430552-7d6a-4b79-9793-7ec5e2437c64', 'p', '3aff3236-03a1-4336-8fc8-c81b0bc0f0d1', 'headgate.hook.answered', NULL, true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.879231+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 7, 'ebce832c-03df-45bb-aab3-d68515449fc7', '0ec86743-2d4d-4a8c-b181-31c545a2e787', 'p', '540b6deb-c045-4370-aa04-329112d91464', 'headgate.resource.create.completed', NULL, true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:34.9002+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 10, 'ebce832c-03df-45bb-aab3-d68515449fc7', '17f3531c-87b6-4146-b896-83201586c6a8', 'p', '29ef1e05-7c42-46b4-8109-eb49a8156270', 'headgate.resource.create.started', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.08562+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 11, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'f4505d27-e43f-4425-ad96-d26aa1d7b88c', 'p', 'b9f99567-3c48-45bf-8a72-abddc2e8baff', 'headgate.resource.create.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.093859+00', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 6, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'fc56d60a-87b6-42a4-a289-5335f63f5139', 'p', '06b4a68c-41ff-4a50-9224-43c96070ad4e', 'headgate.hook.waiting', '689e1429-64c6-44d7-a78c-389ba790fc9d', true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.367311+00', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 4, 'ebce832c-03df-45bb-aab3-d68515449fc7', '344907ef-2b7c-457a-8638-6de406459d0e', 'p', '60e1902d-a6ed-4016-bb85-45e895f92fb4', 'headgate.resource.create.started', NULL, true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.367311+00', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 3, 'ebce832c-03df-45bb-aab3-d68515449fc7', '9a208c2a-4dda-428d-ae73-75d16537b987', 'p', '59b7337f-fa1b-49b7-87b1-4ba38d2e302b', 'headgate.resource.create.completed', NULL, true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.367311+00', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 5, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'bae0224b-e127-4407-a2fe-32b62e2c6800', 'p', '791ddbdd-5b47-4296-82dc-11410bd0a394', 'headgate.resource.create.completed', NULL, true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.367311+00', NULL),
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 2, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'eab802d0-a436-4eb1-96b2-215c6d3bd237', 'p', '9d8e4782-565e-4024-ac24-cd8ff30055c4', 'headgate.resource.create.started', NULL, false, 'pending', 0, 2, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.390697+00', NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 2, 'ebce832c-03df-45bb-aab3-d68515449fc7', '376c8792-ed07-4849-afb7-a3b886112724', 'p', '117f6edc-2164-4b37-b9b1-261a5a983dc6', 'headgate.hook.waiting', '1a0aa6c4-0325-4107-a71a-f8a959bd8621', true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.401426+00', NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 3, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'f8967b7a-7d68-405c-85b4-b8245970d61a', 'p', '2ea80c00-810b-47be-8196-de49057941c3', 'headgate.hook.waiting', '678df237-a168-496d-b7b7-6c92414b8579', true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.401426+00', NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 1, 'ebce832c-03df-45bb-aab3-d68515449fc7', '47a47900-ec6e-4fd5-b140-70adadc33099', 'p', '29e41156-c059-4057-b57d-423b022f0005', 'headgate.stack.create.started', NULL, true, 'pending', 3, 6, '2026-11-23 11:10:41.270009+00', NULL, 'no connection to 127.0.0.1:9: Connect call failed (''127.0.0.1'', 9)', NULL, '2026-11-23 11:10:35.390697+00', NULL),
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 1, 'ebce832c-03df-45bb-aab3-d68515449fc7', '59ae0b2d-007d-4e2b-9ffe-932e8f86d65d', 'p', '3f6cee4c-476a-4e88-8fcb-3203dffac526', 'headgate.stack.create.started', NULL, false, 'pending', 3, 6, '2026-11-23 11:10:41.647443+00', NULL, 'no connection to 127.0.0.1:9: Connect call failed (''127.0.0.1'', 9)', NULL, '2026-11-23 11:10:35.390697+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 12, 'ebce832c-03df-45bb-aab3-d68515449fc7', '998c3677-2ce6-41d9-a978-e9998872bb94', 'p', '23639d55-d4b6-4150-ad7b-1888a9f4abdf', 'headgate.stack.create.completed', NULL, false, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.101131+00', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 4, 'ebce832c-03df-45bb-aab3-d68515449fc7', '5edc7af5-4796-496b-8364-8f2dbec3cf5e', 'p', 'e6638e9f-5fc6-4fde-ab3a-43c9f9dfb62c', 'headgate.hook.waiting', '9f8d80b3-723e-4f3b-847b-c4008e79ac0c', true, 'pending', 0, 0, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.318933+00', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 2, 'ebce832c-03df-45bb-aab3-d68515449fc7', '24106452-2031-40c3-ba0d-40d631018fcd', 'p', '9c356608-1a98-4eb8-973d-20092e149d47', 'headgate.resource.create.started', NULL, true, 'pending', 0, 2, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.304165+00', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 3, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'c557b392-42d0-45de-9795-74b8a796e1e1', 'p', '4016d7db-b93b-4a08-9b57-0e7e12a956db', 'headgate.resource.create.completed', NULL, true, 'pending', 0, 2, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.304165+00', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 2, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'd692008e-1b9d-4461-b329-33e945386dd2', 'p', '19ae0266-d07c-407c-836d-c7b11252a025', 'headgate.resource.create.started', NULL, true, 'pending', 0, 2, NULL, NULL, NULL, NULL, '2026-11-23 11:10:35.353472+00', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 1, 'ebce832c-03df-45bb-aab3-d68515449fc7', '0b9e4cbf-bf22-45b4-b2a2-09da2382d3db', 'p', '3efddcca-7cf9-409c-9aa1-474e025f05b8', 'headgate.stack.create.started', NULL, true, 'pending', 3, 6, '2026-11-23 11:10:39.750496+00', NULL, 'no connection to 127.0.0.1:9: Connect call failed (''127.0.0.1'', 9)', NULL, '2026-11-23 11:10:35.353472+00', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 1, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'ec564231-48ad-4351-9399-231b7cd7de7c', 'p', 'b93862df-551c-4ece-9287-b328a5f66233', 'headgate.stack.create.started', NULL, true, 'pending', 3, 6, '2026-11-23 11:10:41.302064+00', NULL, 'no connection to 127.0.0.1:9: Connect call failed (''127.0.0.1'', 9)', NULL, '2026-11-23 11:10:35.304165+00', NULL);

INSERT INTO public.event VALUES
	('ebce832c-03df-45bb-aab3-d68515449fc7', 1, 'd2997736-dfa1-4002-be43-ef8f0be4b1ab', 'headgate.subscription.enabled', '2026-11-23 11:10:34.476788+00', NULL, NULL, NULL, NULL, NULL, 'It was made', '{"by": "anonymous", "tags": [], "state": "enabled", "types": [], "events": [], "nested": true, "origin": "api", "points": [], "stacks": [], "target": "http://127.0.0.1:9", "channel": "webhook", "ordered": true, "stack_id": null, "resources": [], "subscription": "ebce832c-03df-45bb-aab3-d68515449fc7"}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 1, 'eaf38cf6-97da-451d-bc5b-729f463f5bcf', 'headgate.stack.create.started', '2026-11-23 11:10:34.524083+00', NULL, NULL, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'CREATE', 'IN_PROGRESS', 'Stack CREATE started', '{"version": 1, "traversal": 1}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 2, '78ce9d7b-76a2-4fe4-aff6-fb603822fc19', 'headgate.resource.create.started', '2026-11-23 11:10:34.538382+00', 'a', 'OS::Heat::TestResource', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 3, 'e1dbe558-d372-47a5-9144-674335333789', 'headgate.resource.create.completed', '2026-11-23 11:10:34.557309+00', 'a', 'OS::Heat::TestResource', 'done-a-tgncqo33c47p', 'CREATE', 'COMPLETE', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 4, 'c37fdfbc-ba54-4729-8e9e-18e8f4f30600', 'headgate.stack.create.completed', '2026-11-23 11:10:34.562874+00', NULL, NULL, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'CREATE', 'COMPLETE', 'Stack CREATE completed successfully', '{"status": "COMPLETE", "version": 1, "traversal": 1}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 5, 'a096fb90-4818-4873-8238-dca7dabb61c9', 'headgate.stack.update.started', '2026-11-23 11:10:34.602702+00', NULL, NULL, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'UPDATE', 'IN_PROGRESS', 'Stack UPDATE started', '{"version": 2, "traversal": 2}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 6, 'cd7e8445-4715-4a97-aea9-735720f66d56', 'headgate.resource.update.started', '2026-11-23 11:10:34.626175+00', 'a', 'OS::Heat::TestResource', 'done-a-tgncqo33c47p', 'UPDATE', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "update", "traversal": 2}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 7, '345dafc1-d845-4bf2-a711-9ecb540a97eb', 'headgate.resource.update.completed', '2026-11-23 11:10:34.640142+00', 'a', 'OS::Heat::TestResource', 'done-a-tgncqo33c47p', 'UPDATE', 'COMPLETE', 'state changed', '{"node": 0, "operation": "update", "traversal": 2}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 8, '265b328b-affd-4fe2-8507-415d49e20484', 'headgate.resource.create.started', '2026-11-23 11:10:34.640142+00', 'more', 'OS::Heat::TestResource', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 1, "operation": "create", "traversal": 2}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 9, 'e61d76c5-e98b-4c7f-bc6c-50d329765601', 'headgate.resource.create.completed', '2026-11-23 11:10:34.642454+00', 'more', 'OS::Heat::TestResource', 'done-more-vw3aeg547asa', 'CREATE', 'COMPLETE', 'state changed', '{"node": 1, "operation": "create", "traversal": 2}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 10, '33274c5e-6704-449b-9814-3750f3ae66d8', 'headgate.stack.update.completed', '2026-11-23 11:10:34.644925+00', NULL, NULL, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'UPDATE', 'COMPLETE', 'Stack UPDATE completed successfully', '{"status": "COMPLETE", "version": 2, "traversal": 2}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 11, 'bde06c9a-5c56-43f5-894d-3af4cbd8df6a', 'headgate.stack.snapshot.started', '2026-11-23 11:10:34.683552+00', NULL, NULL, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'SNAPSHOT', 'IN_PROGRESS', 'Stack SNAPSHOT started', '{"version": 2, "traversal": 3}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 12, 'a04f1cbe-5368-47db-9a2f-1051f824569f', 'headgate.resource.snapshot.started', '2026-11-23 11:10:34.697655+00', 'a', 'OS::Heat::TestResource', 'done-a-tgncqo33c47p', 'SNAPSHOT', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "snapshot", "traversal": 3}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 13, 'f35c41c0-0fc8-43da-840b-03cb2f10f916', 'headgate.resource.snapshot.started', '2026-11-23 11:10:34.697655+00', 'more', 'OS::Heat::TestResource', 'done-more-vw3aeg547asa', 'SNAPSHOT', 'IN_PROGRESS', 'state changed', '{"node": 1, "operation": "snapshot", "traversal": 3}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 14, '983f4123-af95-4c03-93b7-f7e0b90afaaf', 'headgate.resource.snapshot.completed', '2026-11-23 11:10:34.705143+00', 'a', 'OS::Heat::TestResource', 'done-a-tgncqo33c47p', 'SNAPSHOT', 'COMPLETE', 'state changed', '{"node": 0, "operation": "snapshot", "traversal": 3}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 15, 'd28790aa-346c-4336-8a91-0d7ca9ecc30f', 'headgate.resource.snapshot.completed', '2026-11-23 11:10:34.705143+00', 'more', 'OS::Heat::TestResource', 'done-more-vw3aeg547asa', 'SNAPSHOT', 'COMPLETE', 'state changed', '{"node": 1, "operation": "snapshot", "traversal": 3}', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 16, 'cf7e6dac-bad3-41dd-9300-b498bdb24bf8', 'headgate.stack.snapshot.completed', '2026-11-23 11:10:34.716327+00', NULL, NULL, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'SNAPSHOT', 'COMPLETE', 'Stack SNAPSHOT completed successfully', '{"status": "COMPLETE", "version": 2, "traversal": 3}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 1, '64ee3965-ab66-4b2a-a13a-c99fec99d476', 'headgate.stack.create.started', '2026-11-23 11:10:34.733855+00', NULL, NULL, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'CREATE', 'IN_PROGRESS', 'Stack CREATE started', '{"version": 1, "traversal": 1}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 2, '82c14c9d-137c-4947-8c0b-12fbf02b36f2', 'headgate.resource.create.started', '2026-11-23 11:10:34.740911+00', 'a', 'OS::Heat::TestResource', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 3, 'a6e366e3-0bbc-4760-ad92-dee7dc53e465', 'headgate.resource.create.completed', '2026-11-23 11:10:34.74379+00', 'a', 'OS::Heat::TestResource', 'gone-a-kmwrrnkor2if', 'CREATE', 'COMPLETE', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 4, '4d5f7ee8-c4bd-4704-972e-1c3454d603fb', 'headgate.stack.create.completed', '2026-11-23 11:10:34.756973+00', NULL, NULL, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'CREATE', 'COMPLETE', 'Stack CREATE completed successfully', '{"status": "COMPLETE", "version": 1, "traversal": 1}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 5, '9b5e6943-1f5f-43d5-a9bc-f3bf62d28083', 'headgate.stack.delete.started', '2026-11-23 11:10:34.793917+00', NULL, NULL, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'DELETE', 'IN_PROGRESS', 'Stack DELETE started', '{"version": 1, "traversal": 2}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 6, 'f38acb89-0e5c-45ff-9c55-a376648f1d9c', 'headgate.resource.snapshot.started', '2026-11-23 11:10:34.816248+00', 'a', 'OS::Heat::TestResource', 'gone-a-kmwrrnkor2if', 'SNAPSHOT', 'IN_PROGRESS', 'state changed', '{"node": 1, "operation": "snapshot", "traversal": 2}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 1, '64683e09-1b9a-4e8c-99c5-64c656ad5f9a', 'headgate.stack.create.started', '2026-11-23 11:10:34.817351+00', NULL, NULL, '3dfc653b-21f4-4977-8320-9371042ff798', 'CREATE', 'IN_PROGRESS', 'Stack CREATE started', '{"version": 1, "traversal": 1}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 7, '441598a1-e184-457f-977d-bbb69a969896', 'headgate.resource.snapshot.completed', '2026-11-23 11:10:34.824143+00', 'a', 'OS::Heat::TestResource', 'gone-a-kmwrrnkor2if', 'SNAPSHOT', 'COMPLETE', 'state changed', '{"node": 1, "operation": "snapshot", "traversal": 2}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 8, '64fc1ad7-fe20-4c50-be93-ce36a1fa770d', 'headgate.resource.delete.started', '2026-11-23 11:10:34.826423+00', 'a', 'OS::Heat::TestResource', 'gone-a-kmwrrnkor2if', 'DELETE', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "delete", "traversal": 2}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 2, 'ee977a6c-70fb-4259-9049-9ffdd445431d', 'headgate.resource.create.started', '2026-11-23 11:10:34.832469+00', 'a', 'OS::Heat::TestResource', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 9, '27b2a41e-70a4-4a11-88d9-9a75c79dfed2', 'headgate.resource.delete.completed', '2026-11-23 11:10:34.829183+00', 'a', 'OS::Heat::TestResource', 'gone-a-kmwrrnkor2if', 'DELETE', 'COMPLETE', 'state changed', '{"node": 0, "operation": "delete", "traversal": 2}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 3, '6e795553-fa42-4a6d-bcf5-f2f3ba4fbada', 'headgate.resource.create.completed', '2026-11-23 11:10:34.834266+00', 'a', 'OS::Heat::TestResource', 'decided-a-gpeoitk43dhc', 'CREATE', 'COMPLETE', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 4, '929bb90f-5f7a-44eb-a8e0-2201ed656d63', 'headgate.hook.waiting', '2026-11-23 11:10:34.837634+00', 'b', 'OS::Heat::TestResource', NULL, 'INIT', 'COMPLETE', 'CREATE paused until Hook pre-create is cleared', '{"mode": "wait", "node": 1, "point": "pre-create", "hook_id": "0fde4ce7-55d8-41a1-b1f0-f950b49305c8", "traversal": 1}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 6, '78a5126d-fb5a-481f-8c81-1bcaaa1df868', 'headgate.resource.create.started', '2026-11-23 11:10:34.894197+00', 'b', 'OS::Heat::TestResource', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 1, "operation": "create", "traversal": 1}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 7, '540b6deb-c045-4370-aa04-329112d91464', 'headgate.resource.create.completed', '2026-11-23 11:10:34.896309+00', 'b', 'OS::Heat::TestResource', 'decided-b-zwb42w5omb3m', 'CREATE', 'COMPLETE', 'state changed', '{"node": 1, "operation": "create", "traversal": 1}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 8, '0c5405af-3be8-47c8-8c79-83dacc246fa4', 'headgate.hook.waiting', '2026-11-23 11:10:34.896309+00', 'b', 'OS::Heat::TestResource', 'decided-b-zwb42w5omb3m', 'CREATE', 'COMPLETE', 'CREATE paused until Hook post-create is cleared', '{"mode": "wait", "node": 1, "point": "post-create", "hook_id": "b279218d-fc07-497c-91cb-a1cd14cb2ff0", "traversal": 1}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 11, 'b9f99567-3c48-45bf-8a72-abddc2e8baff', 'headgate.resource.create.completed', '2026-11-23 11:10:35.087808+00', 'c', 'OS::Heat::TestResource', 'decided-c-lgpva3gjwovb', 'CREATE', 'COMPLETE', 'state changed', '{"node": 2, "operation": "create", "traversal": 1}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 12, '23639d55-d4b6-4150-ad7b-1888a9f4abdf', 'headgate.stack.create.completed', '2026-11-23 11:10:35.089827+00', NULL, NULL, '3dfc653b-21f4-4977-8320-9371042ff798', 'CREATE', 'COMPLETE', 'Stack CREATE completed successfully', '{"status": "COMPLETE", "version": 1, "traversal": 1}', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 2, '19ae0266-d07c-407c-836d-c7b11252a025', 'headgate.resource.create.started', '2026-11-23 11:10:35.353129+00', 'keeper', 'OS::Heat::TestResource', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 3, '59b7337f-fa1b-49b7-87b1-4ba38d2e302b', 'headgate.resource.create.completed', '2026-11-23 11:10:35.357938+00', 'keeper', 'OS::Heat::TestResource', 'secret-keeper-oweng6zcevup', 'CREATE', 'COMPLETE', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 4, '60e1902d-a6ed-4016-bb85-45e895f92fb4', 'headgate.resource.create.started', '2026-11-23 11:10:35.357938+00', 'reader', 'OS::Heat::Value', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 1, "operation": "create", "traversal": 1}', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 10, 'a5309db1-68ac-4ffe-9bed-2c2e18222354', 'headgate.stack.delete.completed', '2026-11-23 11:10:34.836394+00', NULL, NULL, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'DELETE', 'COMPLETE', 'Stack DELETE completed successfully', '{"status": "COMPLETE", "version": 1, "traversal": 2}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 9, 'db755bb7-8143-4aca-8501-4f9da7b4ea21', 'headgate.hook.answered', '2026-11-23 11:10:35.078527+00', 'b', 'OS::Heat::TestResource', 'decided-b-zwb42w5omb3m', 'CREATE', 'COMPLETE', 'Hook post-create is cleared', '{"mode": "wait", "node": 1, "point": "post-create", "reason": "looks right", "hook_id": "b279218d-fc07-497c-91cb-a1cd14cb2ff0", "decision": "continue", "traversal": 1, "decided_by": "ann"}', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 2, '9c356608-1a98-4eb8-973d-20092e149d47', 'headgate.resource.create.started', '2026-11-23 11:10:35.302674+00', 'a', 'OS::Heat::TestResource', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 3, '4016d7db-b93b-4a08-9b57-0e7e12a956db', 'headgate.resource.create.completed', '2026-11-23 11:10:35.305314+00', 'a', 'OS::Heat::TestResource', 'held-a-hljmmazdvykk', 'CREATE', 'COMPLETE', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 5, '3aff3236-03a1-4336-8fc8-c81b0bc0f0d1', 'headgate.hook.answered', '2026-11-23 11:10:34.845887+00', 'b', 'OS::Heat::TestResource', NULL, 'INIT', 'COMPLETE', 'Hook pre-create is cleared', '{"mode": "wait", "node": 1, "point": "pre-create", "reason": "looks right", "hook_id": "0fde4ce7-55d8-41a1-b1f0-f950b49305c8", "decision": "continue", "traversal": 1, "decided_by": "ann"}', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 5, '791ddbdd-5b47-4296-82dc-11410bd0a394', 'headgate.resource.create.completed', '2026-11-23 11:10:35.360204+00', 'reader', 'OS::Heat::Value', '23dd8e5c-aa5e-49cc-a6be-6c6b59ea01c4', 'CREATE', 'COMPLETE', 'state changed', '{"node": 1, "operation": "create", "traversal": 1}', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 6, '06b4a68c-41ff-4a50-9224-43c96070ad4e', 'headgate.hook.waiting', '2026-11-23 11:10:35.360204+00', 'gate', 'OS::Heat::TestResource', NULL, 'INIT', 'COMPLETE', 'CREATE paused until Hook pre-create is cleared', '{"mode": "wait", "node": 2, "point": "pre-create", "hook_id": "689e1429-64c6-44d7-a78c-389ba790fc9d", "traversal": 1}', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 10, '29ef1e05-7c42-46b4-8109-eb49a8156270', 'headgate.resource.create.started', '2026-11-23 11:10:35.084427+00', 'c', 'OS::Heat::TestResource', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 2, "operation": "create", "traversal": 1}', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 1, 'b93862df-551c-4ece-9287-b328a5f66233', 'headgate.stack.create.started', '2026-11-23 11:10:35.292445+00', NULL, NULL, 'da8b90cb-268b-449f-8b43-46f5d91c4e6e', 'CREATE', 'IN_PROGRESS', 'Stack CREATE started', '{"version": 1, "traversal": 1}', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 4, 'e6638e9f-5fc6-4fde-ab3a-43c9f9dfb62c', 'headgate.hook.waiting', '2026-11-23 11:10:35.309067+00', 'b', 'OS::Heat::TestResource', NULL, 'INIT', 'COMPLETE', 'CREATE paused until Hook pre-create is cleared', '{"mode": "wait", "node": 1, "point": "pre-create", "hook_id": "9f8d80b3-723e-4f3b-847b-c4008e79ac0c", "traversal": 1}', NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 1, '29e41156-c059-4057-b57d-423b022f0005', 'headgate.stack.create.started', '2026-11-23 11:10:35.388578+00', NULL, NULL, '67b685bd-0915-4aed-8749-317ee24b80fa', 'CREATE', 'IN_PROGRESS', 'Stack CREATE started', '{"version": 1, "traversal": 1}', NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 2, '117f6edc-2164-4b37-b9b1-261a5a983dc6', 'headgate.hook.waiting', '2026-11-23 11:10:35.396813+00', '0', 'OS::Heat::TestResource', NULL, 'INIT', 'COMPLETE', 'CREATE paused until Hook pre-create is cleared', '{"mode": "wait", "node": 0, "point": "pre-create", "hook_id": "1a0aa6c4-0325-4107-a71a-f8a959bd8621", "traversal": 1}', NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 3, '2ea80c00-810b-47be-8196-de49057941c3', 'headgate.hook.waiting', '2026-11-23 11:10:35.396813+00', '1', 'OS::Heat::TestResource', NULL, 'INIT', 'COMPLETE', 'CREATE paused until Hook pre-create is cleared', '{"mode": "wait", "node": 1, "point": "pre-create", "hook_id": "678df237-a168-496d-b7b7-6c92414b8579", "traversal": 1}', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 1, '3efddcca-7cf9-409c-9aa1-474e025f05b8', 'headgate.stack.create.started', '2026-11-23 11:10:35.341145+00', NULL, NULL, '06453e4d-e965-4578-be20-6ff5ac456e25', 'CREATE', 'IN_PROGRESS', 'Stack CREATE started', '{"version": 1, "traversal": 1}', NULL),
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 1, '3f6cee4c-476a-4e88-8fcb-3203dffac526', 'headgate.stack.create.started', '2026-11-23 11:10:35.371495+00', NULL, NULL, '36c50856-8b1c-451e-a1c2-88d4515364a1', 'CREATE', 'IN_PROGRESS', 'Stack CREATE started', '{"version": 1, "traversal": 1}', NULL),
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 2, '9d8e4782-565e-4024-ac24-cd8ff30055c4', 'headgate.resource.create.started', '2026-11-23 11:10:35.381405+00', 'group', 'OS::Heat::ResourceGroup', NULL, 'CREATE', 'IN_PROGRESS', 'state changed', '{"node": 0, "operation": "create", "traversal": 1}', NULL);

INSERT INTO public.hook VALUES
	('3dfc653b-21f4-4977-8320-9371042ff798', '0fde4ce7-55d8-41a1-b1f0-f950b49305c8', 'p', 1, 1, 'b', 'b', 'pre-create', 'wait', 'answered', 'stop', '87600:00:00', '{"type": "OS::Heat::TestResource", "changes": {}, "operation": "create", "dependents": ["c"], "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}, "physical_id": null}', 'ebe137d6120ab6aa7c22ba505ee62a8936ea0bb96c434efe90944ac5cc44bf1f', '2026-11-23 11:10:34.837845+00', '2036-11-20 11:10:34.837845+00', NULL, 'continue', 'looks right', NULL, 'ann', 'api', '2026-11-23 11:10:34.859051+00', '{"point": "pre-create", "timeout": 315360000.0}', 'anonymous', NULL, 0, NULL, NULL, NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 'b279218d-fc07-497c-91cb-a1cd14cb2ff0', 'p', 1, 1, 'b', 'b', 'post-create', 'wait', 'answered', 'stop', '87600:00:00', '{"type": "OS::Heat::TestResource", "changes": {}, "operation": "create", "dependents": ["c"], "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}, "physical_id": "decided-b-zwb42w5omb3m"}', '6b24ab43bf596978856f5d0b5c83f6dbe02067319e1c71f83e2b5d5273a74c54', '2026-11-23 11:10:34.896432+00', '2036-11-20 11:45:37.896432+00', NULL, 'continue', 'looks right', NULL, 'ann', 'api', '2026-11-23 11:10:35.081083+00', '{"point": "post-create", "timeout": 315360000.0}', 'anonymous', NULL, 0, NULL, NULL, NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', '9f8d80b3-723e-4f3b-847b-c4008e79ac0c', 'p', 1, 1, 'b', 'b', 'pre-create', 'wait', 'waiting', 'stop', '87600:00:00', '{"type": "OS::Heat::TestResource", "changes": {}, "operation": "create", "dependents": ["c"], "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}, "physical_id": null}', 'ebe137d6120ab6aa7c22ba505ee62a8936ea0bb96c434efe90944ac5cc44bf1f', '2026-11-23 11:10:35.309482+00', '2036-11-20 11:45:38.309482+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"point": "pre-create", "timeout": 315360000.0}', 'anonymous', NULL, 0, NULL, NULL, NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', '689e1429-64c6-44d7-a78c-389ba790fc9d', 'p', 1, 2, 'gate', 'gate', 'pre-create', 'wait', 'waiting', 'stop', '87600:00:00', '{"type": "OS::Heat::TestResource", "changes": {}, "operation": "create", "dependents": [], "properties": {"value": "******"}, "physical_id": null}', '32f2542111618c875880881a90e00e1272844f2b5c0cd19181bca0f9631db2e7', '2026-11-23 11:10:35.36038+00', '2036-11-20 11:45:38.36038+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"point": "pre-create", "timeout": 315360000.0}', 'anonymous', NULL, 0, NULL, NULL, NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', '1a0aa6c4-0325-4107-a71a-f8a959bd8621', 'p', 1, 0, '0', 'group/0', 'pre-create', 'wait', 'waiting', 'stop', '87600:00:00', '{"type": "OS::Heat::TestResource", "changes": {}, "operation": "create", "dependents": [], "properties": {"fail": false, "value": "m", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}, "physical_id": null}', '988c6f4c6c8cd41b995f35972c18d9d122106b524584a00ca2a165bba26b963b', '2026-11-23 11:10:35.396936+00', '2036-11-20 11:45:38.396936+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"point": "pre-create", "timeout": 315360000.0}', 'anonymous', NULL, 0, NULL, NULL, NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', '678df237-a168-496d-b7b7-6c92414b8579', 'p', 1, 1, '1', 'group/1', 'pre-create', 'wait', 'waiting', 'stop', '87600:00:00', '{"type": "OS::Heat::TestResource", "changes": {}, "operation": "create", "dependents": [], "properties": {"fail": false, "value": "m", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}, "physical_id": null}', '988c6f4c6c8cd41b995f35972c18d9d122106b524584a00ca2a165bba26b963b', '2026-11-23 11:10:35.396936+00', '2036-11-20 11:45:38.396936+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"point": "pre-create", "timeout": 315360000.0}', 'anonymous', NULL, 0, NULL, NULL, NULL);

INSERT INTO public.instance VALUES
	(true, '\x4858842176b916af6f92d74e9d264630a9bab340bd10e2d475062c0a3e9e2ecd81934051ad80ec33261cb29acb5309c2ac591eb78409af63be4ee9d9e9439d28f96f8a7b70089753e4f70bb3ad2fcf42362d0524f7018d82f0b3e737', '\x16938ad621d229101ef26d42685b68ea2608fa9150d450420ab097a000007f62');

INSERT INTO public.migration VALUES
	('0001_stacks.sql', '2026-11-23 11:10:34.127067+00'),
	('0002_advance.sql', '2026-11-23 11:10:34.127067+00'),
	('0003_channels.sql', '2026-11-23 11:10:34.127067+00'),
	('0004_changes.sql', '2026-11-23 11:10:34.127067+00'),
	('0005_hooks.sql', '2026-11-23 11:10:34.127067+00'),
	('0006_tags.sql', '2026-11-23 11:10:34.127067+00'),
	('0007_subscription_events.sql', '2026-11-23 11:10:34.127067+00'),
	('0008_tokens.sql', '2026-11-23 11:10:34.127067+00'),
	('0009_retention.sql', '2026-11-23 11:10:34.127067+00'),
	('0010_software.sql', '2026-11-23 11:10:34.127067+00'),
	('0011_quotas.sql', '2026-11-23 11:10:34.127067+00'),
	('0012_sealed.sql', '2026-11-23 11:10:34.127067+00'),
	('0013_nested.sql', '2026-11-23 11:10:34.127067+00'),
	('0014_awaits.sql', '2026-11-23 11:10:34.127067+00'),
	('0015_deployed.sql', '2026-11-23 11:10:34.127067+00'),
	('0018_nested_events.sql', '2026-11-23 11:10:34.127067+00'),
	('0019_stepping.sql', '2026-11-23 11:10:34.127067+00'),
	('0020_overview.sql', '2026-11-23 11:10:34.127067+00'),
	('0021_beginnings.sql', '2026-11-23 11:10:34.127067+00'),
	('0022_past_graphs.sql', '2026-11-23 11:10:34.127067+00'),
	('0023_decisions.sql', '2026-11-23 11:10:34.127067+00'),
	('0024_source.sql', '2026-11-23 11:10:34.127067+00');

INSERT INTO public.node VALUES
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 3, 0, '6257632b-0cf0-4578-a605-7c76b292e181', NULL, 'a', 'OS::Heat::TestResource', 'snapshot', 'forward', 'done', 'post', 0, '{}', NULL, '{}', '{"retained": false, "only_if_replaced": false}', NULL, '{}', NULL, 2, NULL, NULL, '6d93eed7-07cc-4393-95a7-4208db339f1d', NULL, NULL, '2026-11-23 11:10:34.698043+00', '2026-11-23 11:10:34.705552+00', 0, NULL, NULL, false, NULL, false),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 3, 1, 'b48f0324-e2b4-4975-b033-dd3ae0bbb358', NULL, 'more', 'OS::Heat::TestResource', 'snapshot', 'forward', 'done', 'post', 0, '{}', NULL, '{}', '{"retained": false, "only_if_replaced": false}', NULL, '{}', NULL, 2, NULL, NULL, 'f4bc1c39-7db9-4f3c-bc04-053230c11125', NULL, NULL, '2026-11-23 11:10:34.698043+00', '2026-11-23 11:10:34.705552+00', 0, NULL, NULL, false, NULL, false),
	('3dfc653b-21f4-4977-8320-9371042ff798', 1, 0, 'd147718a-fbf7-4c50-947a-5c818b27ef73', NULL, 'a', 'OS::Heat::TestResource', 'create', 'forward', 'done', 'post', 0, '{1}', NULL, '{}', '{"digest": "2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f", "masked": null, "static": true, "version": "2018-08-31", "metadata": {}, "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}}', NULL, '{}', NULL, 2, NULL, NULL, '8cbb4123-26d6-44ef-911c-7be2a68711e6', NULL, NULL, '2026-11-23 11:10:34.83268+00', '2026-11-23 11:10:34.834439+00', 0, NULL, NULL, false, NULL, false),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 1, 0, 'dc616c39-de01-4d66-87fa-ada44882a682', NULL, 'keeper', 'OS::Heat::TestResource', 'create', 'forward', 'done', 'post', 0, '{1,2}', NULL, '{}', '{"digest": "371690cb4cffec57edd4c75ce748eb81bced5d1ae7ecc920f0ca5d3ce3b682ca", "masked": {"value": "******"}, "static": true, "version": "2018-08-31", "metadata": {"$sealed:385784d47ce11698": "H+Hnh4yT15tNvqukBEdmtNU0/UyU3dcbFuqzijUg"}, "properties": {"$sealed:385784d47ce11698": "x/+Yp1SMVRc+DnPogg7vm62L6nmJw30D9/AXKyZFxlkfDr9L3juGMGkZ9AZ+l+sh2o01V8icCwxYogu/m+eRVxgKbqs1cwZwxBcYN/OQm17nHoga7fNrRhobN7Et1Q0H86fvz46tgD139jOftoPHV8j9mmE/9El6MId4m16gGbfek0q1qvgZ8ftdnKxNurG+KH+P+pu5MpgHb5pLKSWGF+81CG+FgTebE0kokWjBOuXYLKI="}}', NULL, '{}', NULL, 2, NULL, NULL, '4531c796-03a0-41f3-b7d2-a4167c6692ce', NULL, NULL, '2026-11-23 11:10:35.353369+00', '2026-11-23 11:10:35.358068+00', 0, NULL, NULL, false, NULL, false),
	('3dfc653b-21f4-4977-8320-9371042ff798', 1, 1, '7cb6ec67-badc-4361-b4e0-79ed890cc287', NULL, 'b', 'OS::Heat::TestResource', 'create', 'forward', 'done', 'post', 0, '{2}', NULL, '{}', '{"digest": "2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f", "masked": null, "static": true, "version": "2018-08-31", "metadata": {}, "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}}', '[{"point": "pre-create", "timeout": 315360000.0}, {"point": "post-create", "timeout": 315360000.0}]', '{pre-create,post-create}', NULL, 7, NULL, NULL, '17d0fb07-0be9-4168-866c-2c776dae06d9', NULL, NULL, '2026-11-23 11:10:34.894312+00', '2026-11-23 11:10:35.082438+00', 0, NULL, NULL, false, NULL, false),
	('3dfc653b-21f4-4977-8320-9371042ff798', 1, 2, '4152148f-0945-44f0-92d1-c0e8ac7af7f8', NULL, 'c', 'OS::Heat::TestResource', 'create', 'forward', 'done', 'post', 0, '{}', NULL, '{}', '{"digest": "2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f", "masked": null, "static": true, "version": "2018-08-31", "metadata": {}, "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}}', NULL, '{}', NULL, 2, NULL, NULL, 'ea1b3cb3-56f7-4047-90d5-d649b60abccb', NULL, NULL, '2026-11-23 11:10:35.084761+00', '2026-11-23 11:10:35.087935+00', 0, NULL, NULL, false, NULL, false),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 1, 0, '168951d4-ce66-4dd3-a258-5fa5d39bd5e5', NULL, 'a', 'OS::Heat::TestResource', 'create', 'forward', 'done', 'post', 0, '{1}', NULL, '{}', '{"digest": "2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f", "masked": null, "static": true, "version": "2018-08-31", "metadata": {}, "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}}', NULL, '{}', NULL, 2, NULL, NULL, 'e404ca47-03bc-41b6-852b-151e40c62567', NULL, NULL, '2026-11-23 11:10:35.302934+00', '2026-11-23 11:10:35.305442+00', 0, NULL, NULL, false, NULL, false),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 1, 1, 'c4630e7e-a508-487e-ab22-95a6de5b0edf', NULL, 'b', 'OS::Heat::TestResource', 'create', 'forward', 'parked', 'pre', 0, '{2}', NULL, '{}', '{"digest": "2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f", "masked": null, "static": true, "version": "2018-08-31", "metadata": {}, "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}}', '[{"point": "pre-create", "timeout": 315360000.0}, {"point": "post-create", "timeout": 315360000.0}]', '{pre-create}', NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, false),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 1, 2, '90e2c7be-0c45-4030-8a4e-7a15a0b44280', NULL, 'c', 'OS::Heat::TestResource', 'create', 'forward', 'waiting', 'act', 1, '{}', NULL, '{}', '{"digest": "2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f", "masked": null, "static": true, "version": "2018-08-31", "metadata": {}, "properties": {"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}}', NULL, '{}', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, false),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 1, 0, '4d859d29-4678-4524-b532-435069ac9020', NULL, '0', 'OS::Heat::TestResource', 'create', 'forward', 'parked', 'pre', 0, '{}', NULL, '{}', '{"digest": "793e191335258880a94693cf18b3e41c491f269d913b48f395839fce05949652", "masked": null, "static": true, "version": "2015-04-30", "metadata": {}, "properties": {"fail": false, "value": "m", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}}', '[{"point": "pre-create", "timeout": 315360000.0}]', '{pre-create}', NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, false),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 1, 1, 'd570e0de-b0b6-4426-aae1-75de5833e122', NULL, '1', 'OS::Heat::TestResource', 'create', 'forward', 'parked', 'pre', 0, '{}', NULL, '{}', '{"digest": "793e191335258880a94693cf18b3e41c491f269d913b48f395839fce05949652", "masked": null, "static": true, "version": "2015-04-30", "metadata": {}, "properties": {"fail": false, "value": "m", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}}', '[{"point": "pre-create", "timeout": 315360000.0}]', '{pre-create}', NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, false),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 1, 1, '0b51880b-b527-4bae-844f-1119662d113c', NULL, 'reader', 'OS::Heat::Value', 'create', 'forward', 'done', 'post', 0, '{}', NULL, '{keeper}', '{"digest": "ba326316e9ae80f89c1278d757ec95d374a0806302416661b511b0269590e01e", "masked": null, "version": "2018-08-31", "metadata": {}, "properties": {"value": {"$call": ["list_join", ["-", [{"$call": ["get_attr", ["keeper", "output"]]}, "x"]]]}}, "secret_references": []}', NULL, '{}', NULL, 2, NULL, NULL, '23dd8e5c-aa5e-49cc-a6be-6c6b59ea01c4', NULL, NULL, '2026-11-23 11:10:35.358706+00', '2026-11-23 11:10:35.36038+00', 0, NULL, NULL, false, NULL, false),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 1, 2, '3214f2b6-cdf4-48c1-888d-b8967f74ac5b', NULL, 'gate', 'OS::Heat::TestResource', 'create', 'forward', 'parked', 'pre', 0, '{}', NULL, '{}', '{"digest": "371690cb4cffec57edd4c75ce748eb81bced5d1ae7ecc920f0ca5d3ce3b682ca", "masked": {"value": "******"}, "static": true, "version": "2018-08-31", "metadata": {"$sealed:385784d47ce11698": "H+Hnh4yT15tNvqukBEdmtNU0/UyU3dcbFuqzijUg"}, "properties": {"$sealed:385784d47ce11698": "x/+Yp1SMVRc+DnPogg7vm62L6nmJw30D9/AXKyZFxlkfDr9L3juGMGkZ9AZ+l+sh2o01V8icCwxYogu/m+eRVxgKbqs1cwZwxBcYN/OQm17nHoga7fNrRhobN7Et1Q0H86fvz46tgD139jOftoPHV8j9mmE/9El6MId4m16gGbfek0q1qvgZ8ftdnKxNurG+KH+P+pu5MpgHb5pLKSWGF+81CG+FgTebE0kokWjBOuXYLKI="}}', '[{"point": "pre-create", "timeout": 315360000.0}]', '{pre-create}', NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, false),
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 1, 0, 'ef726be6-7c6a-4d6e-bf70-2fa0580913c8', NULL, 'group', 'OS::Heat::ResourceGroup', 'create', 'forward', 'parked', 'act', 0, '{}', NULL, '{}', '{"digest": "76b8a238978d95775119ecf3315a6a4dfa0ede54b6c500496349735513345203", "masked": null, "static": true, "version": "2018-08-31", "metadata": {}, "properties": {"count": 2, "index_var": "%index%", "resource_def": {"type": "OS::Heat::TestResource", "properties": {"value": "m"}}, "removal_policies": [], "removal_policies_mode": "append"}}', NULL, '{}', NULL, 2, NULL, NULL, 'ad12888d-5dae-4e4f-9cb1-abd71eb4b25d', '{"$sealed:385784d47ce11698": "iF+FSLBVlfvZeEPq83CEJsKl40ftSoDJosGdX00G0Au6Gib1lCruqE96rPSDGtj7+9f+f1HYo6cr8UXn8b9/ySt1RZTcFceRATO2DgB69ZscqPCXUCWVDDDkCgCuRd979xafEVj3EZMKD2gkWDWA5HJS8ktBmBKlECED39fS"}', NULL, '2026-11-23 11:10:35.381597+00', NULL, 0, NULL, NULL, false, NULL, false);

INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES
	(1, 'ebce832c-03df-45bb-aab3-d68515449fc7', 'p', 1, 1, 1, '2026-11-23 11:10:34.476788+00'),
	(2, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 1, 1, 2, '2026-11-23 11:10:34.524083+00'),
	(3, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 2, 2, 3, '2026-11-23 11:10:34.538382+00'),
	(4, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 3, 3, 4, '2026-11-23 11:10:34.557309+00'),
	(5, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 4, 4, 5, '2026-11-23 11:10:34.562874+00'),
	(6, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 5, 5, 6, '2026-11-23 11:10:34.602702+00'),
	(7, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 6, 6, 7, '2026-11-23 11:10:34.626175+00'),
	(8, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 7, 8, 8, '2026-11-23 11:10:34.640142+00'),
	(9, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 9, 9, 9, '2026-11-23 11:10:34.642454+00'),
	(10, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 10, 10, 10, '2026-11-23 11:10:34.644925+00'),
	(11, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 11, 11, 11, '2026-11-23 11:10:34.683552+00'),
	(12, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 12, 13, 12, '2026-11-23 11:10:34.697655+00'),
	(13, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 14, 15, 13, '2026-11-23 11:10:34.705143+00'),
	(14, '72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 16, 16, 14, '2026-11-23 11:10:34.716327+00'),
	(15, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 1, 1, 15, '2026-11-23 11:10:34.733855+00'),
	(16, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 2, 2, 16, '2026-11-23 11:10:34.740911+00'),
	(17, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 3, 3, 17, '2026-11-23 11:10:34.74379+00'),
	(18, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 4, 4, 18, '2026-11-23 11:10:34.756973+00'),
	(19, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 5, 5, 19, '2026-11-23 11:10:34.793917+00'),
	(20, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 6, 6, 20, '2026-11-23 11:10:34.816248+00'),
	(21, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 7, 7, 21, '2026-11-23 11:10:34.824143+00'),
	(22, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 1, 1, 22, '2026-11-23 11:10:34.817351+00'),
	(23, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 8, 8, 23, '2026-11-23 11:10:34.826423+00'),
	(24, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 2, 2, 24, '2026-11-23 11:10:34.832469+00'),
	(25, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 9, 9, 25, '2026-11-23 11:10:34.829183+00'),
	(26, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 3, 3, 26, '2026-11-23 11:10:34.834266+00'),
	(27, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 4, 4, 27, '2026-11-23 11:10:34.837634+00'),
	(28, 'c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 10, 10, 28, '2026-11-23 11:10:34.836394+00'),
	(29, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 5, 5, 29, '2026-11-23 11:10:34.845887+00'),
	(30, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 6, 6, 30, '2026-11-23 11:10:34.894197+00'),
	(31, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 7, 8, 31, '2026-11-23 11:10:34.896309+00'),
	(32, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 9, 9, 32, '2026-11-23 11:10:35.078527+00'),
	(33, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 10, 10, 33, '2026-11-23 11:10:35.084427+00'),
	(34, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 11, 11, 34, '2026-11-23 11:10:35.087808+00'),
	(35, '3dfc653b-21f4-4977-8320-9371042ff798', 'p', 12, 12, 35, '2026-11-23 11:10:35.089827+00'),
	(36, 'da8b90cb-268b-449f-8b43-46f5d91c4e6e', 'p', 1, 1, 36, '2026-11-23 11:10:35.292445+00'),
	(37, 'da8b90cb-268b-449f-8b43-46f5d91c4e6e', 'p', 2, 2, 37, '2026-11-23 11:10:35.302674+00'),
	(38, 'da8b90cb-268b-449f-8b43-46f5d91c4e6e', 'p', 3, 3, 38, '2026-11-23 11:10:35.305314+00'),
	(39, 'da8b90cb-268b-449f-8b43-46f5d91c4e6e', 'p', 4, 4, 39, '2026-11-23 11:10:35.309067+00'),
	(40, '06453e4d-e965-4578-be20-6ff5ac456e25', 'p', 1, 1, 40, '2026-11-23 11:10:35.341145+00'),
	(41, '06453e4d-e965-4578-be20-6ff5ac456e25', 'p', 2, 2, 41, '2026-11-23 11:10:35.353129+00'),
	(42, '06453e4d-e965-4578-be20-6ff5ac456e25', 'p', 3, 4, 42, '2026-11-23 11:10:35.357938+00'),
	(43, '06453e4d-e965-4578-be20-6ff5ac456e25', 'p', 5, 6, 43, '2026-11-23 11:10:35.360204+00'),
	(44, '36c50856-8b1c-451e-a1c2-88d4515364a1', 'p', 1, 1, 44, '2026-11-23 11:10:35.371495+00'),
	(45, '36c50856-8b1c-451e-a1c2-88d4515364a1', 'p', 2, 2, 45, '2026-11-23 11:10:35.381405+00'),
	(46, '67b685bd-0915-4aed-8749-317ee24b80fa', 'p', 1, 1, 46, '2026-11-23 11:10:35.388578+00'),
	(47, '67b685bd-0915-4aed-8749-317ee24b80fa', 'p', 2, 3, 47, '2026-11-23 11:10:35.396813+00');

INSERT INTO public.past_graph VALUES
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 1, '{0}', '{a}', '{OS::Heat::TestResource}', '{create}', '{forward}', '{done}', '{post}', '{NULL}', '{"{}"}'),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 2, '{0,1,2}', '{a,more,a}', '{OS::Heat::TestResource,OS::Heat::TestResource,OS::Heat::TestResource}', '{update,create,delete}', '{forward,forward,cleanup}', '{done,done,done}', '{post,post,pre}', '{NULL,NULL,NULL}', '{"{1,2}","{}","{}"}'),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 1, '{0}', '{a}', '{OS::Heat::TestResource}', '{create}', '{forward}', '{done}', '{post}', '{NULL}', '{"{}"}'),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 2, '{0,1}', '{a,a}', '{OS::Heat::TestResource,OS::Heat::TestResource}', '{delete,snapshot}', '{cleanup,cleanup}', '{done,done}', '{post,post}', '{NULL,NULL}', '{"{}","{0}"}');

INSERT INTO public.publishing VALUES
	(true, 47);

INSERT INTO public.resource VALUES
	('3dfc653b-21f4-4977-8320-9371042ff798', 'd147718a-fbf7-4c50-947a-5c818b27ef73', 'a', 'OS::Heat::TestResource', 'CREATE', 'COMPLETE', 'state changed', 'decided-a-gpeoitk43dhc', '"decided-a-gpeoitk43dhc"', '{"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', NULL, '{"output": "x"}', '{}', '{}', '2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f', '{}', NULL, false, NULL, '2026-11-23 11:10:34.817351+00', '2026-11-23 11:10:34.834439+00', 'Delete', false),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', '6257632b-0cf0-4578-a605-7c76b292e181', 'a', 'OS::Heat::TestResource', 'SNAPSHOT', 'COMPLETE', 'state changed', 'done-a-tgncqo33c47p', '"done-a-tgncqo33c47p"', '{"fail": false, "value": "two", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', NULL, '{"output": "two"}', '{}', '{}', 'd796ee8262646dbbe6605273432187fca8ea5428a47798f6a7824c4fbcba227b', '{}', NULL, false, NULL, '2026-11-23 11:10:34.524083+00', '2026-11-23 11:10:34.705552+00', 'Delete', false),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'b48f0324-e2b4-4975-b033-dd3ae0bbb358', 'more', 'OS::Heat::TestResource', 'SNAPSHOT', 'COMPLETE', 'state changed', 'done-more-vw3aeg547asa', '"done-more-vw3aeg547asa"', '{"fail": false, "value": "three", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', NULL, '{"output": "three"}', '{}', '{}', 'afd20b2a778d2ec0809856e77c297530c64b2dd927d7277ec170a208788dba44', '{6257632b-0cf0-4578-a605-7c76b292e181}', NULL, false, NULL, '2026-11-23 11:10:34.602702+00', '2026-11-23 11:10:34.705552+00', 'Delete', false),
	('3dfc653b-21f4-4977-8320-9371042ff798', '7cb6ec67-badc-4361-b4e0-79ed890cc287', 'b', 'OS::Heat::TestResource', 'CREATE', 'COMPLETE', 'state changed', 'decided-b-zwb42w5omb3m', '"decided-b-zwb42w5omb3m"', '{"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', NULL, '{"output": "x"}', '{}', '{}', '2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f', '{d147718a-fbf7-4c50-947a-5c818b27ef73}', '[{"point": "pre-create", "timeout": 315360000.0}, {"point": "post-create", "timeout": 315360000.0}]', false, NULL, '2026-11-23 11:10:34.817351+00', '2026-11-23 11:10:34.896432+00', 'Delete', false),
	('3dfc653b-21f4-4977-8320-9371042ff798', '4152148f-0945-44f0-92d1-c0e8ac7af7f8', 'c', 'OS::Heat::TestResource', 'CREATE', 'COMPLETE', 'state changed', 'decided-c-lgpva3gjwovb', '"decided-c-lgpva3gjwovb"', '{"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', NULL, '{"output": "x"}', '{}', '{}', '2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f', '{7cb6ec67-badc-4361-b4e0-79ed890cc287}', NULL, false, NULL, '2026-11-23 11:10:34.817351+00', '2026-11-23 11:10:35.087935+00', 'Delete', false),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 'c4630e7e-a508-487e-ab22-95a6de5b0edf', 'b', 'OS::Heat::TestResource', 'INIT', 'COMPLETE', '', NULL, NULL, NULL, NULL, '{}', '{}', '{}', '', '{168951d4-ce66-4dd3-a258-5fa5d39bd5e5}', '[{"point": "pre-create", "timeout": 315360000.0}, {"point": "post-create", "timeout": 315360000.0}]', false, NULL, '2026-11-23 11:10:35.292445+00', '2026-11-23 11:10:35.292445+00', 'Delete', false),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', '90e2c7be-0c45-4030-8a4e-7a15a0b44280', 'c', 'OS::Heat::TestResource', 'INIT', 'COMPLETE', '', NULL, NULL, NULL, NULL, '{}', '{}', '{}', '', '{c4630e7e-a508-487e-ab22-95a6de5b0edf}', NULL, false, NULL, '2026-11-23 11:10:35.292445+00', '2026-11-23 11:10:35.292445+00', 'Delete', false),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', '168951d4-ce66-4dd3-a258-5fa5d39bd5e5', 'a', 'OS::Heat::TestResource', 'CREATE', 'COMPLETE', 'state changed', 'held-a-hljmmazdvykk', '"held-a-hljmmazdvykk"', '{"fail": false, "value": "x", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', NULL, '{"output": "x"}', '{}', '{}', '2598f06502b8019b9b05047024dbfd52fd05e2bf0a043e44ce5c535cd8b2e61f', '{}', NULL, false, NULL, '2026-11-23 11:10:35.292445+00', '2026-11-23 11:10:35.305442+00', 'Delete', false),
	('67b685bd-0915-4aed-8749-317ee24b80fa', '4d859d29-4678-4524-b532-435069ac9020', '0', 'OS::Heat::TestResource', 'INIT', 'COMPLETE', '', NULL, NULL, NULL, NULL, '{}', '{}', '{}', '', '{}', '[{"point": "pre-create", "timeout": 315360000.0}]', false, NULL, '2026-11-23 11:10:35.388578+00', '2026-11-23 11:10:35.388578+00', 'Delete', false),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 'd570e0de-b0b6-4426-aae1-75de5833e122', '1', 'OS::Heat::TestResource', 'INIT', 'COMPLETE', '', NULL, NULL, NULL, NULL, '{}', '{}', '{}', '', '{}', '[{"point": "pre-create", "timeout": 315360000.0}]', false, NULL, '2026-11-23 11:10:35.388578+00', '2026-11-23 11:10:35.388578+00', 'Delete', false),
	('06453e4d-e965-4578-be20-6ff5ac456e25', '3214f2b6-cdf4-48c1-888d-b8967f74ac5b', 'gate', 'OS::Heat::TestResource', 'INIT', 'COMPLETE', '', NULL, NULL, NULL, NULL, '{}', '{}', '{}', '', '{dc616c39-de01-4d66-87fa-ada44882a682}', '[{"point": "pre-create", "timeout": 315360000.0}]', false, NULL, '2026-11-23 11:10:35.341145+00', '2026-11-23 11:10:35.341145+00', 'Delete', false),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 'dc616c39-de01-4d66-87fa-ada44882a682', 'keeper', 'OS::Heat::TestResource', 'CREATE', 'COMPLETE', 'state changed', 'secret-keeper-oweng6zcevup', '{"$sealed:385784d47ce11698": "JXuqj4hUL0nqOD0hbSCnRIIuCQlEPHosnzh7sUfKb+dJgr/XYDwhdNtWVNnlPJgu7DR9uqne9eA="}', '{"$sealed:385784d47ce11698": "x/+Yp1SMVRc+DnPogg7vm62L6nmJw30D9/AXKyZFxlkfDr9L3juGMGkZ9AZ+l+sh2o01V8icCwxYogu/m+eRVxgKbqs1cwZwxBcYN/OQm17nHoga7fNrRhobN7Et1Q0H86fvz46tgD139jOftoPHV8j9mmE/9El6MId4m16gGbfek0q1qvgZ8ftdnKxNurG+KH+P+pu5MpgHb5pLKSWGF+81CG+FgTebE0kokWjBOuXYLKI="}', '{"value": "******"}', '{"$sealed:385784d47ce11698": "oOg10djmjDBDbPcnVHWQCsNHBtodTXvD9SingizfmULQsGvKIsXv1lCt/kbjr8XmPzl7UQ=="}', '{}', '{}', '371690cb4cffec57edd4c75ce748eb81bced5d1ae7ecc920f0ca5d3ce3b682ca', '{}', NULL, false, NULL, '2026-11-23 11:10:35.341145+00', '2026-11-23 11:10:35.358068+00', 'Delete', false),
	('06453e4d-e965-4578-be20-6ff5ac456e25', '0b51880b-b527-4bae-844f-1119662d113c', 'reader', 'OS::Heat::Value', 'CREATE', 'COMPLETE', 'state changed', '23dd8e5c-aa5e-49cc-a6be-6c6b59ea01c4', '"23dd8e5c-aa5e-49cc-a6be-6c6b59ea01c4"', '{"value": "geheim-4711-x"}', NULL, '{"value": "geheim-4711-x"}', '{}', '{}', 'ba326316e9ae80f89c1278d757ec95d374a0806302416661b511b0269590e01e', '{dc616c39-de01-4d66-87fa-ada44882a682}', NULL, false, NULL, '2026-11-23 11:10:35.341145+00', '2026-11-23 11:10:35.36038+00', 'Delete', false),
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 'ef726be6-7c6a-4d6e-bf70-2fa0580913c8', 'group', 'OS::Heat::ResourceGroup', 'INIT', 'COMPLETE', '', NULL, NULL, NULL, NULL, '{}', '{}', '{}', '', '{}', NULL, false, NULL, '2026-11-23 11:10:35.371495+00', '2026-11-23 11:10:35.371495+00', 'Delete', false);

INSERT INTO public.resource_snapshot VALUES
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 3, '6257632b-0cf0-4578-a605-7c76b292e181', 'a', 'OS::Heat::TestResource', 'done-a-tgncqo33c47p', '{"fail": false, "value": "two", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', '{}', '{"value": "two"}', '2026-11-23 11:10:34.705143+00'),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 3, 'b48f0324-e2b4-4975-b033-dd3ae0bbb358', 'more', 'OS::Heat::TestResource', 'done-more-vw3aeg547asa', '{"fail": false, "value": "three", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', '{}', '{"value": "three"}', '2026-11-23 11:10:34.705143+00'),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 2, '4a8be409-f975-43bd-8e42-cd3f6546c94c', 'a', 'OS::Heat::TestResource', 'gone-a-kmwrrnkor2if', '{"fail": false, "value": "g", "wait_secs": 0, "client_name": "", "entity_name": "", "attr_wait_secs": 0, "update_replace": false, "constraint_prop_secs": 0}', '{}', '{"value": "g"}', '2026-11-23 11:10:34.824143+00');

INSERT INTO public.routines VALUES
	(true, '689d2dc67426bf2e3b94f5f37087901df091d03f415916ad5fe10e8de85132b8');

INSERT INTO public.snapshot VALUES
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', '412c1eee-44a5-43bd-a6b8-82a169b9cc45', 'kept', 3, 2, '2026-11-23 11:10:34.683552+00');

INSERT INTO public.software_config VALUES
	('4cf942f8-15a3-44b5-a6c8-0d0c73d9bdec', 'p', 'conf', 'script', '{"$sealed:385784d47ce11698": "oxZZxFJyNYTv1m0/X/65cCLcb8o3u+hsakmDUTLWmh1sqOH7cA1EgQ=="}', '{"$sealed:385784d47ce11698": "kjF2tUTJbKe6lhUzIhLVkrl2G4kqrOLyCMQad79kbqJA3N3bGEDO/4JZ6uWH6TQtmx3EWgyboHRTV1dQ1+Cg7DtUm7iDng6/PGO2L2O7iyXSAIquAj5CU1W0kiY+pZp/CZU="}', '[]', '{}', '2026-11-23 11:10:37.388326+00');

INSERT INTO public.software_deployment VALUES
	('be936418-36ef-49e0-b617-85028c293374', 'p', '4cf942f8-15a3-44b5-a6c8-0d0c73d9bdec', '6b6a0f4c-1111-4222-8333-1234567890ab', '{"$sealed:385784d47ce11698": "H+Hnh4yT15tNvqukBEdmtNU0/UyU3dcbFuqzijUg"}', NULL, 'CREATE', 'IN_PROGRESS', 'deploying', '2026-11-23 11:10:37.39027+00', NULL, NULL, NULL, NULL);

INSERT INTO public.stack VALUES
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 'p', 'outer', 'anonymous', '{}', NULL, true, 1, 1, 2, '2026-11-23 11:10:35.371495+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '2026-11-23 11:10:35.371495+00'),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 'p', 'gone', 'anonymous', '{}', NULL, true, 1, 2, 10, '2026-11-23 11:10:34.733855+00', '2026-11-23 11:10:34.846035+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '2026-11-23 11:10:34.793917+00'),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 'p', 'outer-group-317ee24b80fa', 'anonymous', '{}', NULL, true, 1, 1, 3, '2026-11-23 11:10:35.388578+00', NULL, NULL, NULL, NULL, NULL, NULL, '36c50856-8b1c-451e-a1c2-88d4515364a1', 'ef726be6-7c6a-4d6e-bf70-2fa0580913c8', '36c50856-8b1c-451e-a1c2-88d4515364a1', 'group', '2026-11-23 11:10:35.388578+00'),
	('3dfc653b-21f4-4977-8320-9371042ff798', 'p', 'decided', 'anonymous', '{}', NULL, true, 1, 1, 12, '2026-11-23 11:10:34.817351+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '2026-11-23 11:10:34.817351+00'),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 'p', 'done', 'anonymous', '{}', NULL, true, 2, 3, 16, '2026-11-23 11:10:34.524083+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '2026-11-23 11:10:34.683552+00'),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 'p', 'held', 'anonymous', '{}', NULL, true, 1, 1, 4, '2026-11-23 11:10:35.292445+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '2026-11-23 11:10:35.292445+00'),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 'p', 'secret', 'anonymous', '{}', NULL, true, 1, 1, 6, '2026-11-23 11:10:35.341145+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '2026-11-23 11:10:35.341145+00');

INSERT INTO public.subscription VALUES
	('ebce832c-03df-45bb-aab3-d68515449fc7', 'p', 'webhook', 'http://127.0.0.1:9/', '{}', '{}', '{}', '{}', '{}', true, '[{"$sealed:385784d47ce11698": "aLTJQ+2hF6r8vFRGo69rj0Kkf91uHAdHi49RZijkHseaS23HcHXluffvAv1tlCvNHNFM0MB4TQGE/Id8+4JrYpL5158="}]', NULL, 0, 'enabled', '', 'api', '2026-11-23 11:10:34.476788+00', '{}', 1, NULL, NULL, true);

INSERT INTO public.template VALUES
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 1, 'No description', '{"resources": {"a": {"type": "OS::Heat::TestResource", "properties": {"value": "one"}}}, "heat_template_version": "2018-08-31"}', '{}', '{}', '{}', '{"OS::stack_id": "72e0d2ac-d534-44a3-9cd6-622628f6caa4", "OS::project_id": "p", "OS::stack_name": "done"}', '{}', '[]', 'anonymous', '2026-11-23 11:10:34.524083+00', NULL),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 2, 'No description', '{"resources": {"a": {"type": "OS::Heat::TestResource", "properties": {"value": "two"}}, "more": {"type": "OS::Heat::TestResource", "depends_on": "a", "properties": {"value": "three"}}}, "heat_template_version": "2018-08-31"}', '{}', '{}', '{}', '{"OS::stack_id": "72e0d2ac-d534-44a3-9cd6-622628f6caa4", "OS::project_id": "p", "OS::stack_name": "done"}', '{}', '[]', 'anonymous', '2026-11-23 11:10:34.602702+00', NULL),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 1, 'No description', '{"resources": {"a": {"type": "OS::Heat::TestResource", "properties": {"value": "g"}, "deletion_policy": "Snapshot"}}, "heat_template_version": "2018-08-31"}', '{}', '{}', '{}', '{"OS::stack_id": "c71fa655-9fd4-4e96-9cec-f2d37dde850f", "OS::project_id": "p", "OS::stack_name": "gone"}', '{}', '[]', 'anonymous', '2026-11-23 11:10:34.733855+00', NULL),
	('3dfc653b-21f4-4977-8320-9371042ff798', 1, 'No description', '{"resources": {"a": {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}, "b": {"type": "OS::Heat::TestResource", "depends_on": "a", "properties": {"value": "x"}}, "c": {"type": "OS::Heat::TestResource", "depends_on": "b", "properties": {"value": "x"}}}, "heat_template_version": "2018-08-31"}', '{"hooks": [{"at": "b", "on": ["pre-create", "post-create"], "timeout": "87600h"}]}', '{}', '{}', '{"OS::stack_id": "3dfc653b-21f4-4977-8320-9371042ff798", "OS::project_id": "p", "OS::stack_name": "decided"}', '{}', '[]', 'anonymous', '2026-11-23 11:10:34.817351+00', NULL),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 1, 'No description', '{"resources": {"a": {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}, "b": {"type": "OS::Heat::TestResource", "depends_on": "a", "properties": {"value": "x"}}, "c": {"type": "OS::Heat::TestResource", "depends_on": "b", "properties": {"value": "x"}}}, "heat_template_version": "2018-08-31"}', '{"hooks": [{"at": "b", "on": ["pre-create", "post-create"], "timeout": "87600h"}]}', '{}', '{}', '{"OS::stack_id": "da8b90cb-268b-449f-8b43-46f5d91c4e6e", "OS::project_id": "p", "OS::stack_name": "held"}', '{}', '[]', 'anonymous', '2026-11-23 11:10:35.292445+00', NULL),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 1, 'No description', '{"outputs": {"plain": {"value": {"get_resource": "keeper"}}}, "resources": {"gate": {"type": "OS::Heat::TestResource", "depends_on": "keeper", "properties": {"value": {"get_param": "password"}}}, "keeper": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "password"}}}, "reader": {"type": "OS::Heat::Value", "properties": {"value": {"list_join": ["-", [{"get_attr": ["keeper", "output"]}, "x"]]}}}}, "parameters": {"password": {"type": "string", "hidden": true}}, "heat_template_version": "2018-08-31"}', '{"hooks": [{"at": "gate", "on": ["pre-create"], "timeout": "87600h"}], "parameters": {"$sealed:385784d47ce11698": "7IcfxSotykbxZCJhkGDknZw8x79faoSsMgR42DzX2bQu0WerlpnRWLPacydY7wPgAav1dkDp"}}', '{"$sealed:385784d47ce11698": "H+Hnh4yT15tNvqukBEdmtNU0/UyU3dcbFuqzijUg"}', '{"$sealed:385784d47ce11698": "H+Hnh4yT15tNvqukBEdmtNU0/UyU3dcbFuqzijUg"}', '{"password": "******", "OS::stack_id": "06453e4d-e965-4578-be20-6ff5ac456e25", "OS::project_id": "p", "OS::stack_name": "secret"}', '{password}', '{"$sealed:385784d47ce11698": "rTWnHCA6DXvloWjvr7qMAxj5RVwZQwnPScNVPeXJV0ThPLTS/ShFUkN7MPEU+3ire4Gg50m+WdoL0Cgaw3FqOvxjhLNTzkfd+/XkIN5BbWHYpWbrDOb83sg6CSjvhF3r7l7gsWjKpEvlcu7KyvFrDplNuPVfLWZ8+iGWkl3j"}', 'anonymous', '2026-11-23 11:10:35.341145+00', NULL),
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 1, 'No description', '{"resources": {"group": {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": {"type": "OS::Heat::TestResource", "properties": {"value": "m"}}}}}, "heat_template_version": "2018-08-31"}', '{"hooks": [{"at": "group/*", "on": ["pre-create"], "timeout": "87600h"}]}', '{}', '{}', '{"OS::stack_id": "36c50856-8b1c-451e-a1c2-88d4515364a1", "OS::project_id": "p", "OS::stack_name": "outer"}', '{}', '[]', 'anonymous', '2026-11-23 11:10:35.371495+00', NULL),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 1, 'No description', '{"resources": {"0": {"type": "OS::Heat::TestResource", "properties": {"value": "m"}}, "1": {"type": "OS::Heat::TestResource", "properties": {"value": "m"}}}, "parameters": {"group": {"type": "json", "default": {}}, "literals": {"type": "json", "hidden": false, "default": {}}}, "heat_template_version": "2015-04-30"}', '{"hooks": [{"at": "*", "on": ["pre-create"], "timeout": "87600h"}]}', '{}', '{"group": {"placed": {}, "removed": []}, "literals": {}}', '{"group": "{\"removed\": [], \"placed\": {}}", "literals": "{}", "OS::stack_id": "67b685bd-0915-4aed-8749-317ee24b80fa", "OS::project_id": "p", "OS::stack_name": "outer-group-317ee24b80fa"}', '{}', '[]', 'anonymous', '2026-11-23 11:10:35.388578+00', NULL);

INSERT INTO public.traversal VALUES
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 1, 'CREATE', 1, 'complete', 'Stack CREATE completed successfully', '0fc66218b7ed63a56cb7a095b78fa285c952857f020eb2d863103337b76b3810', 0, NULL, 'anonymous', '2026-11-23 11:10:34.524083+00', '2026-11-23 11:10:34.568556+00', 'p', 0, NULL, '00:00:00.027405', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '{}'),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 2, 'UPDATE', 2, 'complete', 'Stack UPDATE completed successfully', '3918cc4c6fd79ba63faed0d270de5bf181db7764d08d9669055113b6d0c0bdcb', 0, NULL, 'anonymous', '2026-11-23 11:10:34.602702+00', '2026-11-23 11:10:34.654674+00', 'p', 0, NULL, '00:00:00.021989', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '{}'),
	('72e0d2ac-d534-44a3-9cd6-622628f6caa4', 3, 'SNAPSHOT', 2, 'complete', 'Stack SNAPSHOT completed successfully', 'a455f23a969eb5e66bac015bf1b7e07bae38754c19d3761a293693ec7b064961', 0, NULL, 'anonymous', '2026-11-23 11:10:34.683552+00', '2026-11-23 11:10:34.721001+00', 'p', 0, NULL, '00:00:00.016007', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '{}'),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 1, 'CREATE', 1, 'complete', 'Stack CREATE completed successfully', '9cd4e61d68558d9b25145c5e29014d6b8b8193a94b03b7d4f2f48fd5d2072248', 0, NULL, 'anonymous', '2026-11-23 11:10:34.733855+00', '2026-11-23 11:10:34.761426+00', 'p', 0, NULL, '00:00:00.005685', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '{}'),
	('c71fa655-9fd4-4e96-9cec-f2d37dde850f', 2, 'DELETE', 1, 'complete', 'Stack DELETE completed successfully', '4df567bf5ad6f6d24d9670d9dec221cdd6e41af2aa98064efd164785ecb476d9', 0, NULL, 'anonymous', '2026-11-23 11:10:34.793917+00', '2026-11-23 11:10:34.842104+00', 'p', 0, NULL, '00:00:00.027161', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '{}'),
	('67b685bd-0915-4aed-8749-317ee24b80fa', 1, 'CREATE', 1, 'running', 'Stack CREATE started', '0a7078fc374ae83f2cc85733ecc5e7c96359d17139ce80ed2bd671e53e825a2f', 2, NULL, 'anonymous', '2026-11-23 11:10:35.388578+00', NULL, 'p', 2, NULL, '00:00:00.01846', NULL, '{}', NULL, false, NULL, NULL, NULL, 1, 0, 'ad12888d-5dae-4e4f-9cb1-abd71eb4b25d', 'members-1', '[]', '{}'),
	('3dfc653b-21f4-4977-8320-9371042ff798', 1, 'CREATE', 1, 'complete', 'Stack CREATE completed successfully', '3fd35480ea304740c137a52c957c745505aaaffd767ea69f89f9c67038c766c6', 0, NULL, 'anonymous', '2026-11-23 11:10:34.817351+00', '2026-11-23 11:10:35.094858+00', 'p', 0, NULL, '00:00:00.048243', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '{}'),
	('da8b90cb-268b-449f-8b43-46f5d91c4e6e', 1, 'CREATE', 1, 'running', 'Stack CREATE started', '3fd35480ea304740c137a52c957c745505aaaffd767ea69f89f9c67038c766c6', 1, NULL, 'anonymous', '2026-11-23 11:10:35.292445+00', NULL, 'p', 1, NULL, '00:00:00.012814', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '{}'),
	('06453e4d-e965-4578-be20-6ff5ac456e25', 1, 'CREATE', 1, 'running', 'Stack CREATE started', '61188a93dc0404b8cb7d4e6e65cbe6eebe6620889e7a3a5ed9f53c30eae330bc', 1, NULL, 'anonymous', '2026-11-23 11:10:35.341145+00', NULL, 'p', 1, NULL, '00:00:00.012971', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '{}'),
	('36c50856-8b1c-451e-a1c2-88d4515364a1', 1, 'CREATE', 1, 'running', 'Stack CREATE started', '79356333c5a0e3576d486866881318c5e3d2daeee50499a62426bb3b97e4a5f9', 1, NULL, 'anonymous', '2026-11-23 11:10:35.371495+00', NULL, 'p', 1, NULL, '00:00:00.016985', NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[{"rule": {"point": "pre-create", "timeout": 315360000.0}, "asked": false, "pattern": "group/*"}]', '{}');

SELECT pg_catalog.setval('public.outbox_id_seq', 47, true);

ALTER TABLE ONLY public.breakpoint
    ADD CONSTRAINT breakpoint_pkey PRIMARY KEY (stack_id, id);

ALTER TABLE ONLY public.credential
    ADD CONSTRAINT credential_pkey PRIMARY KEY (stack_id, traversal);

ALTER TABLE ONLY public.decision
    ADD CONSTRAINT decision_pkey PRIMARY KEY (stack_id, number);

ALTER TABLE ONLY public.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (stack_id, sequence, subscription_id);

ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (stack_id, sequence);

ALTER TABLE ONLY public.hook
    ADD CONSTRAINT hook_pkey PRIMARY KEY (stack_id, id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (project, key);

ALTER TABLE ONLY public.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY public.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (stack_id, traversal, id);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_position_key UNIQUE ("position");

ALTER TABLE ONLY public.past_graph
    ADD CONSTRAINT past_graph_pkey PRIMARY KEY (stack_id, traversal);

ALTER TABLE ONLY public.process
    ADD CONSTRAINT process_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.publishing
    ADD CONSTRAINT publishing_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY public.resource
    ADD CONSTRAINT resource_pkey PRIMARY KEY (stack_id, id);

ALTER TABLE ONLY public.resource_signal
    ADD CONSTRAINT resource_signal_pkey PRIMARY KEY (stack_id, resource_id, number);

ALTER TABLE ONLY public.resource_snapshot
    ADD CONSTRAINT resource_snapshot_pkey PRIMARY KEY (stack_id, traversal, resource_id);

ALTER TABLE ONLY public.routines
    ADD CONSTRAINT routines_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY public.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (stack_id, id);

ALTER TABLE ONLY public.software_config
    ADD CONSTRAINT software_config_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.software_deployment
    ADD CONSTRAINT software_deployment_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.stack
    ADD CONSTRAINT stack_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.stream_floor
    ADD CONSTRAINT stream_floor_pkey PRIMARY KEY (project);

ALTER TABLE ONLY public.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.template
    ADD CONSTRAINT template_pkey PRIMARY KEY (stack_id, version);

ALTER TABLE ONLY public.token
    ADD CONSTRAINT token_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.traversal
    ADD CONSTRAINT traversal_pkey PRIMARY KEY (stack_id, number);

CREATE INDEX decision_by_hook ON public.decision USING btree (stack_id, hook_id) WHERE (hook_id IS NOT NULL);

CREATE INDEX decision_by_project ON public.decision USING btree (project, at, stack_id, number);

CREATE INDEX decision_first ON public.decision USING btree (at) WHERE (number = 1);

CREATE INDEX delivery_blocked ON public.delivery USING btree (subscription_id, stack_id, sequence) WHERE ((state = 'pending'::text) AND (next_at IS NULL));

CREATE INDEX delivery_by_hook ON public.delivery USING btree (stack_id, hook_id) WHERE (hook_id IS NOT NULL);

CREATE UNIQUE INDEX delivery_by_id ON public.delivery USING btree (id);

CREATE INDEX delivery_by_subscription ON public.delivery USING btree (subscription_id, created_at, id);

CREATE INDEX delivery_due ON public.delivery USING btree (urgent, subscription_id, next_at) WHERE ((state = 'pending'::text) AND (next_at IS NOT NULL));

CREATE INDEX delivery_notice ON public.delivery USING btree (subscription_id) WHERE ((state = 'pending'::text) AND (hook_id IS NOT NULL));

CREATE INDEX delivery_settled ON public.delivery USING btree (settled_at) WHERE (settled_at IS NOT NULL);

CREATE INDEX delivery_under_way ON public.delivery USING btree (subscription_id, stack_id, sequence) WHERE ((state = 'pending'::text) AND (next_at IS NOT NULL));

CREATE INDEX event_by_id ON public.event USING btree (stack_id, id);

CREATE INDEX event_started ON public.event USING btree (stack_id, sequence) WHERE (type ~~ 'headgate.stack.%.started'::text);

CREATE UNIQUE INDEX hook_by_id ON public.hook USING btree (id);

CREATE INDEX hook_data ON public.hook USING btree (stack_id, traversal) WHERE (data IS NOT NULL);

CREATE INDEX hook_dry ON public.hook USING btree (stack_id, traversal) WHERE ((rule ->> 'dry'::text) = 'true'::text);

CREATE INDEX hook_due ON public.hook USING btree (deadline) WHERE (state = 'waiting'::text);

CREATE INDEX hook_inbox ON public.hook USING btree (project, opened_at, id);

CREATE INDEX hook_settled ON public.hook USING btree (decided_at) WHERE (state <> 'waiting'::text);

CREATE INDEX hook_waiting ON public.hook USING btree (stack_id, traversal) WHERE (state = 'waiting'::text);

CREATE INDEX hook_waiting_by_project ON public.hook USING btree (project) WHERE (state = 'waiting'::text);

CREATE INDEX hook_wakes ON public.hook USING btree (wake_at) WHERE ((state = 'waiting'::text) AND (wake_at IS NOT NULL));

CREATE INDEX idempotency_by_age ON public.idempotency USING btree (created_at);

CREATE INDEX node_due ON public.node USING btree (stack_id, traversal, wake_at) WHERE (wake_at IS NOT NULL);

CREATE INDEX outbox_by_project ON public.outbox USING btree (project, "position") WHERE ("position" IS NOT NULL);

CREATE INDEX outbox_unpublished ON public.outbox USING btree (id) WHERE ("position" IS NULL);

CREATE INDEX resource_by_name ON public.resource USING btree (name, stack_id);

CREATE INDEX software_config_by_project ON public.software_config USING btree (project, created_at, id);

CREATE INDEX software_deployment_by_config ON public.software_deployment USING btree (config_id);

CREATE INDEX software_deployment_by_project ON public.software_deployment USING btree (project, created_at, id);

CREATE INDEX software_deployment_by_server ON public.software_deployment USING btree (project, server_id);

CREATE INDEX stack_by_age ON public.stack USING btree (project, created_at, id);

CREATE INDEX stack_by_change ON public.stack USING btree (project, changed_at, id) WHERE ((parent_id IS NULL) AND (deleted_at IS NULL));

CREATE UNIQUE INDEX stack_by_name ON public.stack USING btree (project, name) WHERE (deleted_at IS NULL);

CREATE INDEX stack_by_parent ON public.stack USING btree (parent_id, parent_resource) WHERE (parent_id IS NOT NULL);

CREATE INDEX stack_by_root ON public.stack USING btree (root_id) WHERE (root_id IS NOT NULL);

CREATE INDEX stack_deleted ON public.stack USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);

CREATE INDEX subscription_by_project ON public.subscription USING btree (project, created_at, id);

CREATE INDEX subscription_by_stack ON public.subscription USING btree (stack_id) WHERE (stack_id IS NOT NULL);

CREATE INDEX token_by_project ON public.token USING btree (project, created_at, id);

CREATE UNIQUE INDEX token_password ON public.token USING btree (project, name) WHERE ((kind = 'password'::text) AND (revoked_at IS NULL));

CREATE INDEX traversal_checks ON public.traversal USING btree (project, started_at) WHERE (action = 'CHECK'::text);

CREATE INDEX traversal_due ON public.traversal USING btree (wake_at) WHERE (wake_at IS NOT NULL);

CREATE INDEX traversal_ended ON public.traversal USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX traversal_turn ON public.traversal USING btree (project, wake_at) WHERE (wake_at IS NOT NULL);

CREATE INDEX traversal_watched ON public.traversal USING btree (ended_at) WHERE ((watched IS NOT NULL) AND (ended_at IS NOT NULL));

CREATE TRIGGER decision_of_project BEFORE INSERT ON public.decision FOR EACH ROW WHEN ((new.project IS NULL)) EXECUTE FUNCTION public.decision_of_project();

ALTER TABLE ONLY public.software_deployment
    ADD CONSTRAINT software_deployment_config_id_fkey FOREIGN KEY (config_id) REFERENCES public.software_config(id);
