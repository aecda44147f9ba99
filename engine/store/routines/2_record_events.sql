-- Numbers, stores and queues events. The caller has locked the stacks' rows.
create or replace function record_events(p_events event_draft[]) returns void
language sql as $$
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
