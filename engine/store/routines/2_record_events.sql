-- Numbers, stores and queues events. The caller has locked the stacks' rows. Events of stacks that were
-- purged are ignored. Null and an empty array are no events.
drop function if exists record_events(event_draft[]);

create function record_events(p_events event_draft[]) returns void
language plpgsql
-- Planned once for each connection, for searches by key: see `advance`.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_project text;
    v_traceparent text;
    v_last bigint;
    v_count integer := coalesce(cardinality(p_events), 0);
    v_stack uuid := p_events[1].stack_id;
begin
    if v_count = 0 then
        return;
    end if;
    if v_stack = all (select d.stack_id from unnest(p_events) d) then
        update stack s set sequence = s.sequence + v_count where s.id = v_stack
        returning s.project, s.traceparent, s.sequence into v_project, v_traceparent, v_last;
        if v_last is null then
            return;
        end if;
        insert into outbox (stack_id, project, first, last)
        values (v_stack, v_project, v_last - v_count + 1, v_last);
        insert into event (stack_id, sequence, id, type, time, resource_name, resource_type,
                           physical_id, action, status, reason, data, traceparent)
        select d.stack_id, v_last - v_count + d.ordinality,
               new_event_id(v_last - v_count + d.ordinality), d.type, now(), d.resource_name,
               d.resource_type, d.physical_id, d.action, d.status, d.reason, d.data, v_traceparent
          from unnest(p_events) with ordinality d;
        perform pg_notify('headgate_outbox', '');
        return;
    end if;
    with draft as (
        select d.*, row_number() over (partition by d.stack_id order by d.ordinality) as nth
          from unnest(p_events) with ordinality d
    ), numbered as (
        update stack s set sequence = s.sequence + d.count
          from (select stack_id, count(*) as count from unnest(p_events) group by stack_id) d
         where s.id = d.stack_id
        returning s.id, s.project, s.traceparent, s.sequence - d.count as base, s.sequence as last
    ), queued as (
        insert into outbox (stack_id, project, first, last)
        select id, project, base + 1, last from numbered
    )
    insert into event (stack_id, sequence, id, type, time, resource_name, resource_type,
                       physical_id, action, status, reason, data, traceparent)
    select d.stack_id, n.base + d.nth, new_event_id(n.base + d.nth), d.type, now(), d.resource_name,
           d.resource_type, d.physical_id, d.action, d.status, d.reason, d.data, n.traceparent
      from draft d join numbered n on n.id = d.stack_id;
    perform pg_notify('headgate_outbox', '');
end;
$$;
