"""Rows for tests of the channels: stacks, events as the engine records them, hooks and
subscriptions.
"""

import itertools
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from channels.selection import Selection
from channels.store import subscriptions
from channels.store.records import NewSubscription
from channels.webhook.sign import secret_of
from engine.store.connection import Connection
from engine.store.database import Database
from engine.words import Json

INSERT_STACK = """
insert into stack (id, project, name, owner, version, traversal) values ($1, $2, $3, 'me', 1, 1)
"""
LOCK_STACK = "select id from stack where id = $1 for no key update"
RECORD = """
select record_events(array_agg(row ($1::uuid, d.draft ->> 'type', d.draft ->> 'resource_name',
                                    d.draft ->> 'resource_type', null, d.draft ->> 'action',
                                    d.draft ->> 'status', d.draft ->> 'reason',
                                    d.draft -> 'data')::event_draft order by d.nth))
  from jsonb_array_elements($2) with ordinality d (draft, nth)
"""
INSERT_HOOK = """
insert into hook (stack_id, id, project, traversal, node, resource_name, path, point, mode, state,
                  on_timeout, timeout, notification, digest, opened_at, deadline, rule)
values ($1, $2, $3, 1, 1, $4, $4, $5, $6, 'waiting', 'stop', make_interval(secs => $7), $8, 'd1',
        clock_timestamp(), clock_timestamp() + make_interval(secs => $7),
        jsonb_build_object('point', $5::text, 'mode', $6::text))
"""
DELETE_EVENTS = """
with queued as (delete from outbox where stack_id = $1)
delete from event where stack_id = $1
"""
READ_HOOK = "select * from hook where id = $1"
READ_DELIVERIES = """
select d.*, e.type as event_type from delivery d
  join event e on e.stack_id = d.stack_id and e.sequence = d.sequence
 order by d.created_at, d.stack_id, d.sequence
"""

NOTIFICATION = {
    "type": "OS::Heat::TestResource",
    "operation": "create",
    "physical_id": None,
    "properties": {"value": "1", "password": "******"},
    "changes": {"value": {"from": "0", "to": "1"}},
    "dependents": ["web"],
}


def resource_event(name: str, kind: str = "started", operation: str = "create") -> dict[str, Any]:
    status = {"started": "IN_PROGRESS", "completed": "COMPLETE", "failed": "FAILED"}[kind]
    return {
        "type": f"headgate.resource.{operation}.{kind}",
        "resource_name": name,
        "resource_type": "OS::Heat::TestResource",
        "action": operation.upper(),
        "status": status,
        "reason": "state changed",
        "data": {"operation": operation},
    }


def stack_event(action: str, kind: str, status: str) -> dict[str, Any]:
    return {
        "type": f"headgate.stack.{action}.{kind}",
        "resource_name": None,
        "resource_type": None,
        "action": action.upper(),
        "status": status,
        "reason": f"Stack {action.upper()} {kind}",
        "data": {"traversal": 1, "version": 1},
    }


def hook_event(
    hook_id: UUID, name: str, *, state: str = "waiting", point: str = "pre-create",
    mode: str = "wait",
) -> dict[str, Any]:  # fmt: skip
    return {
        "type": f"headgate.hook.{state}",
        "resource_name": name,
        "resource_type": "OS::Heat::TestResource",
        "action": "INIT",
        "status": "COMPLETE",
        "reason": "CREATE paused until Hook pre-create is cleared",
        "data": {"hook_id": str(hook_id), "point": point, "mode": mode},
    }


@dataclass(frozen=True, slots=True)
class StackRow:
    id: UUID
    project: str
    name: str


@dataclass(slots=True)
class EngineRows:
    """Writes rows as the engine does: events under the stack's lock, hooks with their event.

    with_subscriptions: whether to keep the events about created subscriptions.
    """

    database: Database
    project: str = "demo"
    with_subscriptions: bool = False
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def stack(self, name: str = "", project: str = "") -> StackRow:
        row = StackRow(uuid4(), project or self.project, name or f"stack-{next(self.numbers)}")
        async with self.database.connection() as conn:
            await conn.execute(INSERT_STACK, row.id, row.project, row.name)
        return row

    async def record(self, stack: StackRow, *events: dict[str, Any]) -> None:
        async with self.database.transaction() as conn:
            await self.record_in(conn, stack, *events)

    async def record_in(self, conn: Connection, stack: StackRow, *events: dict[str, Any]) -> None:
        await conn.execute(LOCK_STACK, stack.id)
        await conn.execute(RECORD, stack.id, list(events))

    async def hook(
        self, stack: StackRow, name: str = "db", *, seconds: float = 3600.0, mode: str = "wait",
        point: str = "pre-create",
    ) -> UUID:  # fmt: skip
        hook_id = uuid4()
        async with self.database.transaction() as conn:
            await conn.execute(
                INSERT_HOOK,
                stack.id,
                hook_id,
                stack.project,
                name,
                point,
                mode,
                seconds,
                NOTIFICATION,
            )
            await self.record_in(conn, stack, hook_event(hook_id, name, mode=mode, point=point))
        return hook_id

    async def subscription(
        self, target: str, *, ordered: bool = True, project: str = "", channel: str = "webhook",
        quiet_hours: Json = None, digest: Json = None, **selection: Any,
    ) -> NewSubscription:  # fmt: skip
        new = NewSubscription(
            id=uuid4(),
            project=project or self.project,
            channel=channel,
            target=target,
            selection=Selection(**selection),
            ordered=ordered,
            secret=secret_of(uuid4().bytes + uuid4().bytes),
            quiet_hours=quiet_hours,
            digest=digest,
        )
        async with self.database.connection() as conn:
            await subscriptions.create(conn, new, "ann")
            if not self.with_subscriptions:
                await conn.execute(DELETE_EVENTS, new.id)
        return new

    async def hook_row(self, hook_id: UUID) -> dict[str, Any]:
        async with self.database.connection() as conn:
            return dict((await conn.fetch(READ_HOOK, hook_id))[0])

    async def deliveries(self) -> list[dict[str, Any]]:
        async with self.database.connection() as conn:
            return [dict(row) for row in await conn.fetch(READ_DELIVERIES)]

    async def value(self, query: str, *args: Any) -> Any:
        async with self.database.connection() as conn:
            return await conn.fetchval(query, *args)

    async def now(self) -> datetime:
        found: datetime = await self.value("select clock_timestamp()")
        return found
