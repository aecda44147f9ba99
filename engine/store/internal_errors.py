"""Ending a unit of work that raises an internal error: it fails alone, with the reason given.

These statements pass every stored value on as it is, within PostgreSQL. So they also work where
the error came from a value that cannot be read.
"""

from uuid import UUID

from engine.hooks.hash_chain import Entry
from engine.principal import Principal
from engine.store.audit_log import record
from engine.store.connection import Connection
from engine.words import Door, OnTimeout

LOCK_STACK = "select id from stack where id = $1 for no key update"
EXPIRE_HOOK = """
update hook
   set state = 'expired', decision = 'reject', reason = $3, decided_by = $4, decided_by_id = $5,
       door = 'rule', decided_at = clock_timestamp()
 where stack_id = $1 and id = $2 and state = 'waiting'
returning digest, decided_at
"""
# As the machine fails a node whose hook was rejected; nothing where the hook held no node.
FAIL_NODE = """
with step as (
    select jsonb_build_object(
               'stack_id', n.stack_id, 'traversal', n.traversal, 'node', n.id, 'claim', n.claim,
               'state', 'failed', 'phase', n.phase, 'operation', n.operation, 'passed', n.passed,
               'progress', n.progress, 'attempts', n.attempts, 'reason', $3::text,
               'resource', to_jsonb(r) || jsonb_build_object(
                   'write', 'update', 'status', 'FAILED', 'reason', $3::text,
                   'action', case n.operation when 'replace' then 'UPDATE'
                                              else upper(n.operation) end,
                   'broken', r.broken or n.phase <> 'pre' and n.operation in
                             ('create', 'update', 'replace', 'delete', 'check')),
               'events', jsonb_build_array(
                   jsonb_build_object(
                       'type', 'headgate.hook.expired', 'action', coalesce(r.action, 'INIT'),
                       'status', coalesce(r.status, 'COMPLETE'), 'reason', $3::text,
                       'resource_name', nullif(n.name, ''), 'resource_type', r.type,
                       'physical_id', r.physical_id,
                       'data', jsonb_build_object(
                           'hook_id', h.id, 'point', h.point, 'mode', h.mode,
                           'decision', 'reject', 'decided_by', $4::text, 'reason', $3::text)))
                   || case when r.id is null then '[]'::jsonb else jsonb_build_array(
                   jsonb_build_object(
                       'type', 'headgate.resource.' || n.operation || '.failed',
                       'action', upper(n.operation), 'status', 'FAILED', 'reason', $3::text,
                       'resource_name', n.name, 'resource_type', r.type,
                       'physical_id', r.physical_id,
                       'data', jsonb_build_object('operation', n.operation))) end) as step
      from hook h
      join node n on n.stack_id = h.stack_id and n.traversal = h.traversal and n.id = h.node
       and n.state = 'parked' and n.phase <> 'act' and n.passed[cardinality(n.passed)] = h.point
      left join resource r on r.stack_id = n.stack_id and n.operation not in ('begin', 'finish')
       and r.id = case when n.phase = 'post' and n.operation = 'replace' then n.replacement_id
                       else n.resource_id end
     where h.stack_id = $1 and h.id = $2 and h.rule ->> 'dry' is distinct from 'true'
)
select count(*) from step s
 cross join lateral advance('', interval '0', 0, jsonb_build_array(s.step), '', 0, true)
"""
SILENCE = """
update hook set wake_at = null where stack_id = $1 and id = $2 and state = 'waiting'
"""


async def fail_hook(
    conn: Connection, stack_id: UUID, hook_id: UUID, reason: str, by: Principal
) -> None:
    """Expire a hook as rejected, and fail the node that it holds. In a transaction."""
    await conn.execute(LOCK_STACK, stack_id)
    row = await conn.fetchrow(EXPIRE_HOOK, stack_id, hook_id, reason, by.name, by.id)
    if row is None:
        return
    await conn.execute(FAIL_NODE, stack_id, hook_id, reason, by.name)
    entry = Entry(
        stack_id=stack_id,
        hook_id=hook_id,
        kind=f"expired-{OnTimeout.REJECT}",
        by=by.name,
        principal=by.id,
        door=Door.RULE,
        at=row["decided_at"],
        reason=reason,
        digest=row["digest"],
    )
    await record(conn, [entry])


async def silence_hook(conn: Connection, stack_id: UUID, hook_id: UUID) -> None:
    """A hook is reminded of no more; its deadline stays."""
    await conn.execute(SILENCE, stack_id, hook_id)
