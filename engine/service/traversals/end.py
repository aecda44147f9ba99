"""The end of a traversal: its verdict, its closing event, and the rollback of a failed change.

A rollback is a traversal toward the last complete template version, or, if there is none, toward an
empty template. Stacks with `disable_rollback` have none.
"""

from collections.abc import Sequence

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError, Unavailable
from engine.hot.template.template import empty_template
from engine.plan.draft import Options
from engine.plan.verdict import Verdict, ended_early, verdict
from engine.principal import Principal, internal
from engine.service.requests.change import DesiredState, read_current_state
from engine.service.requests.requests import StackRequest
from engine.service.traversals.start import Traversals
from engine.store import credentials
from engine.store.advance import End
from engine.store.connection import Connection
from engine.store.database import all_or_nothing
from engine.store.encryption import Sealed
from engine.store.nested_stacks import wake_parent
from engine.store.stack_queries import read_template
from engine.store.stack_rows import record_stack_event
from engine.store.traversal_end import (
    Ending,
    end_early,
    end_traversal,
    failed_nodes,
    last_complete,
    lock_ending,
    mark_deleted,
)
from engine.words import Action, TraversalState

log: FilteringBoundLogger = structlog.get_logger()

ROLLED_BACK = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.RESTORE})
TIMED_OUT = "Timed out"
_WORDS = {
    TraversalState.COMPLETE: "completed",
    TraversalState.FAILED: "failed",
    TraversalState.STOPPED: "stopped",
}


async def end(conn: Connection, traversals: Traversals, ended: End) -> None:
    """End a traversal whose nodes have all ended, or that has timed out.

    Does nothing if it has been ended already.
    """
    ending = await lock_ending(conn, ended.stack_id, ended.traversal)
    if ending is None:
        return
    if ending.late:
        outcome = ended_early(ending.action, TIMED_OUT, TraversalState.FAILED)
        interruptible = traversals.registry.cancellable_types()
        await end_traversal_early(
            conn,
            interruptible,
            ended,
            ending.action,
            ending.version,
            outcome,
            by=internal("timeout"),
        )
    else:
        outcome = verdict(ending.action, await failed_nodes(conn, ended.stack_id, ended.traversal))
        await _record(conn, ended, ending.action, ending.version, outcome)
        await end_traversal(conn, ended.stack_id, ended.traversal, outcome)
    await _wake_parent(conn, traversals, ended)
    if outcome.state is TraversalState.COMPLETE and ending.action is Action.DELETE:
        await mark_deleted(conn, ended.stack_id)
    failed = outcome.state is TraversalState.FAILED and ending.action in ROLLED_BACK
    if failed and not ending.disable_rollback:
        await roll_back(conn, traversals, ended, ending, ending.requested_by)
    await credentials.forget(conn, ended.stack_id)


async def fail(conn: Connection, ended: End, reason: str) -> None:
    """Fail a traversal for which `end` raised: without a rollback, and without the deletion of a
    deleted stack's rows. Does nothing if it has been ended already."""
    ending = await lock_ending(conn, ended.stack_id, ended.traversal)
    if ending is None or ending.late:
        return
    outcome = ended_early(ending.action, reason, TraversalState.FAILED)
    await _record(conn, ended, ending.action, ending.version, outcome)
    await end_traversal(conn, ended.stack_id, ended.traversal, outcome)
    await wake_parent(conn, ended.stack_id, ended.traversal)


async def _wake_parent(conn: Connection, traversals: Traversals, ended: End) -> None:
    """Wake the parent's node that waits for this nested stack, and pass on the credential: the
    parent's traversal stored none while it waited."""
    parent = await wake_parent(conn, ended.stack_id, ended.traversal)
    sealed = await credentials.read(conn, ended.stack_id, ended.traversal)
    if parent is not None and sealed is not None and traversals.sealer is not None:
        project = (await credentials.projects_of(conn, [ended.stack_id]))[ended.stack_id]
        try:
            credential = traversals.sealer.open(credentials.scope(project, ended.stack_id), sealed)
        except Sealed as error:  # operations that need it fail with their own errors
            log.warning("credential.undecryptable", reason=str(error))
            return
        await traversals.keep_credential(conn, *parent, credential)


async def end_traversal_early(
    conn: Connection,
    interruptible: Sequence[str],
    ended: End,
    action: Action,
    version: int,
    outcome: Verdict,
    *,
    by: Principal,
) -> None:
    """End a traversal before its nodes have ended. Running operations run to their outcomes; no
    other operation starts.

    interruptible: types whose operations stop waiting at once.
    """
    stack_id, number = ended
    await end_early(conn, stack_id, number, by, outcome.state, outcome.reason, interruptible)
    await _record(conn, ended, action, version, outcome)


async def _record(
    conn: Connection, ended: End, action: Action, version: int, outcome: Verdict
) -> None:
    await record_stack_event(
        conn,
        stack_id=ended.stack_id,
        kind=f"headgate.stack.{action.lower()}.{_WORDS[outcome.state]}",
        action=action,
        status=outcome.shown,
        reason=outcome.reason,
        data={"traversal": ended.traversal, "version": version, "status": outcome.status},
    )


async def roll_back(
    conn: Connection, traversals: Traversals, ended: End, ending: Ending, by: Principal
) -> None:
    """Start a rollback. If it is not possible (a resource type no longer exists), record an event
    with the reason; the stack stays failed. Raises Unavailable.
    """
    reached = await last_complete(conn, ended.stack_id)
    version = ending.newest + 1 if reached is None else reached
    try:
        async with all_or_nothing(conn):
            await _start_rollback(conn, traversals, ended, ending, by, reached, version)
    except Unavailable:
        raise
    except HeadgateError as error:
        reason = f"cannot roll back: {error}"
        outcome = ended_early(Action.ROLLBACK, reason, TraversalState.FAILED)
        await _record(conn, ended, Action.ROLLBACK, version, outcome)


async def _start_rollback(
    conn: Connection,
    traversals: Traversals,
    ended: End,
    ending: Ending,
    by: Principal,
    reached: int | None,
    version: int,
) -> None:
    stored = await read_template(conn, ended.stack_id, reached or ending.version)
    blueprint = await traversals.build(
        StackRequest(template=empty_template(stored.template))
        if reached is None
        else StackRequest(existing=True),
        None if reached is None else stored,
        project=ending.project,
        stack_id=ended.stack_id,
        name=ending.name,
    )
    await traversals.start_update(
        conn,
        DesiredState(
            stack_id=ended.stack_id,
            action=Action.ROLLBACK,
            number=ended.traversal + 1,
            version=version,
            blueprint=blueprint,
            current=await read_current_state(conn, ended.stack_id, blueprint),
            requested_by=by,
            stored=reached is not None,
            # A failed adoption deletes none of the adopted physical resources.
            options=Options(retains=reached is None and ending.action is Action.ADOPT),
            refuses=False,
        ),
    )
    await credentials.hand_on(conn, ended.stack_id, ended.traversal, ended.traversal + 1)
