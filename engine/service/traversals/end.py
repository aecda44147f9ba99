"""The end of a traversal: its result, its closing event, and the rollback of a failed change.

A rollback is a traversal toward the last complete template version, or, if there is none, toward an
empty template. Stacks with `disable_rollback` have none, and neither have repairs of drift that a
policy or an answer to a hook has started.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Findings, HeadgateError, Unavailable
from engine.hot.template.moved_and_imported import imported_names, read_moved
from engine.hot.template.template import empty_template
from engine.plan.draft import Options
from engine.plan.traversal_result import TraversalResult, ended_early, result_of
from engine.principal import Principal, internal
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.desired_state import DesiredState, read_current_state
from engine.service.requests.requests import StackRequest
from engine.service.requests.stack_region import change_region_back
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.database import savepoint
from engine.store.encryption.secret_values import DecryptionFailed
from engine.store.observer import drift_rows
from engine.store.records import TemplateRecord
from engine.store.resources import resource_rows
from engine.store.resources.overrides import read_ended_overrides
from engine.store.stacks.stack_rows import (
    mark_deleted,
    record_stack_event,
    store_region_of_version,
)
from engine.store.stacks.templates import read_requesters, read_template
from engine.store.traversals import traversal_credentials
from engine.store.traversals.advance import TraversalToEnd
from engine.store.traversals.end import (
    CompletedTraversals,
    EndingTraversal,
    cancel_operations,
    complete_traversals,
    end_early,
    end_traversal,
    failed_nodes,
    last_complete,
    lock_ending,
)
from engine.store.traversals.nested_stacks import read_nested_tree, wake_parent
from engine.types.registry import TypeRegistry
from engine.words import Action, Json, TraversalState
from engine.work.observer.drift_hooks import OBSERVER

log: FilteringBoundLogger = structlog.get_logger()

ROLLED_BACK = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.RESTORE})
TIMED_OUT = "Timed out"
_WORDS = {
    TraversalState.COMPLETE: "completed",
    TraversalState.FAILED: "failed",
    TraversalState.STOPPED: "stopped",
}


async def end_complete(conn: Connection, ends: Sequence[TraversalToEnd]) -> CompletedTraversals:
    """End those of the traversals whose nodes have all succeeded and that `end` need not end."""
    return await complete_traversals(conn, ends, COMPLETE_RESULTS)


async def end(conn: Connection, traversals: Traversals, ended: TraversalToEnd) -> None:
    """End a traversal whose nodes have all ended, or that has timed out.

    Does nothing if it has been ended already.
    """
    ending = await lock_ending(conn, ended.stack_id, ended.traversal)
    if ending is None:
        return
    rolls_back = (
        ending.action in ROLLED_BACK
        and not ending.disable_rollback
        and not await _is_repair(conn, ended, ending)
    )
    if ending.timed_out:
        outcome = ended_early(ending.action, TIMED_OUT, TraversalState.FAILED)
        await end_traversal_early(
            conn,
            traversals.registry,
            ended,
            ending.action,
            ending.version,
            outcome,
            by=internal("timeout"),
            cancels=True,
        )
    else:
        failed = await failed_nodes(conn, ended.stack_id, ended.traversal)
        outcome = result_of(ending.action, failed, nested=ending.nested)
        await _record(conn, ended, ending.action, ending.version, outcome)
        await end_traversal(conn, ended.stack_id, ended.traversal, outcome)
    if ending.nested:
        await _wake_parent(conn, traversals, ended)
    if outcome.state is TraversalState.COMPLETE and ending.action is Action.DELETE:
        await mark_deleted(conn, ended.stack_id)
    if outcome.state is TraversalState.COMPLETE and ending.action is Action.ROLLBACK:
        await store_region_of_version(conn, ended.stack_id, ending.version)
    if rolls_back and outcome.state is TraversalState.FAILED:
        await roll_back(conn, traversals, ended, ending, ending.requested_by)
    if ending.has_credentials:
        await traversal_credentials.delete_unused(conn, ended.stack_id)


async def _is_repair(conn: Connection, ended: TraversalToEnd, ending: EndingTraversal) -> bool:
    """Whether the traversal is a repair of drift by a policy or an answer to a hook. A rollback
    would change more than what has drift. The other conditions are of those that a process of an
    earlier release has started."""
    if ending.requested_by.id == OBSERVER.id:
        return True
    if await drift_rows.is_repair(conn, ended.stack_id, ended.traversal):
        return True
    return ending.has_credentials and await traversal_credentials.is_handed_over(
        conn, ended.stack_id, ended.traversal
    )


async def fail(conn: Connection, ended: TraversalToEnd, reason: str) -> None:
    """Fail a traversal for which `end` raised: without a rollback, and without the deletion of a
    deleted stack's rows. Does nothing if it has been ended already."""
    ending = await lock_ending(conn, ended.stack_id, ended.traversal)
    if ending is None or ending.timed_out:
        return
    outcome = ended_early(ending.action, reason, TraversalState.FAILED)
    await _record(conn, ended, ending.action, ending.version, outcome)
    await end_traversal(conn, ended.stack_id, ended.traversal, outcome)
    await wake_parent(conn, ended.stack_id, ended.traversal)


async def _wake_parent(conn: Connection, traversals: Traversals, ended: TraversalToEnd) -> None:
    """Wake the parent's node that waits for this nested stack, and pass on the credential: the
    parent's traversal stored none while it waited."""
    parent = await wake_parent(conn, ended.stack_id, ended.traversal)
    if parent is None or traversals.keyring is None:
        return
    encrypted = await traversal_credentials.read(conn, ended.stack_id, ended.traversal)
    if encrypted is not None:
        project = (await traversal_credentials.projects_of(conn, [ended.stack_id]))[ended.stack_id]
        try:
            scope = traversal_credentials.scope(project, ended.stack_id)
            credential = traversals.keyring.decrypt(scope, encrypted)
        except DecryptionFailed as error:  # operations that need it fail with their own errors
            log.warning("credential.undecryptable", reason=str(error))
            return
        await traversals.keep_credential(conn, *parent, credential)


async def end_traversal_early(
    conn: Connection,
    registry: TypeRegistry,
    ended: TraversalToEnd,
    action: Action,
    version: int,
    outcome: TraversalResult,
    *,
    by: Principal,
    cancels: bool,
) -> None:
    """End a traversal before its nodes have ended; no other operation starts.

    cancels: running operations are cancelled; else they run to their outcomes, except those that
    another change may supersede.
    """
    stack_id, number = ended
    supersedable = registry.supersedable_types()
    await end_early(conn, stack_id, number, by, outcome.state, outcome.reason, supersedable)
    if cancels:
        await cancel_operations(conn, stack_id, registry.cancellable_types())
    await _record(conn, ended, action, version, outcome)


def _event_type(action: Action, outcome: TraversalResult) -> str:
    return f"headgate.stack.{action.lower()}.{_WORDS[outcome.state]}"


#: By action: the result of a traversal whose nodes have all succeeded, and the type of its event.
COMPLETE_RESULTS: Mapping[str, Json] = {
    str(action): {**asdict(outcome), "event_type": _event_type(action, outcome)}
    for action in Action
    for outcome in (result_of(action, ()),)
}


async def _record(
    conn: Connection, ended: TraversalToEnd, action: Action, version: int, outcome: TraversalResult
) -> None:
    await record_stack_event(
        conn,
        stack_id=ended.stack_id,
        kind=_event_type(action, outcome),
        action=action,
        status=outcome.shown,
        reason=outcome.reason,
        data={"traversal": ended.traversal, "version": version, "status": outcome.status},
    )


async def roll_back(
    conn: Connection,
    traversals: Traversals,
    ended: TraversalToEnd,
    ending: EndingTraversal,
    by: Principal,
) -> None:
    """Start a rollback. If it is not possible (a resource type no longer exists), record an event
    with the reason; the stack stays failed. Raises Unavailable.
    """
    reached = await last_complete(conn, ended.stack_id)
    version = ending.newest + 1 if reached is None else reached
    try:
        async with savepoint(conn):
            await _start_rollback(conn, traversals, ended, ending, by, reached, version)
    except Unavailable:
        raise
    except HeadgateError as error:
        reason = f"cannot roll back: {error}"
        outcome = ended_early(Action.ROLLBACK, reason, TraversalState.FAILED)
        await _record(conn, ended, Action.ROLLBACK, version, outcome)


async def _undo_moves(
    conn: Connection, stack_id: UUID, failed: TemplateRecord, blueprint: Blueprint
) -> None:
    """Give resources that the failed version moved their earlier names again. The caller has locked
    the stack."""
    names = blueprint.definition.resources.keys()
    section = failed.template.get("moved")
    for one in read_moved(section, failed.template.get("resources") or {}, Findings()):
        if one.name not in names or one.to in names:
            continue
        found = await resource_rows.find_resource(conn, stack_id, one.to)
        taken = await resource_rows.find_resource(conn, stack_id, one.name)
        if found is not None and taken is None:
            await resource_rows.move(conn, stack_id, found.id, stack_id, one.name)
            way = resource_rows.ResourceMove(stack_id, one.to, stack_id, one.name)
            reason = f"renamed from {one.to}"
            await resource_rows.record_move(conn, stack_id, one.name, found, reason, way)


async def _start_rollback(
    conn: Connection,
    traversals: Traversals,
    ended: TraversalToEnd,
    ending: EndingTraversal,
    by: Principal,
    reached: int | None,
    version: int,
) -> None:
    stored = await read_template(conn, ended.stack_id, reached or ending.version)
    blueprint = await traversals.blueprints.build(
        StackRequest(template=empty_template(stored.template), current_region=ending.region)
        if reached is None
        else StackRequest(existing=True),
        None if reached is None else stored,
        project=ending.project,
        stack_id=ended.stack_id,
        name=ending.name,
        conn=conn,
        # The stack returns to the values of that version.
        known={} if reached is None else stored.read_outputs(),
    )
    configured = traversals.limits.region
    await change_region_back(conn, ended.stack_id, ending.region, blueprint, configured)
    failed = await read_template(conn, ended.stack_id, ending.version)
    await _undo_moves(conn, ended.stack_id, failed, blueprint)
    excluded = await read_requesters(conn, ended.stack_id, reached, scales=False) if reached else []
    # A failed adoption deletes none of the adopted physical resources.
    abandons = reached is None and ending.action is Action.ADOPT
    if abandons:
        for nested in reversed(await read_nested_tree(conn, ended.stack_id)):
            await mark_deleted(conn, nested)
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
            overrides=await read_ended_overrides(conn, ended.stack_id, rolls_back=True),
            excluded=excluded,
            options=Options(
                retains=abandons,
                # A failed import deletes none, either.
                retained=imported_names(failed.template) - blueprint.definition.resources.keys(),
            ),
            refuses=False,
        ),
    )
    await traversal_credentials.copy(conn, ended.stack_id, ended.traversal, ended.traversal + 1)
