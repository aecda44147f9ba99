"""A database with 10,000 rows in each table that grows, inserted in a few statements.

A fiftieth of the rows belongs to one large stack, and the others to small ones. A fiftieth of the
stacks, also the large one, belongs to project p, and the others to 49 projects. Some are nested in
the large one. In each table, one row of the large stack has the ID of the stack and the name "p",
so that statements find rows by any argument (tests/support/sample_arguments.py).
"""

from uuid import UUID

from engine.store.connection import Connection

#: The large stack; in the statements, lpad('1', 32, '0').
LARGE = UUID(int=1)
FILL = (
    """
    insert into stack (id, project, name, owner, version, traversal, sequence, created_at,
                       parent_id)
    select case n when 1 then lpad('1', 32, '0')::uuid else gen_random_uuid() end,
           case n % 50 when 1 then 'p' else 'q' || n % 50 end, 's' || n, 'o', 1, 1, 1,
           now() - n * interval '1 second',
           case when n % 500 = 51 then lpad('1', 32, '0')::uuid end
      from generate_series(1, 10000) n
    """,
    """
    insert into template (stack_id, version, description, template, environment, files,
                          parameters, masked_parameters, hidden_parameters, outputs, requested_by)
    select id, 1, '', '{}', '{}', '{}', '{}', '{}', '{}', '[]', 'o' from stack
    """,
    """
    insert into traversal (stack_id, number, project, action, version, state, reason, digest,
                           active_nodes, requested_by, wake_at, ended_at, labelled)
    select id, 1, project, 'CREATE', 1, case when run then 'running' else 'complete' end, '', 'd',
           run::integer, 'o', case when run then now() + interval '1 hour' end,
           case when not run then now() end, true
      from (select *, id = lpad('1', 32, '0')::uuid or name like '%7' as run from stack) s
    """,
    """
    insert into resource (stack_id, id, name, type, action, status, reason, attributes, data,
                          metadata, digest, requires)
    select id, gen_random_uuid(), 'r' || n, 't', 'CREATE', 'COMPLETE', '', '{}', '{}', '{}', 'd',
           array[gen_random_uuid()]
      from (select lpad('1', 32, '0')::uuid as id, n from generate_series(1, 200) n
            union all
            (select id, 1 from stack where id <> lpad('1', 32, '0')::uuid limit 9800)) s
    """,
    """
    insert into node (stack_id, traversal, id, resource_id, name, type, operation, direction,
                      state, phase, pending_dependencies, dependents, reads, breakpoints_hit, claim,
                      wake_at, label)
    select stack_id, 1, row_number() over (partition by stack_id order by id), id, name, 't',
           'create', 'forward', case when due then 'ready' else 'waiting' end, 'pre', 0, '{}', '{}',
           '{}', 0, case when due then now() end, case n % 3 when 0 then '' else 'l' || n % 100 end
      from (select *, n % 10 = 0 as due
              from (select *, row_number() over () as n from resource) q) r
    """,
    """
    insert into labelled_work (stack_id, traversal, label, project, wake_at)
    select n.stack_id, n.traversal, n.label, s.project, min(n.wake_at)
      from node n join stack s on s.id = n.stack_id where n.label <> '' group by 1, 2, 3, 4
    """,
    """
    insert into credential (stack_id, traversal, encrypted, trust)
    select id, 1, '', '00000000-0000-0000-0000-000000000000' from stack
    """,
    """
    insert into hook (stack_id, id, project, traversal, node, resource_name, path, point, mode,
                      state, on_timeout, timeout, notification, digest, opened_at, deadline, rule,
                      requested_by, wake_at, decided_at)
    select stack_id, gen_random_uuid(), project, 1, id, name, name, 'pre-create', 'wait',
           case n % 3 when 0 then 'waiting' when 1 then 'answered' else 'superseded' end, 'stop',
           interval '1 hour', '{}', 'd', now() - n * interval '1 second',
           now() + n * interval '1 second', '{}', 'o',
           case when n % 7 = 0 then now() end, case when n % 3 > 0 then now() end
      from (select n.*, s.project, row_number() over () as n from node n join stack s
                on s.id = n.stack_id) r
    """,
    """
    insert into decision (stack_id, number, project, hook_id, kind, by, channel, address, reason,
                          digest, data, at, hash)
    select stack_id, row_number() over (partition by stack_id order by id), project, id, 'continue',
           'o', 'api', '', '', 'd', '{}', opened_at, 'h'
      from hook
    """,
    """
    insert into event (stack_id, sequence, id, type, time, reason)
    select stack_id, row_number() over (partition by stack_id order by id), gen_random_uuid(),
           case name when 'r1' then 'headgate.stack.create.started'
                     else 'headgate.resource.create.started' end, now(), ''
      from resource
    """,
    """
    insert into outbox (stack_id, project, first, last, position)
    select e.stack_id, s.project, e.sequence, e.sequence,
           case when e.n % 100 > 0 then e.n end
      from (select *, row_number() over () as n from event) e join stack s on s.id = e.stack_id
    """,
    """
    insert into subscription (id, project, channel, target, events, stacks, resources, types,
                              points, ordered, secrets, state, origin)
    select lpad(n::text, 32, '0')::uuid,
           case n % 50 when 1 then 'p' else 'q' || n % 50 end, 'webhook',
           'http://127.0.0.1:1/', '{}', '{}', '{}', '{}', '{}', true, '[]', 'enabled', 'api'
      from generate_series(1, 10000) n
    """,
    """
    insert into delivery (stack_id, sequence, subscription_id, project, event_id, type, urgent,
                          state, next_at, ended_at)
    select e.stack_id, e.sequence, lpad((n % 100)::text, 32, '0')::uuid, s.project, e.id, e.type,
           false, case when n % 4 > 0 then 'pending' else 'delivered' end,
           case when n % 4 = 1 then now() end, case when n % 4 = 0 then now() end
      from (select *, row_number() over () as n from event) e join stack s on s.id = e.stack_id
    """,
    """
    insert into breakpoint (stack_id, id, pattern, rule, created_by)
    select stack_id, id, name, '{}', 'o' from resource
    """,
    """
    insert into resource_signal (stack_id, resource_id, number, data, sent_by)
    select stack_id, id, 1, '{}', 'o' from resource
    """,
    """
    insert into resource_snapshot (stack_id, traversal, resource_id, name, type, data)
    select stack_id, 1, id, name, type, '{}' from resource
    """,
    """
    insert into observation (stack_id, resource_id, state, differences, reason, recorded_at, since,
                             observed_at, reported)
    select stack_id, id, 'missing', '[]', '', updated_at, now(), now(), '{}' from resource
    """,
    """
    insert into drift_hook (stack_id, resource_id, hook_id, state, differences, recorded_at,
                            decision)
    select stack_id, id, id, 'missing', '[]', updated_at, 'continue' from resource
    """,
    """
    insert into snapshot (stack_id, id, name, traversal, version)
    select id, id, 'n', 1, 1 from stack
    """,
    """
    insert into archived_graph (stack_id, traversal, ids, names, types, operations, directions,
                                states, phases, reasons, dependents)
    select id, 0, '{1}', '{r}', '{t}', '{create}', '{forward}', '{done}', '{pre}', '{""}', '{"{}"}'
      from stack
    """,
    "insert into archive_queue (stack_id, traversal) select id, 0 from stack where name like '%3'",
    """
    insert into observation_schedule (stack_id, project, next_at)
    select id, project, case when n % 10 = 0 then now() else now() + interval '1 hour' end
      from (select *, row_number() over (order by id) as n from stack where parent_id is null) s
    """,
    """
    insert into completion_request (id, project, type, next_at, max_pause)
    select lpad(n::text, 32, '0')::uuid, case n % 50 when 1 then 'p' else 'q' || n % 50 end, 't',
           now() + interval '1 hour', '1 minute'
      from generate_series(1, 10000) n
    """,
    """
    insert into completion (stack_id, operation_key, request_id, object_id, definition)
    select stack_id, id, lpad(n::text, 32, '0')::uuid, 'o' || n, '{}'
      from (select *, row_number() over (order by stack_id) as n from resource) r
    """,
    """
    insert into converge_request (stack_id, traversal, round, rounds, state, request, requested_by,
                                  requested_by_id)
    select id, 1, 1, 2, case when name like '%9' then 'running' else 'complete' end, '{}', 'o', ''
      from stack where parent_id is null
    """,
    "insert into audit_head (stack_id, number) select id, 1 from stack",
    """
    insert into idempotency (project, key, request_digest, stack_id)
    select project, name, 'd', id from stack
    """,
    """
    insert into stack_tag (project, tag, created_at, stack_id)
    select project, 'v' || n % 9, created_at, id
      from (select *, row_number() over (order by id) as n from stack where parent_id is null) s
    """,
    """
    insert into token (id, project, name, roles, kind, hash, created_by)
    select lpad(n::text, 32, '0')::uuid, 'q' || n % 50, 'n' || n, '{}', 'token', 'h' || n, 'o'
      from generate_series(1, 10000) n
    """,
    """
    insert into session (id, mode, owner, name, expires_at)
    select sha256(n::text::bytea), 'tokens', 'o' || n % 500, 'n', now() + interval '1 hour'
      from generate_series(1, 10000) n
    """,
    """
    insert into software_config (id, project, name, "group", config, inputs, outputs, options)
    select lpad(n::text, 32, '0')::uuid, case n % 50 when 1 then 'p' else 'q' || n % 50 end, 'n',
           'script', '{}', '[]', '[]', '{}'
      from generate_series(1, 10000) n
    """,
    """
    insert into software_deployment (id, project, config_id, server_id, input_values, action,
                                     status, status_reason)
    select id, project, id, 's' || n % 500, '{}', 'CREATE', 'COMPLETE', ''
      from (select *, row_number() over (order by id) as n from software_config) c
    """,
    """
    insert into slack_request (signature, received_at)
    select sha256(n::text::bytea), now() from generate_series(1, 10000) n
    """,
    # One row of the large stack in each table.
    """
    update stack set name = 'p', sequence = 1000 where id = lpad('1', 32, '0')::uuid
    """,
    """
    update stack set root_id = parent_id,
                     parent_resource = case name when 's51' then parent_id end
     where parent_id is not null
    """,
    """
    update resource set id = stack_id, name = 'p'
     where stack_id = lpad('1', 32, '0')::uuid and name = 'r1'
    """,
    """
    update node set resource_id = stack_id, name = 'p', state = 'parked', phase = 'execute',
                    started_at = now()
     where stack_id = lpad('1', 32, '0')::uuid and id = 1
    """,
    """
    update hook set id = stack_id, state = 'waiting'
     where stack_id = lpad('1', 32, '0')::uuid and node = 1
    """,
    """
    update decision set hook_id = stack_id
     where stack_id = lpad('1', 32, '0')::uuid and number = 1
    """,
    """
    update event set id = stack_id where stack_id = lpad('1', 32, '0')::uuid and sequence = 1
    """,
    """
    update delivery set id = stack_id, subscription_id = stack_id
     where stack_id = lpad('1', 32, '0')::uuid and sequence = 1
    """,
    *(
        f"""
        update {table} set {column} = stack_id
         where (stack_id, {column}) in (
               select stack_id, {column} from {table}
                where stack_id = lpad('1', 32, '0')::uuid limit 1)
        """
        for table, column in (
            ("breakpoint", "id"),
            ("resource_signal", "resource_id"),
            ("resource_snapshot", "resource_id"),
            ("observation", "resource_id"),
            ("drift_hook", "resource_id"),
            ("completion", "operation_key"),
        )
    ),
    "update token set project = 'p', name = 'p', hash = 'p' where id = lpad('1', 32, '0')::uuid",
    """
    update software_deployment set server_id = 'p', stack_id = id, resource_id = id
     where id = lpad('1', 32, '0')::uuid
    """,
    "update idempotency set key = 'p' where stack_id = lpad('1', 32, '0')::uuid",
)


async def fill(conn: Connection) -> None:
    for statement in FILL:
        await conn.execute(statement)
