"""The end of a traversal: its verdict, its closing event, and the burial of a deleted stack."""

from uuid import UUID

from engine.plan.verdict import verdict
from engine.store.accept import record_stack_event
from engine.store.database import Connection
from engine.store.finish import end_traversal as write_end
from engine.store.finish import lock_ending, unwell
from engine.words import Action, TraversalState


async def end_traversal(conn: Connection, stack_id: UUID, traversal: int) -> None:
    """End a traversal of which nothing is left; nothing happens when somebody else has."""
    ending = await lock_ending(conn, stack_id, traversal)
    if ending is None:
        return
    action, version = ending
    said = verdict(action, await unwell(conn, stack_id, traversal))
    bury = action is Action.DELETE and said.state is TraversalState.COMPLETE
    await record_stack_event(
        conn,
        stack_id=stack_id,
        kind=f"headgate.stack.{action.lower()}.{_WORDS[said.state]}",
        action=action,
        status=said.shown,
        reason=said.reason,
        data={"traversal": traversal, "version": version, "status": said.status},
    )
    await write_end(conn, stack_id, traversal, said, bury=bury)


_WORDS = {
    TraversalState.COMPLETE: "completed",
    TraversalState.FAILED: "failed",
    TraversalState.STOPPED: "stopped",
}
