"""The end of a traversal: its verdict, its closing event, and what follows from it.

A failed change is rolled back, if the stack says so: by a traversal toward the version that was
reached last, or toward nothing when there was none.
"""

from collections.abc import Sequence

from engine.errors import HeadgateError, Unavailable
from engine.hot.template import emptied
from engine.plan.draft import Options
from engine.plan.verdict import Verdict, ended_early, verdict
from engine.service.goals import Goal, find
from engine.service.requests import StackRequest
from engine.service.traversals import Traversals
from engine.store import credentials
from engine.store.accept import record_stack_event
from engine.store.advance import End
from engine.store.connection import Connection
from engine.store.database import all_or_nothing
from engine.store.finish import (
    Ending,
    bury,
    end_traversal,
    last_complete,
    lock_ending,
    unwell,
)
from engine.store.nested import wake_parent
from engine.store.read import read_template
from engine.store.supersede import end_early
from engine.words import Action, TraversalState

ROLLED_BACK = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.RESTORE})
TIMED_OUT = "Timed out"
_WORDS = {
    TraversalState.COMPLETE: "completed",
    TraversalState.FAILED: "failed",
    TraversalState.STOPPED: "stopped",
}


async def end(conn: Connection, traversals: Traversals, ended: End) -> None:
    """End a traversal of which nothing is left, or whose time is over.

    Nothing happens when somebody else has ended it.
    """
    ending = await lock_ending(conn, ended.stack_id, ended.traversal)
    if ending is None:
        return
    if ending.late:
        said = ended_early(ending.action, TIMED_OUT, TraversalState.FAILED)
        giving_up = traversals.registry.giving_up()
        await cut_short(conn, giving_up, ended, ending.action, ending.version, said, by="timeout")
    else:
        said = verdict(ending.action, await unwell(conn, ended.stack_id, ended.traversal))
        await _record(conn, ended, ending.action, ending.version, said)
        await end_traversal(conn, ended.stack_id, ended.traversal, said)
    await _tell_parent(conn, traversals, ended)
    if said.state is TraversalState.COMPLETE and ending.action is Action.DELETE:
        await bury(conn, ended.stack_id)
    failed = said.state is TraversalState.FAILED and ending.action in ROLLED_BACK
    if failed and not ending.disable_rollback:
        await roll_back(conn, traversals, ended, ending, ending.requested_by)
    await credentials.forget(conn, ended.stack_id)


async def _tell_parent(conn: Connection, traversals: Traversals, ended: End) -> None:
    """The node that waits for this stack goes on, with what this one acted with: its own traversal
    has kept no credential while it waited."""
    parent = await wake_parent(conn, ended.stack_id, ended.traversal)
    sealed = await credentials.read(conn, ended.stack_id, ended.traversal)
    if parent is not None and sealed is not None and traversals.sealer is not None:
        given = traversals.sealer.open(ended.stack_id, sealed)
        await traversals.keep_credential(conn, *parent, given)


async def cut_short(
    conn: Connection,
    giving_up: Sequence[str],
    ended: End,
    action: Action,
    version: int,
    said: Verdict,
    *,
    by: str,
) -> None:
    """End a traversal before its time; what acts goes on to its outcome, nothing else begins.

    giving_up: types whose operations are not to wait any longer.
    """
    stack_id, number = ended
    await end_early(conn, stack_id, number, by, said.state, said.reason, giving_up)
    await _record(conn, ended, action, version, said)


async def _record(
    conn: Connection, ended: End, action: Action, version: int, said: Verdict
) -> None:
    await record_stack_event(
        conn,
        stack_id=ended.stack_id,
        kind=f"headgate.stack.{action.lower()}.{_WORDS[said.state]}",
        action=action,
        status=said.shown,
        reason=said.reason,
        data={"traversal": ended.traversal, "version": version, "status": said.status},
    )


async def roll_back(
    conn: Connection, traversals: Traversals, ended: End, ending: Ending, by: str
) -> None:
    """Begin the way back. When there is none (a type is gone), the failure stands, and says so."""
    reached = await last_complete(conn, ended.stack_id)
    version = ending.newest + 1 if reached is None else reached
    try:
        async with all_or_nothing(conn):
            await _begin_rollback(conn, traversals, ended, ending, by, reached, version)
    except Unavailable:
        raise
    except HeadgateError as error:
        said = ended_early(Action.ROLLBACK, f"cannot roll back: {error}", TraversalState.FAILED)
        await _record(conn, ended, Action.ROLLBACK, version, said)


async def _begin_rollback(
    conn: Connection,
    traversals: Traversals,
    ended: End,
    ending: Ending,
    by: str,
    reached: int | None,
    version: int,
) -> None:
    stored = await read_template(conn, ended.stack_id, reached or ending.version)
    blueprint = await traversals.build(
        StackRequest(template=emptied(stored.template))
        if reached is None
        else StackRequest(existing=True),
        None if reached is None else stored,
        project=ending.project,
        stack_id=ended.stack_id,
        name=ending.name,
    )
    await traversals.toward(
        conn,
        Goal(
            stack_id=ended.stack_id,
            action=Action.ROLLBACK,
            number=ended.traversal + 1,
            version=version,
            blueprint=blueprint,
            found=await find(conn, ended.stack_id, blueprint),
            requested_by=by,
            stored=reached is not None,
            # What was there before we came stays when its adoption fails.
            options=Options(retains=reached is None and ending.action is Action.ADOPT),
            refuses=False,
        ),
    )
    await credentials.hand_on(conn, ended.stack_id, ended.traversal, ended.traversal + 1)
