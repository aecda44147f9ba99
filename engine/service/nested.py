"""Operations of resources that hold a stack of their own: the stack is begun, and waited for.

`Nested.carry` is one call of such an operation. What the type asks for (`Nest`) is begun in one
transaction under the locks of both stacks, and remembered with the key of the operation: so each
step is carried out once, whoever crashes. Then the node waits, without a timer; the end of the
stack inside wakes it (engine/service/ending.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import NamedTuple, assert_never
from uuid import UUID

from engine.hooks.matching import cleared_inside
from engine.plan.verdict import ended_early
from engine.service import ending
from engine.service.asking import Asking
from engine.service.blueprint import Blueprint
from engine.service.children import Children
from engine.service.fixed import check_immutable
from engine.service.goals import Found, Goal, find, live_breakpoints
from engine.service.inside import Inside, Resource, build_inside, name_inside, read_around
from engine.service.traversals import UNDER_WAY, Traversals
from engine.store import accept, nested
from engine.store.advance import Claim, End, Work
from engine.store.begin import Within
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.existing import read_existing
from engine.store.nested import ChildRecord, Held
from engine.store.read import read_template
from engine.types.contract import (
    Away,
    Call,
    Failed,
    Nest,
    Outcome,
    Stopped,
    Toward,
    Visit,
    Wait,
)
from engine.words import Action, DeletionPolicy, Operation, TraversalState
from engine.work.notices import kept_view
from engine.work.prepare import Prepared

#: Stacks inside that a process reads and plans at once; each may be as large as any.
AT_ONCE = 4
VISITING = {
    Operation.CHECK: Action.CHECK,
    Operation.SUSPEND: Action.SUSPEND,
    Operation.RESUME: Action.RESUME,
}
#: Calls the operation.
Run = Callable[[Call], Outcome | Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A step that an operation asks for."""

    prepared: Prepared
    call: Call
    nest: Nest
    child: ChildRecord | None

    @property
    def claim(self) -> Claim:
        return self.prepared.work.key

    @property
    def within(self) -> Within:
        return Within(
            self.claim.traversal, self.claim.node, self.call.operation_key, self.nest.step
        )


class Nested:
    def __init__(
        self,
        database: Database,
        traversals: Traversals,
        asking: Asking,
        *,
        new_id: Callable[[], UUID],
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._asking = asking
        self._new_id = new_id
        self._wake = wake
        self._children = Children(database, traversals.registry)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def carry(self, prepared: Prepared, call: Call, run: Run) -> Outcome:
        """Call an operation; begin what it asks of the stack inside. Raises what that raises."""
        work = prepared.work
        child = await self._children.find(work, call)
        if child is not None and child.is_brought_by(call.operation_key):
            if not call.superseded:
                return Wait(None, call.progress)
            await self._cut_short(work, child)
            child = await self._children.find(work, call)
        seen = None if child is None else await self._children.seen(child, call.operation_key)
        hides = bool(_resource(prepared).secret)
        named = await self._children.named(prepared)
        said = run(replace(call, child=seen, hides=hides, named=named))
        outcome = await said if isawaitable(said) else said
        if not isinstance(outcome, Nest):
            return outcome
        async with self._turns:
            return await self._begin(_Asked(prepared, call, outcome, child))

    async def _cut_short(self, work: Work, child: ChildRecord) -> None:
        """What the stack around no longer wants ends inside, too, as it ended around."""
        stopped = work.traversal_state == TraversalState.STOPPED
        state = TraversalState.STOPPED if stopped else TraversalState.FAILED
        async with self._database.transaction("nest") as conn:
            await nested.lock_both(conn, [work.key.stack_id, child.id])
            locked = await accept.lock_stack(conn, work.project, child.id)
            if locked is None or locked.state not in UNDER_WAY:
                return
            action = Action(locked.action)
            verdict = ended_early(action, _WHY[work.traversal_state].format(action), state)
            end = End(locked.id, locked.traversal)
            giving_up = self._traversals.registry.giving_up()
            by = locked.requested_by
            await ending.cut_short(conn, giving_up, end, action, locked.version, verdict, by=by)

    async def _begin(self, asked: _Asked) -> Outcome:
        """Begin the step, unless the node is somebody else's by now, or its traversal is over."""
        goal, child = asked.nest.goal, asked.child
        async with self._database.connection() as conn:
            held = await nested.held(conn, asked.claim)
        waiting = Wait(None, asked.nest.progress)
        if held is None:
            return waiting  # what is said for a node that somebody else has is left out
        plan = await self._planned(asked, goal, held) if isinstance(goal, Toward) else None
        async with self._database.transaction("nest") as conn:
            family = [asked.claim.stack_id, *([child.id] if child else [])]
            await nested.lock_both(conn, family)
            held = await nested.held(conn, asked.claim)
            if held is None:
                return waiting
            if held.state != TraversalState.RUNNING:
                return _over(held.state, child)
            if plan is not None:
                await self._toward(conn, asked, plan, held)
            elif child is not None and not isinstance(goal, Toward):
                await self._leave(conn, asked, goal, child, held)
            else:
                return Failed("there is no stack inside")
        self._wake()
        return waiting

    async def _planned(self, asked: _Asked, goal: Toward, held: Held) -> "_Plan":
        """What the stack inside is to be, read before anything is locked."""
        work, call, child = asked.prepared.work, asked.call, asked.child
        async with self._database.connection() as conn:
            around = await read_template(conn, work.key.stack_id, held.version)
        stack_id = self._new_id() if child is None else child.id
        name = child.name if child else name_inside(work.stack_name, work.name, stack_id)
        limits = self._traversals.limits.of(work.project)
        inside = Inside(stack_id, name, work.project, work.place.split("/"), held.asked)
        registry = self._traversals.registry
        blueprint = await self._traversals.aside(
            lambda: build_inside(
                read_around(around, limits),
                goal,
                _resource(asked.prepared),
                inside,
                registry=registry,
                limits=limits,
            )
        )
        await self._asking.ask(blueprint.definition, work.project, call.credential)
        return _Plan(stack_id, name, blueprint)

    async def _toward(self, conn: Connection, asked: _Asked, plan: "_Plan", held: Held) -> None:
        work, call = asked.prepared.work, asked.call
        number, version, action, found = 1, 1, Action.CREATE, None
        if asked.child is None:
            await nested.insert_child(
                conn, plan.stack_id, plan.name, work.key.stack_id, call.resource_id, work.name
            )
        else:
            locked = await self._traversals.lock(conn, work.project, plan.stack_id)
            await self._traversals.supersede(conn, locked, held.requested_by)
            number, version, action = locked.traversal + 1, locked.newest + 1, Action.UPDATE
            await check_immutable(conn, plan.stack_id, locked.version, plan.blueprint)
            found = await find(conn, plan.stack_id, plan.blueprint)
        goal = Goal(
            stack_id=plan.stack_id,
            action=action,
            number=number,
            version=version,
            blueprint=plan.blueprint,
            found=found or Found(live=await live_breakpoints(conn, plan.stack_id)),
            requested_by=held.requested_by,
            cleared=cleared_inside(held.cleared, work.name),
            refuses=False,
            credential=call.credential,
            within=asked.within,
        )
        planned = await self._traversals.toward(conn, goal)
        quotas = self._traversals.limits.of(work.project).quotas
        await quotas.keep_change(conn, work.project, planned)

    async def _leave(
        self, conn: Connection, asked: _Asked, goal: Away | Visit, child: ChildRecord, held: Held
    ) -> None:
        """Clear it away, or visit what it has."""
        project, by = asked.prepared.work.project, held.requested_by
        locked = await self._traversals.lock(conn, project, child.id)
        await self._traversals.supersede(conn, locked, by)
        match goal:
            case Away():
                existing = await read_existing(conn, child.id)
                await self._traversals.away(conn, locked, existing, by, asked.within)
            case Visit(operation=operation):
                action = VISITING[operation]
                await self._traversals.visit(conn, locked, action, operation, by, asked.within)
            case _ as never:
                assert_never(never)
        await self._traversals.keep_credential(
            conn, child.id, locked.traversal + 1, asked.call.credential
        )


class _Plan(NamedTuple):
    stack_id: UUID
    name: str
    blueprint: Blueprint


#: Why a stack inside ends early, by the state of the traversal around it.
_WHY: Mapping[str, str] = {
    TraversalState.SUPERSEDED: "superseded by a newer change",
    TraversalState.STOPPED: "Stopped: the stack around it was stopped",
    TraversalState.FAILED: "Stack {} cancelled",
    TraversalState.COMPLETE: "Stack {} cancelled",
}


def _over(state: str, child: ChildRecord | None) -> Outcome:
    """How an operation ends whose traversal was ended before the step could begin."""
    there = str(child.id) if child else None
    if state == TraversalState.STOPPED:
        return Stopped("Stopped: before it was carried out", there)
    return Failed("superseded by a newer change", there)


def _resource(prepared: Prepared) -> Resource:
    work, shown = prepared.work, kept_view(prepared)
    properties = prepared.properties
    secret = frozenset(
        name for name in properties if shown is not None and shown.get(name) != properties[name]
    )
    policy = (work.definition or {}).get("deletion_policy", DeletionPolicy.DELETE)
    metadata, updating = work.metadata_now or {}, work.update_policy_now or {}
    return Resource(work.name, str(policy), metadata, updating, secret)
