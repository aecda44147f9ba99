-- The heart of the store: apply what the node machine decided, let go what waited for it, and
-- claim what became ready, for any number of nodes and stacks, in one call and one transaction.
--
-- Every writer of a stack's nodes, hooks or events first locks the stack's row, stacks in the
-- order of their ids; so commits to one stack are serial, and different stacks never touch.

-- p_steps: [{stack_id, traversal, node, claim, state, phase, operation, passed, wake_at, progress,
--            attempts, reason, confirmed, awaits, resource, kept, hook, events}], one for each node that
--            moved.
-- A step whose claim is no longer the node's is left out: somebody else has the node now.
-- p_after: the project that was served last; the others have their turn first.
-- Returns what p_worker is to carry on with: nodes it keeps or has newly claimed ("node"),
-- traversals of which nothing is left or whose time is over ("end"), and the project that was
-- served last this time ("turn").
drop function if exists advance(text, interval, integer, jsonb);
drop function if exists advance(text, interval, integer, jsonb, text);

create function advance(p_worker text, p_lease interval, p_want integer, p_steps jsonb,
                        p_after text)
returns table (
    kind text, stack_id uuid, project text, stack_name text, traversal integer, node integer,
    claim integer, resource_id uuid, replacement_id uuid, name text, type text, operation text,
    direction text, phase text, definition jsonb, rules jsonb, passed text[], operation_key uuid,
    progress jsonb, attempts integer, started boolean, dependents text[],
    row_type text, action text, status text, physical_id text, reference jsonb, properties jsonb,
    shown jsonb,
    attributes jsonb, data jsonb, metadata jsonb, digest text, broken boolean, protected boolean,
    deletion_policy text, replaced_by uuid, inputs jsonb, now timestamptz, pace text,
    confirmed jsonb, patched jsonb, answers jsonb, credential bytea,
    signals jsonb, traceparent text, path text, traversal_state text, awaited text
)
language plpgsql
-- Every look-up here goes by key. Planning anew for each call costs more than carrying it out; and
-- a plan made while the tables are young must not be one that scans them.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
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
$$;
