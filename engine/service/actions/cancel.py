"""Cancel or stop the traversal under way."""

from uuid import UUID

from engine.continuation import continuing_request, stopped_reason
from engine.errors import Finding, Invalid
from engine.plan.traversal_result import ended_early
from engine.principal import Principal
from engine.service.traversals import end as ending
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.stacks import stack_locks
from engine.store.traversals.advance import TraversalToEnd
from engine.store.traversals.end import EndingTraversal
from engine.words import UNDER_WAY, Action, TraversalState


async def cancel(
    conn: Connection,
    traversals: Traversals,
    project: str,
    stack_id: UUID,
    by: Principal,
    *,
    rollback: bool,
) -> None:
    """End the traversal under way as FAILED; with rollback, start a rollback.

    Raises NotFound; Invalid (NotSupported) if no traversal is under way or its action cannot be
    cancelled this way.
    """
    cancellable = {Action.UPDATE, Action.RESTORE} if rollback else {*Action} - {Action.DELETE}
    locked = await traversals.lock_root(conn, project, stack_id, "cancelled")
    if locked.state not in UNDER_WAY or locked.action not in cancellable:
        raise not_supported("Cancelling update", locked)
    await _end_early(conn, traversals, locked, TraversalState.FAILED, "cancelled", by)
    if rollback:
        ended = TraversalToEnd(stack_id, locked.traversal)
        ending_before = EndingTraversal(
            timed_out=True,
            action=Action(locked.action),
            version=locked.version,
            requested_by=by,
            project=project,
            name=locked.name,
            region=locked.region,
            disable_rollback=False,
            newest=locked.newest,
        )
        await ending.roll_back(conn, traversals, ended, ending_before, by)


async def stop(
    conn: Connection, traversals: Traversals, project: str, stack_id: UUID, by: Principal
) -> None:
    """End the traversal under way as STOPPED, so that it can be continued.

    Raises NotFound; Invalid (NotSupported) if no traversal is under way.
    """
    locked = await traversals.lock_root(conn, project, stack_id, "stopped")
    if locked.state not in UNDER_WAY:
        raise not_supported("Stopping", locked)
    reason = stopped_reason(f"by {by}", Action(locked.action))
    await _end_early(conn, traversals, locked, TraversalState.STOPPED, reason, by)


async def _end_early(
    conn: Connection,
    traversals: Traversals,
    locked: stack_locks.LockedStack,
    state: TraversalState,
    reason: str,
    by: Principal,
) -> None:
    action = Action(locked.action)
    shown = f"Stack {action} cancelled" if state is TraversalState.FAILED else reason
    verdict = ended_early(action, shown, state)
    ended = TraversalToEnd(locked.id, locked.traversal)
    await ending.end_traversal_early(
        conn,
        traversals.registry,
        ended,
        action,
        locked.version,
        verdict,
        by=by,
        cancels=state is TraversalState.FAILED,
    )


def not_supported(what: str, locked: stack_locks.LockedStack) -> Invalid:
    """The error for an action in progress that cannot be ended or stepped this way."""
    status = f"{locked.action}_{locked.state.upper()}"
    remedy = "Only an action in progress can be ended."
    if locked.state in (TraversalState.FAILED, TraversalState.STOPPED):
        remedy += f" To continue this one, {continuing_request(Action(locked.action))}."
    if locked.state in UNDER_WAY:
        status = f"{locked.action}_IN_PROGRESS"
        remedy = "Stop it, or cancel it without rollback."
        if locked.action == Action.DELETE:
            remedy = "Stop it: a delete cannot be cancelled."
    reason = f"{what} when stack is {status} is not supported."
    return Invalid([Finding("", reason, remedy, "NotSupported")])
