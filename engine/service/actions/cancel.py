"""Cancel or stop the traversal under way, or run it to a given resource."""

from collections.abc import Sequence
from uuid import UUID

from engine.errors import Conflict, Finding, Invalid
from engine.plan.verdict import ended_early
from engine.principal import Principal
from engine.service.hooks.answering import HookAnswers
from engine.service.hooks.breakpoints import LiveBreakpoints
from engine.service.hooks.missed_breakpoints import MissedBreakpoint
from engine.service.requests.requests import Answer
from engine.service.requests.root_stack import check_root_stack
from engine.service.traversals import end as ending
from engine.service.traversals.start import UNDER_WAY
from engine.store import stack_rows
from engine.store.advance import End
from engine.store.connection import Connection
from engine.store.stack_tree import lock_stack_tree, within
from engine.store.traversal_end import Ending
from engine.words import Action, TraversalState


class Cancellation(HookAnswers):
    breakpoints: LiveBreakpoints

    async def cancel(self, project: str, stack_id: UUID, by: Principal, *, rollback: bool) -> None:
        """End the traversal under way as FAILED; with rollback, start a rollback.

        Raises NotFound; Invalid (NotSupported) if no traversal is under way or its action cannot
        be cancelled this way.
        """
        cancellable = {Action.UPDATE, Action.RESTORE} if rollback else {*Action} - {Action.DELETE}
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            check_root_stack(locked, "cancelled")
            if locked.state not in UNDER_WAY or locked.action not in cancellable:
                raise _not_supported("Cancelling update", locked)
            await self._end_early(conn, project, locked, TraversalState.FAILED, "cancelled", by)
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
                await ending.roll_back(conn, self._traversals, ended, ending_before, by)
        self._wake()

    async def stop(self, project: str, stack_id: UUID, by: Principal) -> None:
        """End the traversal under way as STOPPED; an update resumes it.

        Raises NotFound; Invalid (NotSupported) if no traversal is under way.
        """
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            check_root_stack(locked, "stopped")
            if locked.state not in UNDER_WAY:
                raise _not_supported("Stopping", locked)
            reason = f"Stopped: by {by}; update the stack to resume"
            await self._end_early(conn, project, locked, TraversalState.STOPPED, reason, by)
        self._wake()

    async def _end_early(
        self,
        conn: Connection,
        project: str,
        locked: stack_rows.Locked,
        state: TraversalState,
        reason: str,
        by: Principal,
    ) -> None:
        action = Action(locked.action)
        shown = f"Stack {action} cancelled" if state is TraversalState.FAILED else reason
        verdict = ended_early(action, shown, state)
        ended = End(locked.id, locked.traversal)
        interruptible = self._traversals.registry.giving_up()
        await ending.end_traversal_early(
            conn, interruptible, ended, action, locked.version, verdict, by=by
        )

    async def run_to(
        self, project: str, stack_id: UUID, path: str, answer: Answer
    ) -> Sequence[MissedBreakpoint]:
        """Continue all hooks of stepping and of breakpoints, and stop before the operations of one
        resource. path: of the resource, from the stack: ``web/db``.

        Returns the nodes that have already passed the breakpoint. Raises NotFound if no node of
        the resource is pending; Invalid (NotSupported) if no traversal is under way.
        """
        async with self._database.transaction("answer", replan=True) as conn:
            tree = within(await lock_stack_tree(conn, stack_id))
            locked = await self._traversals.lock(conn, project, stack_id)
            if locked.state not in UNDER_WAY:
                raise _not_supported("Running to a resource", locked)
            missed = await self.breakpoints.add_run_to(conn, locked, tree, path)
            await self.continue_all(conn, tree, answer)
        self._wake()
        return missed


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


def _not_supported(what: str, locked: stack_rows.Locked) -> Invalid:
    status = f"{locked.action}_{locked.state.upper()}"
    remedy = "Only an action in progress can be ended."
    if locked.state in UNDER_WAY:
        status = f"{locked.action}_IN_PROGRESS"
        remedy = "Stop it, or cancel it without rollback."
        if locked.action == Action.DELETE:
            remedy = "Stop it: a delete cannot be cancelled."
    reason = f"{what} when stack is {status} is not supported."
    return Invalid([Finding("", reason, remedy, "NotSupported")])
