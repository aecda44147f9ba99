"""Operations of resources that own a nested stack: start a traversal of it and wait for its end.

`NestedStacks.run_operation` is one call of such an operation. The command that the type returns
(`RunNested`) is started in one transaction that locks both stacks, and recorded with the operation
key, so that each step runs once even if a process crashes. Then the node waits without a timer; the
end of the nested traversal wakes it (engine/service/traversals/end.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import NamedTuple, assert_never
from uuid import UUID

from engine.hooks.rule_matching import cleared_inside
from engine.plan.verdict import ended_early
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.change import (
    CurrentState,
    DesiredState,
    live_breakpoints,
    read_current_state,
)
from engine.service.requests.external_validation import ExternalValidation
from engine.service.requests.immutable_parameters import check_immutable
from engine.service.requests.nested_stack import (
    NestedStack,
    Resource,
    build_nested,
    nested_name,
    read_parent,
)
from engine.service.traversals import end as ending
from engine.service.traversals.children import Children
from engine.service.traversals.start import UNDER_WAY, Traversals
from engine.store import nested_stacks, stack_rows
from engine.store.advance import Claim, End, Work
from engine.store.connection import Connection
from engine.store.current_resources import read_existing
from engine.store.database import Database
from engine.store.nested_stacks import ChildRecord, Held
from engine.store.stack_queries import read_template
from engine.store.traversal_start import Within
from engine.types.contract import (
    ActOnNested,
    Call,
    DeleteNested,
    Failed,
    Outcome,
    ReconcileNested,
    RunNested,
    Stopped,
    Wait,
)
from engine.words import Action, DeletionPolicy, Operation, TraversalState
from engine.work.prepare import Inputs, Prepared
from engine.work.visible_properties import kept_view

#: The most nested stacks that a process reads and plans at the same time, to bound its memory.
MOST_CONCURRENT = 4
IN_PLACE_ACTIONS = {
    Operation.CHECK: Action.CHECK,
    Operation.SUSPEND: Action.SUSPEND,
    Operation.RESUME: Action.RESUME,
}
#: Calls the operation of the resource type.
Run = Callable[[Call], Outcome | Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of an operation: a command for its nested stack."""

    prepared: Prepared
    call: Call
    nest: RunNested
    child: ChildRecord | None

    @property
    def claim(self) -> Claim:
        return self.prepared.work.key

    @property
    def within(self) -> Within:
        return Within(
            self.claim.traversal, self.claim.node, self.call.operation_key, self.nest.step
        )


class NestedStacks:
    def __init__(
        self,
        database: Database,
        traversals: Traversals,
        external_validation: ExternalValidation,
        *,
        new_id: Callable[[], UUID],
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._external_validation = external_validation
        self._new_id = new_id
        self._wake = wake
        self._children = Children(database, traversals.registry)
        self._slots = asyncio.Semaphore(MOST_CONCURRENT)

    async def run_operation(self, prepared: Prepared, call: Call, run: Run) -> Outcome:
        """Call an operation; if it returns a command for the nested stack, start that.

        Raises what the operation and the start of a traversal raise.
        """
        work = prepared.work
        child = await self._children.find(work, call)
        if child is not None and child.is_brought_by(call.operation_key):
            if not call.superseded:
                return Wait(None, call.progress)
            await self._end_child_early(work, child)
            child = await self._children.find(work, call)
        view = None if child is None else await self._children.read(child, call.operation_key)
        has_secrets = bool(_resource(prepared).secret)
        named = await self._children.read_referenced(prepared)
        result = run(replace(call, child=view, has_secrets=has_secrets, referenced=named))
        outcome = await result if isawaitable(result) else result
        if not isinstance(outcome, RunNested):
            return outcome
        async with self._slots:
            return await self._start(_Step(prepared, call, outcome, child))

    async def _end_child_early(self, work: Work, child: ChildRecord) -> None:
        """End the nested traversal early, with the state of the parent's traversal."""
        stopped = work.traversal_state == TraversalState.STOPPED
        state = TraversalState.STOPPED if stopped else TraversalState.FAILED
        async with self._database.transaction("nest") as conn:
            await nested_stacks.lock_both(conn, [work.key.stack_id, child.id])
            locked = await stack_rows.lock_stack(conn, work.project, child.id)
            if locked is None or locked.state not in UNDER_WAY:
                return
            action = Action(locked.action)
            verdict = ended_early(action, _WHY[work.traversal_state].format(action), state)
            end = End(locked.id, locked.traversal)
            interruptible = self._traversals.registry.cancellable_types()
            by = locked.requested_by
            await ending.end_traversal_early(
                conn, interruptible, end, action, locked.version, verdict, by=by
            )

    async def _start(self, step: _Step) -> Outcome:
        """Start the step, unless another worker has the node or its traversal has ended."""
        command, child = step.nest.goal, step.child
        async with self._database.connection() as conn:
            held = await nested_stacks.held(conn, step.claim)
        waiting = Wait(None, step.nest.progress)
        if held is None:
            return waiting  # another worker has claimed the node: the outcome is discarded
        plan = (
            await self._plan(step, command, held) if isinstance(command, ReconcileNested) else None
        )
        async with self._database.transaction("nest") as conn:
            family = [step.claim.stack_id, *([child.id] if child else [])]
            await nested_stacks.lock_both(conn, family)
            held = await nested_stacks.held(conn, step.claim)
            if held is None:
                return waiting
            if held.state != TraversalState.RUNNING:
                return _outcome_of_ended(held.state, child)
            if plan is not None:
                await self._update(conn, step, plan, held)
            elif child is not None and not isinstance(command, ReconcileNested):
                await self._delete_or_act(conn, step, command, child, held)
            else:
                reason = "it has no nested stack"
                return Failed(reason, public_reason=reason)
        self._wake()
        return waiting

    async def _plan(self, step: _Step, command: ReconcileNested, held: Held) -> "_Plan":
        """Build the nested stack's definition, before anything is locked. Raises Invalid."""
        work, call, child = step.prepared.work, step.call, step.child
        async with self._database.connection() as conn:
            parent = await read_template(conn, work.key.stack_id, held.version)
        stack_id = self._new_id() if child is None else child.id
        name = child.name if child else nested_name(work.stack_name, work.name, stack_id)
        limits = self._traversals.limits.of(work.project)
        nested_stack = NestedStack(stack_id, name, work.project, work.place.split("/"), held.asked)
        registry = self._traversals.registry
        blueprint = await self._traversals.thread_pool(
            lambda: build_nested(
                read_parent(parent, limits),
                command,
                _resource(step.prepared),
                nested_stack,
                registry=registry,
                limits=limits,
            ),
            work.project,
        )
        await self._external_validation.validate(
            blueprint.definition, work.project, call.credential
        )
        return _Plan(stack_id, name, blueprint)

    async def _update(self, conn: Connection, step: _Step, plan: "_Plan", held: Held) -> None:
        """Start a traversal that creates or updates the nested stack."""
        work, call = step.prepared.work, step.call
        number, version, action, current = 1, 1, Action.CREATE, None
        if step.child is None:
            await nested_stacks.insert_child(
                conn, plan.stack_id, plan.name, work.key.stack_id, call.resource_id, work.name
            )
        else:
            locked = await self._traversals.lock(conn, work.project, plan.stack_id)
            await self._traversals.supersede(conn, locked, held.requested_by)
            number, version, action = locked.traversal + 1, locked.newest + 1, Action.UPDATE
            await check_immutable(conn, plan.stack_id, locked.version, plan.blueprint)
            current = await read_current_state(conn, plan.stack_id, plan.blueprint)
        desired = DesiredState(
            stack_id=plan.stack_id,
            action=action,
            number=number,
            version=version,
            blueprint=plan.blueprint,
            current=current or CurrentState(live=await live_breakpoints(conn, plan.stack_id)),
            requested_by=held.requested_by,
            cleared=cleared_inside(held.cleared, work.name),
            refuses=False,
            credential=call.credential,
            within=step.within,
        )
        planned = await self._traversals.start_update(conn, desired)
        quotas = self._traversals.limits.of(work.project).quotas
        await quotas.check_change(conn, work.project, planned)

    async def _delete_or_act(
        self,
        conn: Connection,
        step: _Step,
        command: DeleteNested | ActOnNested,
        child: ChildRecord,
        held: Held,
    ) -> None:
        """Start a traversal that deletes the nested stack or runs an in-place action on it."""
        project, by = step.prepared.work.project, held.requested_by
        locked = await self._traversals.lock(conn, project, child.id)
        await self._traversals.supersede(conn, locked, by)
        match command:
            case DeleteNested():
                existing = await read_existing(conn, child.id)
                await self._traversals.start_delete(conn, locked, existing, by, step.within)
            case ActOnNested(operation=operation):
                action = IN_PLACE_ACTIONS[operation]
                await self._traversals.start_action(
                    conn, locked, action, operation, by, step.within
                )
            case _ as never:
                assert_never(never)
        await self._traversals.keep_credential(
            conn, child.id, locked.traversal + 1, step.call.credential
        )


class _Plan(NamedTuple):
    stack_id: UUID
    name: str
    blueprint: Blueprint


#: Why a nested traversal ends early, by the state of the parent's traversal.
_WHY: Mapping[str, str] = {
    TraversalState.SUPERSEDED: "superseded by a newer change",
    TraversalState.STOPPED: "Stopped: the parent stack was stopped",
    TraversalState.FAILED: "Stack {} cancelled",
    TraversalState.COMPLETE: "Stack {} cancelled",
}


def _outcome_of_ended(state: str, child: ChildRecord | None) -> Outcome:
    """The outcome of an operation whose traversal ended before the step could start."""
    physical_id = str(child.id) if child else None
    if state == TraversalState.STOPPED:
        reason = "Stopped: before it was carried out"
        return Stopped(reason, physical_id, public_reason=reason)
    reason = "superseded by a newer change"
    return Failed(reason, physical_id, public_reason=reason)


def _resource(prepared: Prepared) -> Resource:
    work, shown = prepared.work, kept_view(prepared)
    properties = prepared.properties
    secret = frozenset(
        name for name in properties if shown is not None and shown.get(name) != properties[name]
    )
    policy = (work.definition or {}).get("deletion_policy", DeletionPolicy.DELETE)
    metadata, updating = work.metadata_now or {}, work.update_policy_now or {}
    return Resource(work.name, str(policy), metadata, updating, secret, _secret_parts(work))


def _secret_parts(work: Work) -> frozenset[str]:
    """The values of `resource_facade` that may hold secrets in the nested stack."""
    definition = work.definition or {}
    names = ("secret_metadata", "secret_policy")
    if Inputs(work.inputs or {}).has_secrets or any(definition.get(name) for name in names):
        return frozenset({"metadata", "update_policy"})
    return frozenset()
