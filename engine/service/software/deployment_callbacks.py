"""Notifies the resource of a software deployment that the API has changed or deleted."""

from dataclasses import asdict

from engine.store import deployment_resources
from engine.store.connection import Connection
from engine.store.deployment_resources import UnderWay, Waiting
from engine.store.hooks import record_events
from engine.store.resource_signals import Target, target, wake
from engine.store.software_configs import DeploymentChange
from engine.words import Json, Status


async def notify_changed(
    conn: Connection, waiting: Waiting | None, change: DeploymentChange
) -> None:
    """Wake the operation that waits for a deployment, and record its progress as an event. The
    caller has locked the stack. waiting: None if no operation waits."""
    if waiting is None or change.status is None:
        return
    await wake(conn, waiting.stack_id, waiting.resource_id)
    if change.status != Status.IN_PROGRESS:
        return
    resource = await target(conn, waiting.stack_id, waiting.resource_id)
    operation = await deployment_resources.operation_of(conn, waiting)
    if resource is not None and operation is not None:
        await record_events(
            conn, [_progress(waiting, resource, operation, change.status_reason or "")]
        )


async def notify_deleted(conn: Connection, waiting: Waiting | None) -> None:
    """Wake the operation that waits for a deleted deployment. The caller has locked the stack."""
    if waiting is not None:
        await wake(conn, waiting.stack_id, waiting.resource_id)


def _progress(waiting: Waiting, resource: Target, under_way: UnderWay, reason: str) -> Json:
    """The event of a deployment's progress."""
    operation = under_way.operation
    return {
        "stack_id": waiting.stack_id,
        "type": f"headgate.resource.{operation}.progress",
        "resource_name": resource.name,
        "resource_type": resource.type,
        "physical_id": resource.physical_id,
        "action": "UPDATE" if operation == "replace" else operation.upper(),
        "status": Status.IN_PROGRESS,
        "reason": reason,
        "data": asdict(under_way),
    }
