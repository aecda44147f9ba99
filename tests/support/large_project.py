"""A project with 20,000 rows in each table that a list reads, inserted in a few statements.

The stacks are s000001 to s020000; s020000 is the newest. LARGE has half of the hooks and all
events and decisions, SMALL has 20 resources and snapshots. Dead deliveries are 1 in 1,000. The OLD
oldest stacks have the tag old, and each second stack has the tag common.
"""

from uuid import UUID

from engine.store.connection import Connection

ROWS = 20_000
OLD = 2_000
PROJECT = "p"
LARGE, SMALL = UUID(int=1), UUID(int=2)
SUBSCRIPTION = UUID(int=3)
#: The time of the first row; each further row is a second later.
_TIME = "timestamptz '2026-01-01' + n * interval '1 second'"
_KEY = "lpad(to_hex(n), 32, '0')::uuid"
#: IDs of events contain their sequence number, as `new_event_id` in SQL makes them.
_EVENT_ID = "('00000000-0000-8000-8' || lpad(to_hex(n), 15, '0'))::uuid"
_LARGE, _SMALL = f"'{LARGE}'::uuid", f"'{SMALL}'::uuid"
FILL = (
    f"""
    insert into stack (id, project, name, owner, version, traversal, sequence, created_at,
                       changed_at, tags)
    select {_KEY}, '{PROJECT}', 's' || lpad(n::text, 6, '0'), 'o', 1, 1, 1, {_TIME}, {_TIME},
           case when n % 2000 = 7 then array['rare'] when n % 2 = 0 then array['common']
                else array[]::text[] end
           || case when n <= {OLD} then array['old'] else array[]::text[] end
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into template (stack_id, version, description, template, environment, files,
                          parameters, masked_parameters, hidden_parameters, outputs, requested_by)
    select {_KEY}, 1, '', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '[]', 'o'
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into traversal (stack_id, number, project, action, version, state, reason, digest,
                           active_nodes, requested_by, ended_at)
    select {_KEY}, 1, '{PROJECT}', 'CREATE', 1, 'complete', '', 'd', 0, 'o', {_TIME}
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into hook (stack_id, id, project, traversal, node, resource_name, path, point, mode,
                      state, on_timeout, timeout, notification, digest, opened_at, deadline, rule,
                      requested_by)
    select case when n % 2 = 0 then {_LARGE} else {_KEY} end, {_KEY}, '{PROJECT}', 1, n, 'r', 'r',
           'pre-create', 'wait', case n / 2 % 3 when 0 then 'waiting' when 1 then 'answered'
                                      else 'superseded' end, 'stop',
           interval '1 hour', '{{}}', 'd', {_TIME}, {_TIME}, '{{}}', 'o'
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into event (stack_id, sequence, id, type, time, resource_name, resource_type, action,
                       status, reason)
    select {_LARGE}, n, {_EVENT_ID}, 'headgate.resource.create.' || s.name, {_TIME},
           'r' || n % 1000, 't', 'CREATE', s.status, ''
      from generate_series(1, {ROWS}) n
     cross join lateral (select case when n % 2 = 0 then 'completed' else 'started' end,
                                case when n % 2 = 0 then 'COMPLETE' else 'IN_PROGRESS' end)
           s (name, status)
    """,
    f"""
    insert into resource (stack_id, id, name, type, action, status, reason, attributes, data,
                          metadata, digest, requires)
    select case when n % 1000 = 0 and n < 20000 then {_SMALL} else {_KEY} end, {_KEY}, 'r' || n,
           't', 'CREATE', 'COMPLETE', '', '{{}}', '{{}}', '{{}}', 'd', '{{}}'
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into snapshot (stack_id, id, name, traversal, version, created_at)
    select case when n % 1000 = 0 and n < 20000 then {_SMALL} else {_KEY} end, {_KEY}, 'n', 1, 1,
           {_TIME}
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into decision (stack_id, number, project, hook_id, kind, by, channel, address, reason,
                          digest, data, at, hash)
    select {_LARGE}, n, '{PROJECT}', null, 'continue', 'o', 'api', '', '', 'd', '{{}}', {_TIME}, 'h'
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into subscription (id, project, channel, target, events, stacks, resources, types,
                              points, ordered, secrets, state, origin, created_at)
    select {_KEY}, '{PROJECT}', 'webhook', 'http://127.0.0.1:1/', '{{}}', '{{}}', '{{}}', '{{}}',
           '{{}}', false, '[]', 'enabled', 'api', {_TIME}
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into delivery (stack_id, sequence, subscription_id, id, project, event_id, type, urgent,
                          state, created_at, ended_at)
    select {_LARGE}, n, '{SUBSCRIPTION}', {_KEY}, '{PROJECT}', {_KEY}, 't', false,
           case when n % 1000 = 7 then 'dead' when n % 1000 = 8 then 'pending' else 'delivered' end,
           {_TIME}, case when n % 1000 <> 8 then {_TIME} end
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into software_config (id, project, name, "group", config, inputs, outputs, options,
                                 created_at)
    select {_KEY}, '{PROJECT}', 'c', 'g', '""', '[]', '[]', '{{}}', {_TIME}
      from generate_series(1, {ROWS}) n
    """,
    f"""
    insert into software_deployment (id, project, config_id, server_id, input_values, action,
                                     status, status_reason, created_at)
    select {_KEY}, '{PROJECT}', {_KEY}, (n % 1000)::text, '{{}}', 'CREATE', 'COMPLETE', '', {_TIME}
      from generate_series(1, {ROWS}) n
    """,
)


def key(number: int) -> UUID:
    """The ID of a row, by its number from 1."""
    return UUID(int=number)


def event_key(number: int) -> UUID:
    """The ID of an event, by its sequence number."""
    return UUID(int=UUID("00000000-0000-8000-8000-000000000000").int + number)


async def fill(conn: Connection) -> None:
    for statement in FILL:
        await conn.execute(statement)
