"""Cancel or stop the traversal under way."""

from uuid import UUID

from engine.errors import Conflict, Finding, Invalid
from engine.plan.verdict import ended_early
from engine.principal import Principal
from engine.service.requests.root_stack import check_root_stack
from engine.service.traversals import end as ending
from engine.service.traversals.start import UNDER_WAY, Traversals
from engine.store import stack_rows
from engine.store.advance import End
from engine.store.connection import Connection
from engine.store.traversal_end import Ending
from engine.words import Action, TraversalState


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
    locked = await traversals.lock(conn, project, stack_id)
    check_root_stack(locked, "cancelled")
    if locked.state not in UNDER_WAY or locked.action not in cancellable:
        raise not_supported("Cancelling update", locked)
    await _end_early(conn, traversals, locked, TraversalState.FAILED, "cancelled", by)
    if rollback:
        ended = End(stack_id, locked.traversal)
        ending_before = Ending(
            late=True,
            action=Action(locked.action),
            version=locked.version,
            requested_by=by,
            project=project,
            name=locked.name,
            disable_rollback=False,
            newest=locked.newest,
        )
        await ending.roll_back(conn, traversals, ended, ending_before, by)


async def stop(
    conn: Connection, traversals: Traversals, project: str, stack_id: UUID, by: Principal
) -> None:
    """End the traversal under way as STOPPED; an update resumes it.

    Raises NotFound; Invalid (NotSupported) if no traversal is under way.
    """
    locked = await traversals.lock(conn, project, stack_id)
    check_root_stack(locked, "stopped")
    if locked.state not in UNDER_WAY:
        raise not_supported("Stopping", locked)
    reason = f"Stopped: by {by}; update the stack to resume"
    await _end_early(conn, traversals, locked, TraversalState.STOPPED, reason, by)


async def _end_early(
    conn: Connection,
    traversals: Traversals,
    locked: stack_rows.Locked,
    state: TraversalState,
    reason: str,
    by: Principal,
) -> None:
    action = Action(locked.action)
    shown = f"Stack {action} cancelled" if state is TraversalState.FAILED else reason
    verdict = ended_early(action, shown, state)
    ended = End(locked.id, locked.traversal)
    interruptible = traversals.registry.cancellable_types()
    await ending.end_traversal_early(
        conn, interruptible, ended, action, locked.version, verdict, by=by
    )


def check_settled(locked: stack_rows.Locked, what: str) -> None:
    """Raise Conflict (ActionInProgress) while a traversal of the stack is under way.

    what: completes the remedy: "check it".
    """
    if locked.state in UNDER_WAY:
        raise Conflict(
            f"Stack {locked.name} already has an action ({locked.action}) in progress.",
            remedy=f"Wait until it ends or cancel it, then {what}.",
            code="ActionInProgress",
        )


def not_supported(what: str, locked: stack_rows.Locked) -> Invalid:
    """The error for an action in progress that cannot be ended or stepped this way."""
    status = f"{locked.action}_{locked.state.upper()}"
    remedy = "Only an action in progress can be ended."
    if locked.state in UNDER_WAY:
        status = f"{locked.action}_IN_PROGRESS"
        remedy = "Stop it, or cancel it without rollback."
        if locked.action == Action.DELETE:
            remedy = "Stop it: a delete cannot be cancelled."
    reason = f"{what} when stack is {status} is not supported."
    return Invalid([Finding("", reason, remedy, "NotSupported")])
