"""What is under way, ended or run on at somebody's word: cancel, stop, run to a place."""

from collections.abc import Sequence
from uuid import UUID

from engine.errors import Conflict, Finding, Invalid
from engine.plan.verdict import ended_early
from engine.service import ending
from engine.service.answering import Answering
from engine.service.breakpoints import LiveBreakpoints
from engine.service.late import Late
from engine.service.outermost import check_outermost
from engine.service.requests import Answer
from engine.service.traversals import UNDER_WAY
from engine.store import accept
from engine.store.advance import End
from engine.store.connection import Connection
from engine.store.finish import Ending
from engine.store.kin import lock_kin, within
from engine.words import Action, TraversalState


class Interrupting(Answering):
    breakpoints: LiveBreakpoints

    async def cancel(self, project: str, stack_id: UUID, by: str, *, rollback: bool) -> None:
        """End what is under way as FAILED; with rollback, begin the way back.

        Invalid (NotSupported) when what is under way cannot be cancelled so.
        """
        may = {Action.UPDATE, Action.RESTORE} if rollback else {*Action} - {Action.DELETE}
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            check_outermost(locked, "cancelled")
            if locked.state not in UNDER_WAY or locked.action not in may:
                raise _not_now("Cancelling update", locked)
            await self._end_early(conn, project, locked, TraversalState.FAILED, "cancelled", by)
            if rollback:
                ended = End(stack_id, locked.traversal)
                way_back = Ending(
                    late=True,
                    action=Action(locked.action),
                    version=locked.version,
                    requested_by=by,
                    project=project,
                    name=locked.name,
                    disable_rollback=False,
                    newest=locked.newest,
                )
                await ending.roll_back(conn, self._traversals, ended, way_back, by)
        self._wake()

    async def stop(self, project: str, stack_id: UUID, by: str) -> None:
        """End what is under way as STOPPED; an update goes on. Invalid when nothing is."""
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            check_outermost(locked, "stopped")
            if locked.state not in UNDER_WAY:
                raise _not_now("Stopping", locked)
            reason = f"Stopped: {by} asked for it; update the stack to resume"
            await self._end_early(conn, project, locked, TraversalState.STOPPED, reason, by)
        self._wake()

    async def _end_early(
        self,
        conn: Connection,
        project: str,
        locked: accept.Locked,
        state: TraversalState,
        reason: str,
        by: str,
    ) -> None:
        action = Action(locked.action)
        said = f"Stack {action} cancelled" if state is TraversalState.FAILED else reason
        verdict = ended_early(action, said, state)
        ended = End(locked.id, locked.traversal)
        giving_up = self._traversals.registry.giving_up()
        await ending.cut_short(conn, giving_up, ended, action, locked.version, verdict, by=by)

    async def run_to(
        self, project: str, stack_id: UUID, path: str, answer: Answer
    ) -> Sequence[Late]:
        """Let what waits for whoever debugs go on, and hold a resource before its operation. path:
        from the stack: ``web/db``.

        Returns the nodes it came too late for. NotFound when the resource has nothing ahead;
        Invalid (NotSupported) when nothing is under way.
        """
        async with self._database.transaction("answer", replan=True) as conn:
            kin = within(await lock_kin(conn, stack_id))
            locked = await self._traversals.lock(conn, project, stack_id)
            if locked.state not in UNDER_WAY:
                raise _not_now("Running on", locked)
            late = await self.breakpoints.hold_here(conn, locked, kin, path)
            await self.go_on(conn, kin, answer)
        self._wake()
        return late


def check_settled(locked: accept.Locked, what: str) -> None:
    """Conflict (ActionInProgress) while a traversal of the stack is under way."""
    if locked.state in UNDER_WAY:
        raise Conflict(
            f"Stack {locked.name} already has an action ({locked.action}) in progress.",
            remedy=f"Wait for its end or cancel it, then {what}.",
            code="ActionInProgress",
        )


def _not_now(what: str, locked: accept.Locked) -> Invalid:
    status = f"{locked.action}_{locked.state.upper()}"
    remedy = "Only what is in progress can be ended."
    if locked.state in UNDER_WAY:
        status = f"{locked.action}_IN_PROGRESS"
        remedy = "Stop it, or cancel it without rollback."
        if locked.action == Action.DELETE:
            remedy = "Stop it: a delete has no way back."
    reason = f"{what} when stack is {status} is not supported."
    return Invalid([Finding("", reason, remedy, "NotSupported")])
