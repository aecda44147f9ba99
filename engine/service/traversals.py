"""Traversals begun and ended. Every change of a stack, whoever asked for it, begins here.

All methods work in the caller's transaction, under the lock on the stack's row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from uuid import UUID

from engine.errors import Finding, Invalid, NotFound
from engine.hooks.matching import Breakpoints
from engine.hooks.operator import always, operator_declarations
from engine.hooks.rule import Rule
from engine.plan.draft import Existing, Plan
from engine.plan.gates import gated
from engine.plan.passes import plan
from engine.plan.visits import plan_visits
from engine.service.aside import Aside
from engine.service.beneath import check_rules
from engine.service.blueprint import Blueprint, Limits, build, node_inputs
from engine.service.goals import Goal, live_breakpoints
from engine.service.requests import StackRequest
from engine.service.storing import store_rules, store_version
from engine.service.viewing import Begun, view_of_nodes, view_toward
from engine.store import accept, begin, credentials
from engine.store.begin import Below
from engine.store.connection import Connection
from engine.store.existing import read_existing
from engine.store.records import TemplateRecord
from engine.store.sealing import Sealer
from engine.store.supersede import supersede
from engine.tracing import TRACE
from engine.types.registry import Registry
from engine.words import (
    Action,
    Json,
    Operation,
    ResourceId,
    StackId,
    TraversalState,
)

#: States of a traversal that has not ended.
UNDER_WAY = (TraversalState.RUNNING, TraversalState.ENDING)


class Traversals:
    def __init__(
        self,
        registry: Registry,
        limits: Limits,
        *,
        new_id: Callable[[], UUID],
        watched: bool = False,
        sealer: Sealer | None = None,
    ) -> None:
        """watched: lifecycle plug-ins are to be asked and told. sealer: for credentials; without
        one, none are kept."""
        self.sealer = sealer
        self._watched = watched
        self.registry = registry
        self.limits = limits
        self.new_id = new_id
        self.aside = Aside()

    async def build(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        *,
        project: str,
        stack_id: UUID | None,
        name: str,
    ) -> Blueprint:
        """Read a request whole. stack_id: None: nobody knows before it is made.

        Raises Invalid, LimitReached.
        """
        reading = partial(
            build,
            request,
            stored,
            project=project,
            stack_id=stack_id,
            stack_name=name,
            registry=self.registry,
            limits=self.limits.of(project),
        )
        return await self.aside(reading)

    async def lock(self, conn: Connection, project: str | None, stack_id: UUID) -> accept.Locked:
        """NotFound (code EntityNotFound) also when the stack was deleted. project: None: any."""
        locked = await accept.lock_stack(conn, project, stack_id)
        if locked is None or locked.deleted:
            raise NotFound(f"The Stack ({stack_id}) could not be found.", code="EntityNotFound")
        return locked

    async def supersede(self, conn: Connection, locked: accept.Locked, by: str) -> None:
        if locked.state in UNDER_WAY:
            giving_up = self.registry.giving_up()
            await supersede(conn, locked.id, locked.traversal, by, giving_up)

    def plan_toward(self, goal: Goal) -> tuple[Plan, list[str]]:
        """The plan, and warnings about patterns that match nothing. Raises Invalid, Conflict."""
        blueprint = goal.blueprint
        warnings = check_rules(blueprint, goal.found.there(), self.registry, self.limits.hooks)
        asking = self._asking(goal)
        planned = plan(
            blueprint.definition.resources,
            goal.found.rows,
            asking.of,
            self._new_resource_id,
            goal.options,
            goal.found.settled,
        )
        if goal.refuses and goal.within is None:
            _refuse(planned)
        stack_id = StackId(goal.stack_id)
        planned = gated(planned, stack_id, goal.action, asking.of_stack(), watched=self._watched)
        return planned, warnings

    def _asking(self, goal: Goal) -> Breakpoints:
        blueprint = goal.blueprint
        types = {row.name: row.type for row in goal.found.rows if row.replaced_by is None}
        types |= {name: one.type for name, one in blueprint.definition.resources.items()}
        return Breakpoints(
            goal.found.live,
            blueprint.asked,
            blueprint.by_environment,
            blueprint.by_template,
            cleared=goal.cleared,
            operator=blueprint.by_operator,
            type_of=types.get,
        )

    async def toward(self, conn: Connection, goal: Goal) -> Plan:
        """Store the version, the traversal toward it and its graph, and the event that it began."""
        planned, warnings = self.plan_toward(goal)
        if not goal.stored:
            await store_version(conn, goal, self.limits.versions)
        names = {node.name for node in planned.nodes}
        inputs = node_inputs(goal.blueprint, self.registry, names, goal.kept, goal.options.adjusted)
        begun = await self._begun(conn, goal.stack_id, goal.action, goal.number, goal.version,
                                  goal.requested_by)  # fmt: skip
        view = None
        if begin.has_gate(planned):
            rows, registry = goal.found.rows, self.registry
            view = await view_toward(conn, begun, planned, goal.blueprint, rows, registry)
        await self._begin(conn, begun, planned, inputs, warnings, view, goal.below())
        await store_rules(conn, goal)
        await self.keep_credential(conn, goal.stack_id, goal.number, goal.credential)
        return planned

    async def keep_credential(
        self, conn: Connection, stack_id: UUID, traversal: int, credential: str
    ) -> None:
        """Sealed, and only while something is to be done with it."""
        await self.keep_credentials(conn, [(stack_id, traversal)], credential)

    async def keep_credentials(
        self, conn: Connection, traversals: Sequence[tuple[UUID, int]], credential: str
    ) -> None:
        """The same for several: (stack, number)."""
        if credential and traversals and self.sealer is not None:
            seal = self.sealer.seal
            sealed = [(stack, number, seal(stack, credential)) for stack, number in traversals]
            await credentials.keep(conn, sealed)

    async def away(
        self,
        conn: Connection,
        locked: accept.Locked,
        existing: Sequence[Existing],
        by: str,
        within: begin.Within | None = None,
    ) -> None:
        """Begin a traversal that clears everything away. within: see `Goal`."""
        asking, stored = await self._guards(
            conn, locked.project, locked.id, locked.names_above, existing
        )
        planned = plan({}, existing, asking.of, self._new_resource_id)
        if within is None:
            _refuse(planned)
        rules = asking.of_stack(stored)
        await self._begin_plain(conn, locked, Action.DELETE, planned, rules, by, within)

    async def visit(
        self,
        conn: Connection,
        locked: accept.Locked,
        action: Action,
        operation: Operation,
        by: str,
        within: begin.Within | None = None,
    ) -> None:
        """Begin a traversal that leaves every definition alone. within: see `Goal`."""
        existing = await read_existing(conn, locked.id)
        asking, stored = await self._guards(
            conn, locked.project, locked.id, locked.names_above, existing
        )
        planned = plan_visits(operation, existing, asking.of)
        rules = asking.of_stack(stored)
        await self._begin_plain(conn, locked, action, planned, rules, by, within)

    async def plan_away(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        path: Sequence[str],
        existing: Sequence[Existing],
    ) -> Plan:
        """What clearing everything away comes to. path: see `_guards`."""
        asking, stored = await self._guards(conn, project, stack_id, path, existing)
        planned = plan({}, existing, asking.of, self._new_resource_id)
        rules = asking.of_stack(stored) if existing else ()
        return gated(planned, StackId(stack_id), Action.DELETE, rules, watched=False)

    async def _guards(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        path: Sequence[str],
        existing: Sequence[Existing],
    ) -> tuple[Breakpoints, tuple[Rule, ...]]:
        """What asks in a change that no request, environment or template speaks for: the operator,
        live breakpoints, and what stayed with the stack (the second). path: names of the resources
        that lead to the stack."""
        types = {row.name: row.type for row in existing}
        by_operator = operator_declarations(
            self.limits.operator, project, self.limits.hooks, always, path
        )
        live = await live_breakpoints(conn, stack_id)
        asking = Breakpoints(live, operator=by_operator, type_of=types.get)
        return asking, await begin.stack_rules(conn, stack_id)

    async def _begin_plain(
        self,
        conn: Connection,
        locked: accept.Locked,
        action: Action,
        planned: Plan,
        rules: Sequence[Rule],
        by: str,
        within: begin.Within | None,
    ) -> None:
        planned = gated(planned, StackId(locked.id), action, rules, watched=self._watched)
        begun = await self._begun(conn, locked.id, action, locked.traversal + 1, locked.version, by)
        view = await view_of_nodes(conn, begun, planned) if begin.has_gate(planned) else None
        await self._begin(conn, begun, planned, {}, (), view, Below(within))

    async def _begun(
        self,
        conn: Connection,
        stack_id: UUID,
        action: Action,
        number: int,
        version: int,
        by: str,
    ) -> Begun:
        said = await accept.read_plate(conn, stack_id)
        return Begun(stack_id, said.project, said.name, action, number, version, by, said.tags)

    async def _begin(
        self,
        conn: Connection,
        begun: Begun,
        planned: Plan,
        inputs: Mapping[str, begin.NodeInputs],
        warnings: Sequence[str],
        view: Mapping[str, Json] | None,
        below: Below,
    ) -> None:
        """view: what is kept at the stack's own gates, if the plan has any."""
        stack_id, action, number = begun.stack_id, begun.action, begun.number
        version = begun.version
        await accept.point_stack(
            conn, stack_id=stack_id, version=version, traversal=number, traceparent=TRACE.get()
        )
        data: dict[str, Json] = {"traversal": number, "version": version}
        if warnings:
            data["warnings"] = list(warnings)
        if planned.stale:
            data["stale"] = list(planned.stale)
        await accept.record_stack_event(
            conn,
            stack_id=stack_id,
            kind=f"headgate.stack.{action.lower()}.started",
            action=action,
            status="IN_PROGRESS",
            reason=f"Stack {action} started",
            data=data,
        )
        await begin.insert_traversal(
            conn,
            stack_id=stack_id,
            number=number,
            action=action,
            version=version,
            plan=planned,
            inputs=inputs,
            requested_by=begun.requested_by,
            view=view,
            watched=self._watched,
            below=below,
        )

    def _new_resource_id(self) -> ResourceId:
        return ResourceId(self.new_id())


def _refuse(planned: Plan) -> None:
    if planned.problems:
        raise Invalid([
            Finding(one.place, one.reason, one.remedy, "PlanRefused") for one in planned.problems
        ])  # fmt: skip
