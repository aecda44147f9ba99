-- Stores a change that a request starts: the row of a new stack, a version of the template, and the traversal
-- (`start_traversal`).
--
-- p_stack: columns of a new stack; null: the stack exists, and the caller has locked its row.
-- p_outbox_from, p_outbox_to: nothing is stored if the last ID of the outbox is not between them, because the
-- caller must count the stacks of the project then; null: any.
-- p_version: columns of the version of the template; null: it is stored already. The others: see
-- `start_traversal`, as p_wake_at and p_stepped.
-- p_changing: existing resources whose nodes change them, but may not run.
-- p_outcome: accepted, name_taken (the project has a stack of that name), moved (the project has left this
-- cell), or uncounted (see p_outbox_from); only the first one stores anything.
-- p_outbox: for a new stack, the last ID of the outbox before.
drop function if exists accept_change(jsonb, bigint, bigint, jsonb, jsonb, jsonb, text, jsonb, jsonb, uuid[]);

create function accept_change(p_stack jsonb, p_outbox_from bigint, p_outbox_to bigint, p_version jsonb,
                              p_traversal jsonb, p_event jsonb, p_trace text, p_rows jsonb, p_nodes jsonb,
                              p_changing uuid[],
                              out p_outcome text, out p_outbox bigint, out p_wake_at timestamptz,
                              out p_stepped boolean)
language plpgsql
-- Planned once for each connection, for searches by key: see `advance`.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_stack uuid;
    v_move text;
begin
    p_outcome := 'accepted';
    if p_stack is not null then
        p_outbox := coalesce(pg_sequence_last_value(pg_get_serial_sequence('outbox', 'id')), 0);
        if p_outbox not between p_outbox_from and p_outbox_to then
            p_outcome := 'uncounted';
            return;
        end if;
        -- A process that has not noticed the move of the project to another cell. The lock keeps a move
        -- that begins from taking the rows before this transaction has ended.
        select c.move_state into v_move from cell_project c
         where c.project = p_stack ->> 'project' for share;
        if v_move in ('taken', 'moved') then
            p_outcome := 'moved';
            return;
        end if;
        insert into stack (id, project, name, owner, tags, timeout_mins, disable_rollback,
                           private_outputs, version, traversal, traceparent, region)
        select s.id, s.project, s.name, s.owner, s.tags, s.timeout_mins, s.disable_rollback,
               s.private_outputs, s.version, s.traversal, nullif(p_trace, ''), coalesce(s.region, '')
          from jsonb_to_record(p_stack) as s (
               id uuid, project text, name text, owner text, tags text[], timeout_mins integer,
               disable_rollback boolean, private_outputs boolean, version integer, traversal integer,
               region text)
            on conflict (project, name) where deleted_at is null do nothing
        returning id into v_stack;
        if v_stack is null then
            p_outcome := 'name_taken';
            return;
        end if;
    end if;
    if p_version is not null then
        insert into template (stack_id, version, description, template, environment, files, parameters,
                              masked_parameters, hidden_parameters, outputs, requested_by, source,
                              requested_by_id, requested_by_roles, key_order, stack_outputs, sources)
        select v.stack_id, v.version, v.description, v.template, v.environment, v.files, v.parameters,
               v.masked_parameters, v.hidden_parameters, v.outputs, v.requested_by, v.source,
               v.requested_by_id, v.requested_by_roles, v.key_order, v.stack_outputs, v.sources
          from jsonb_to_record(p_version) as v (
               stack_id uuid, version integer, description text, template jsonb, environment jsonb,
               files jsonb, parameters jsonb, masked_parameters jsonb, hidden_parameters text[],
               outputs jsonb, requested_by text, source text, requested_by_id text,
               requested_by_roles text[], key_order jsonb, stack_outputs jsonb, sources uuid[]);
    end if;
    select t.p_wake_at, t.p_stepped into p_wake_at, p_stepped
      from start_traversal(p_traversal, p_event, case when p_stack is null then p_trace end, p_rows,
                           p_nodes) t;
    if p_changing <> '{}' or p_traversal -> 'out_of_date' <> '[]' then
        -- Without a digest, the next update includes them.
        update resource r set digest = ''
         where r.stack_id = (p_traversal ->> 'stack_id')::uuid
           and (r.id = any (p_changing)
                or r.replaced_by is null
                and r.name in (select jsonb_array_elements_text(p_traversal -> 'out_of_date')));
    end if;
end;
$$;
