-- Applies the decisions of the node machine: updates nodes and resources, and opens hooks. p_steps: see
-- `advance`; the stacks' rows are locked. p_changed: nodes that changed their state. p_events: events to
-- record. p_refused: steps that were not written.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists apply_transitions(text, interval, timestamptz, jsonb);

create function apply_transitions(p_worker text, p_lease interval, p_now timestamptz, p_steps jsonb,
                                  out p_changed changed_node[], out p_events event_draft[],
                                  out p_refused refused_step[])
language plpgsql as $$
declare
    v_replaced jsonb;
begin
    with input as (
        select * from jsonb_to_recordset(p_steps) as s (
            stack_id uuid, traversal integer, node integer, claim integer, state text,
            phase text, operation text, breakpoints_hit text[], wake_at timestamptz, progress jsonb,
            attempts integer, reason text, step_mode text, confirmation jsonb,
            signal_resource_id uuid, resource jsonb, snapshot jsonb, hook jsonb, events jsonb,
            run integer, run_size integer, operation_key uuid)
    ), matched as materialized (
        select s.stack_id, s.traversal, s.node, s.claim, s.operation, s.breakpoints_hit, s.phase,
               s.state,
               case when is_called_again(n.call_again, s.state, s.phase) then p_now
                    else s.wake_at end as wake_at,
               s.progress, s.attempts, s.reason, s.signal_resource_id, s.resource, s.snapshot, s.events,
               s.hook,
               nullif(s.confirmation, 'null') as confirmation,
               is_refused(t.state, t.step_mode, s.step_mode, s.state, s.hook is not null) as refused,
               has_runs(t.state, t.step_mode)
               and t.step_mode is not distinct from s.step_mode as may_run,
               t.state as traversal_state, t.reason as traversal_reason,
               t.step_mode as current_mode,
               t.requested_by, t.requested_by_id, s.run, s.run_size, s.operation_key,
               s.run is distinct from s.node and s.run is not null as later,
               n.dependents, n.successor, n.requires, n.was_blocked, n.started_at,
               st.traversal as current_traversal,
               st.project, nullif(n.label, '') as label
          from input s
         -- One search by key for each step: a plain join can read whole stacks.
         cross join lateral (
               select n.dependents, n.successor, n.requires, n.call_again, n.label, n.started_at,
                      n.state = 'parked' and n.wake_at is null as was_blocked
                 from node n
                where n.stack_id = s.stack_id and n.traversal = s.traversal
                  and n.id = s.node and n.claim = s.claim
                  and case when s.run is null or s.run = s.node
                           then n.state in ('ready', 'running', 'parked')
                           else is_later_run_node(n.operation, n.phase, n.rules, n.state,
                                                  n.pending_dependencies) end offset 0) n
         cross join lateral (
               select t.state, t.reason, t.step_mode, t.requested_by, t.requested_by_id
                 from traversal t
                where t.stack_id = s.stack_id and t.number = s.traversal offset 0) t
          join stack st on st.id = s.stack_id
    ), complete_run as materialized (
        -- The later nodes of a run are written all or not at all: none, if one has changed since it
        -- was read, or the first one.
        select stack_id, traversal, run from matched
         where run is not null and not refused and state = 'done' and (may_run or not later)
         group by stack_id, traversal, run having count(*) = max(run_size)
    ), step as materialized (
        select * from matched m
         where not refused
           and (not later or exists (select from complete_run c
                                      where c.stack_id = m.stack_id and c.traversal = m.traversal
                                        and c.run = m.run))
    ), updated_node as (
        update node n
           set state = s.state, phase = s.phase, operation = s.operation,
               breakpoints_hit = s.breakpoints_hit,
               claim = n.claim + 1, -- the same step is not applied twice
               progress = s.progress, attempts = s.attempts, reason = s.reason,
               confirmation = s.confirmation, signal_resource_id = s.signal_resource_id,
               call_again = false,
               pending_dependencies = case when s.later then 0 else n.pending_dependencies end,
               expired_leases = 0, restarted = false,
               restarts = case when s.operation <> n.operation then 0 else n.restarts end,
               wake_at = case s.state when 'running' then p_now + p_lease
                                      when 'ready' then p_now
                                      else s.wake_at end,
               worker = case when s.state = 'running' then p_worker end,
               started_at = case when s.later
                                   or s.state = 'running' and starts_operation(s.phase, n.started_at)
                                 then p_now else n.started_at end,
               ended_at = case when is_ended(s.state) then p_now end,
               operation_key = coalesce(s.operation_key,
                                        operation_key_after(n.operation_key, n.operation,
                                                            s.operation, s.phase))
          from step s
         where n.stack_id = s.stack_id and n.traversal = s.traversal and n.id = s.node
    ), updated_resource as (
        update resource r
           set action = s.resource ->> 'action', status = s.resource ->> 'status',
               reason = coalesce(s.resource ->> 'reason', r.reason),
               type = s.resource ->> 'type',
               physical_id = s.resource ->> 'physical_id',
               reference = nullif(s.resource -> 'reference', 'null'),
               properties = s.resource -> 'properties',
               masked_properties = nullif(s.resource -> 'masked_properties', 'null'),
               secret_attributes = nullif(s.resource -> 'secret_attributes', 'null'),
               attributes = s.resource -> 'attributes',
               data = s.resource -> 'data', metadata = s.resource -> 'metadata',
               digest = coalesce(s.resource ->> 'digest', r.digest),
               bytes = coalesce((s.resource ->> 'bytes')::integer, r.bytes),
               tainted = (s.resource ->> 'tainted')::boolean,
               deletion_policy = s.resource ->> 'deletion_policy',
               lifecycle = nullif(s.resource -> 'lifecycle', 'null'), label = s.label,
               requires = case when s.requires is null then r.requires else
                   array(select q.id from unnest(s.requires) required (name)
                          cross join lateral (
                                select q.id from resource q
                                 where q.name = required.name and q.stack_id = s.stack_id
                                   and q.replaced_by is null offset 0) q) end,
               marked_at = marked_after(r.marked_at, s.started_at), updated_at = p_now
          from step s
         where s.resource ->> 'write' = 'update' and r.stack_id = s.stack_id
           and r.id = (s.resource ->> 'id')::uuid
    ), failed_resource as (
        -- The worker wrote a part of the row; the rest stays as it is.
        update resource r
           set action = s.resource ->> 'action', status = 'FAILED',
               reason = s.resource ->> 'reason',
               physical_id = coalesce(s.resource ->> 'physical_id', r.physical_id),
               tainted = r.tainted or (s.resource ->> 'tainted')::boolean,
               marked_at = marked_after(r.marked_at, s.started_at), updated_at = p_now
          from step s
         where s.resource ->> 'write' = 'fail' and r.stack_id = s.stack_id
           and r.id = (s.resource ->> 'id')::uuid
    ), deleted_resource as (
        delete from resource r using step s
         where s.resource ->> 'write' = 'remove' and r.stack_id = s.stack_id
           and r.id = (s.resource ->> 'id')::uuid
    ), deleted_signal as (
        delete from resource_signal g using step s
         where s.resource ->> 'write' = 'remove' and g.stack_id = s.stack_id
           and g.resource_id = (s.resource ->> 'id')::uuid
    ), replaced_resource as (
        -- "leave": the replacement failed and its row stays; the old one remains current.
        update resource r
           set replaced_by = case s.resource ->> 'write' when 'insert'
                                  then (s.resource ->> 'id')::uuid end,
               action = case s.resource ->> 'write' when 'leave' then 'UPDATE' else r.action end,
               status = case s.resource ->> 'write' when 'leave' then 'FAILED' else r.status end,
               reason = case s.resource ->> 'write' when 'leave'
                             then s.resource ->> 'reason' else r.reason end,
               marked_at = marked_after(r.marked_at, s.started_at), updated_at = p_now
          from step s
         where s.resource ->> 'write' in ('insert', 'leave') and r.stack_id = s.stack_id
           and r.id = (s.resource ->> 'replaces')::uuid
    ), inserted_resource as (
        insert into resource (stack_id, id, name, type, action, status, reason, physical_id,
                              reference, properties, masked_properties, secret_attributes,
                              attributes, data, metadata, digest, requires, rules, tainted,
                              replaced_by, deletion_policy, bytes, lifecycle, label)
        select s.stack_id, (s.resource ->> 'id')::uuid, s.resource ->> 'name',
               s.resource ->> 'type', s.resource ->> 'action', s.resource ->> 'status',
               s.resource ->> 'reason', s.resource ->> 'physical_id',
               nullif(s.resource -> 'reference', 'null'), s.resource -> 'properties',
               nullif(s.resource -> 'masked_properties', 'null'),
               nullif(s.resource -> 'secret_attributes', 'null'),
               s.resource -> 'attributes', s.resource -> 'data', s.resource -> 'metadata',
               s.resource ->> 'digest',
               array(select q.id from unnest(s.requires) required (name)
                      cross join lateral (
                            select q.id from resource q
                             where q.name = required.name and q.stack_id = s.stack_id
                               and q.replaced_by is null offset 0) q),
               -- The rules that stay with a resource are in the row that it replaces.
               case when s.resource ->> 'replaces' is null
                    then nullif(s.resource -> 'rules', 'null'::jsonb)
                    else (select q.rules from resource q
                           where q.stack_id = s.stack_id
                             and q.id = (s.resource ->> 'replaces')::uuid) end,
               (s.resource ->> 'tainted')::boolean,
               (s.resource ->> 'replaced_by')::uuid,
               s.resource ->> 'deletion_policy',
               coalesce((s.resource ->> 'bytes')::integer, 0),
               nullif(s.resource -> 'lifecycle', 'null'), s.label
          from step s where s.resource ->> 'write' in ('insert', 'leave')
    ), inserted_snapshot as (
        insert into resource_snapshot (stack_id, traversal, resource_id, name, type,
                                       physical_id, properties, metadata, data, overrides)
        select s.stack_id, s.traversal, k.id, k.name, k.type, k.physical_id, k.properties,
               k.metadata, k.data, k.overrides
          from step s cross join jsonb_to_record(coalesce(s.snapshot, '{}')) as k (
               id uuid, name text, type text, physical_id text, properties jsonb,
               metadata jsonb, data jsonb, overrides jsonb)
         where s.snapshot is not null
    ), inserted_hook as (
        insert into hook (stack_id, id, project, traversal, node, resource_name, path, point,
                          mode, state, on_timeout, timeout, notification, digest, opened_at,
                          deadline, decision, decided_by, channel, decided_at, rule,
                          requested_by, requested_by_id, wake_at)
        select s.stack_id, h.id, s.project, s.traversal, s.node, h.resource_name, h.path,
               h.point, h.mode, h.state, h.on_timeout, make_interval(secs => h.timeout),
               -- The notification contains the answers to the node's earlier hooks.
               case when a.answers is null then h.notification
                    else h.notification || jsonb_build_object('answers', a.answers) end,
               h.digest, p_now, first_deadline(make_interval(secs => h.timeout), p_now),
               h.decision, case when h.state <> 'waiting' then 'rule' end,
               case when h.state <> 'waiting' then 'rule' end,
               case when h.state <> 'waiting' then p_now end,
               h.rule, s.requested_by, s.requested_by_id,
               p_now + make_interval(secs => h.wake_after)
          from step s
         cross join jsonb_to_recordset(s.hook) as h (
               id uuid, resource_name text, path text, point text, mode text, state text,
               on_timeout text, timeout double precision, notification jsonb, digest text,
               decision text, rule jsonb, wake_after double precision)
         cross join lateral (
               select jsonb_object_agg(o.path || ':' || o.point, o.data) as answers
                 from hook o
                where o.stack_id = s.stack_id and o.traversal = s.traversal
                  and o.data is not null) a
    ), event as (
        select row (s.stack_id, e.type, e.resource_name, e.resource_type, e.physical_id,
                    e.action, e.status, e.reason,
                    e.data || jsonb_build_object('traversal', s.traversal, 'node', s.node)
                   )::event_draft as draft
          from step s
         cross join jsonb_to_recordset(s.events) as e (
               type text, resource_name text, resource_type text, physical_id text,
               action text, status text, reason text, data jsonb)
    )
    select coalesce(array_agg(row (s.stack_id, s.traversal, s.node, s.state, s.operation,
                                   s.was_blocked,
                                   s.state = 'parked' and s.wake_at is null, s.dependents,
                                   s.successor, s.current_traversal,
                                   case when s.resource ->> 'write' = 'insert'
                                        then (s.resource ->> 'id')::uuid end,
                                   s.later)::changed_node), '{}'),
           (select coalesce(array_agg(draft), '{}') from event),
           (select array_agg(row (r.stack_id, r.traversal, r.node, r.claim, r.traversal_state,
                                  r.traversal_reason, r.current_mode)::refused_step)
              from matched r where r.refused),
           jsonb_agg(s.resource || jsonb_build_object('stack_id', s.stack_id))
               filter (where s.resource ->> 'write' = 'remove'
                         and s.resource ->> 'replaced_by' is not null)
      into p_changed, p_events, p_refused, v_replaced
      from step s;
    -- Dependents of a resource that was replaced and is now gone depend on its replacement.
    if v_replaced is not null then
        -- One row may depend on several of them.
        with gone as materialized (
            select * from jsonb_to_recordset(v_replaced) as g (stack_id uuid, id uuid, replaced_by uuid)
        ), dependent as (
            select distinct g.stack_id, q.id
              from gone g
             cross join lateral (select stack_id, id from resource
                                  where requires @> array[g.id] and requires <> '{}' offset 0) q
             where q.stack_id = g.stack_id
        )
        update resource r
           set requires = array(select coalesce(g.replaced_by, u.id)
                                  from unnest(r.requires) with ordinality u (id, nth)
                                  left join gone g on g.id = u.id order by u.nth)
          from dependent d where r.stack_id = d.stack_id and r.id = d.id;
    end if;
end;
$$;
