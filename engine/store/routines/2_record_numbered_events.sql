-- Stores and queues events that belong to no stack, but to a subscription, or to the audit log or the
-- usage of a project. p_streams: the IDs of these, in place of a stack's. p_numbers: the sequence
-- numbers, which the caller has assigned in the row of the stream, and which follow each other.
-- Null: no events.
create or replace function record_numbered_events(p_streams uuid[], p_projects text[],
                                                  p_numbers bigint[], p_types text[],
                                                  p_reasons text[], p_data jsonb[])
returns void
language plpgsql as $$
begin
    if p_streams is null then
        return;
    end if;
    insert into outbox (stack_id, project, first, last)
    select e.stream, e.project, min(e.number), max(e.number)
      from unnest(p_streams, p_projects, p_numbers) e (stream, project, number)
     group by e.stream, e.project;
    insert into event (stack_id, sequence, id, type, time, reason, data)
    select e.stream, e.number, new_event_id(e.number), e.type, now(), e.reason, e.data
      from unnest(p_streams, p_numbers, p_types, p_reasons, p_data)
           e (stream, number, type, reason, data);
    perform pg_notify('headgate_outbox', '');
end;
$$;
