"""What happens to the resource whose software deployment somebody speaks of, or takes away."""

from dataclasses import asdict

from engine.store import deployed
from engine.store.connection import Connection
from engine.store.deployed import UnderWay, Waiting
from engine.store.hooks import record_events
from engine.store.signals import Target, target, wake
from engine.store.software import DeploymentChange
from engine.words import Json, Status


async def said_of(conn: Connection, waiting: Waiting | None, change: DeploymentChange) -> None:
    """Under the lock on the stack: have the operation called that waits for it, and tell that the
    server is at it."""
    if waiting is None or change.status is None:
        return
    await wake(conn, waiting.stack_id, waiting.resource_id)
    if change.status != Status.IN_PROGRESS:
        return
    at = await target(conn, waiting.stack_id, waiting.resource_id)
    doing = await deployed.operation_of(conn, waiting)
    if at is not None and doing is not None:
        await record_events(conn, [_progress(waiting, at, doing, change.status_reason or "")])


async def taken_away(conn: Connection, waiting: Waiting | None) -> None:
    """Under the lock on the stack: an operation that waits for it is to notice."""
    if waiting is not None:
        await wake(conn, waiting.stack_id, waiting.resource_id)


def _progress(waiting: Waiting, at: Target, doing: UnderWay, reason: str) -> Json:
    operation = doing.operation
    return {
        "stack_id": waiting.stack_id,
        "type": f"headgate.resource.{operation}.progress",
        "resource_name": at.name,
        "resource_type": at.type,
        "physical_id": at.physical_id,
        "action": "UPDATE" if operation == "replace" else operation.upper(),
        "status": Status.IN_PROGRESS,
        "reason": reason,
        "data": asdict(doing),
    }
