"""The rules that refuse an operation when its node executes: protection, restrictions, immutable
properties, checks of resources that do not exist or have failed.

`engine.work.nodes.prepare` applies them, and previews use them.
"""

from collections.abc import Collection

from engine.plan.draft import is_checkable
from engine.plan.protection import destroy_refusal
from engine.plan.resource_change import ResourceChange
from engine.store.traversals.advance import Work
from engine.words import Direction, Operation, Phase, ResourceAction, Restriction, Status


def change_refusal(work: Work, change: ResourceChange) -> str | None:
    """Return why a prepared change is refused, or None.

    Protection and restrictions do not end an operation that has begun, except an adoption.
    """
    if change.fixed:
        return unchangeable_reason(work.name, work.type, change.fixed)
    if work.phase != Phase.PRE and work.operation != Operation.ADOPT:
        return None
    return denial_reason(work, change.operation)


def denial_reason(work: Work, operation: Operation | None) -> str | None:
    """Return why the operation is forbidden for this node's resource, or None.

    The template decides whether it may be replaced, and the template that was applied last, whether
    it may be deleted.
    """
    definition = work.definition or {}
    deletes = work.direction == Direction.CLEANUP
    lifecycle = work.lifecycle if deletes else definition.get("lifecycle")
    return refusal_reason(
        work.name,
        operation,
        restricted=definition.get("restricted", ()),
        protected=bool(work.protected),
        prevented=bool((lifecycle or {}).get("prevent_destroy")) and work.replaced_by is None,
        external_id=None if definition.get("data") else definition.get("external_id"),
        physical_id=work.physical_id,
    )


def check_refusal(work: Work) -> str | None:
    """Return why a resource cannot be checked, or None. It keeps its state, so that the next update
    repairs it; the check of its stack fails, as in Heat.
    """
    if work.phase != Phase.PRE or work.operation != Operation.CHECK:
        return None
    action = ResourceAction(work.action or ResourceAction.INIT)
    if is_checkable(action, Status(work.status or Status.COMPLETE)):
        return None
    if action is ResourceAction.INIT:
        return f"Resource {work.name} not created yet."
    return f"{work.name} is {action}_{work.status}. Update the stack to repair it."


def unchangeable_reason(name: str, type_name: str, properties: Collection[str]) -> str:
    names = ", ".join(sorted(properties))
    return f"Update to properties {names} of {name} ({type_name}) is not supported."


def refusal_reason(
    name: str,
    operation: Operation | None,
    *,
    restricted: Collection[str],
    protected: bool,
    prevented: bool,
    external_id: str | None,
    physical_id: str | None,
) -> str | None:
    """Return why an operation is forbidden for a resource, or None."""
    if external_id is not None and physical_id not in (None, external_id):
        return f"external_id cannot be changed from {physical_id} to {external_id}"
    refused = destroy_refusal(name, operation, protected=protected, prevented=prevented)
    if refused is not None:
        return str(refused)
    if operation is not None and operation in restricted:
        return f"{Restriction(operation)} is restricted for resource."
    return None
