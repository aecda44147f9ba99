"""A database with 10,000 rows in each table that grows, inserted in a few statements.

A fiftieth of the rows belongs to one large stack, and the others to small ones. A fiftieth of the
stacks, also the large one, belongs to project p, and the others to 49 projects. Some are nested in
the large one.
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
                      requested_by, wake_at)
    select stack_id, gen_random_uuid(), project, 1, id, name, name, 'pre-create', 'wait',
           case n % 3 when 0 then 'waiting' when 1 then 'answered' else 'superseded' end, 'stop',
           interval '1 hour', '{}', 'd', now() - n * interval '1 second',
           now() + n * interval '1 second', '{}', 'o',
           case when n % 7 = 0 then now() end
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
      from generate_series(1, 100) n
    """,
    """
    insert into delivery (stack_id, sequence, subscription_id, project, event_id, type, urgent,
                          state, next_at)
    select e.stack_id, e.sequence, lpad((n % 100)::text, 32, '0')::uuid, s.project, e.id, e.type,
           false, case when n % 4 > 0 then 'pending' else 'delivered' end,
           case when n % 4 = 1 then now() end
      from (select *, row_number() over () as n from event) e join stack s on s.id = e.stack_id
    """,
)


async def fill(conn: Connection) -> None:
    for statement in FILL:
        await conn.execute(statement)
