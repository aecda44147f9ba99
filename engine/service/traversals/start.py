"""Starts traversals. Every change of a stack, from a request or from a parent stack, starts here.

All methods that take a connection run in the caller's transaction, which has locked the stack's
row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from uuid import UUID

from engine.errors import Finding, Invalid, NotFound
from engine.hooks.operator import always, operator_declarations
from engine.hooks.rule import Rule
from engine.hooks.rule_matching import Breakpoints
from engine.plan.draft import Existing, Plan
from engine.plan.gates import gated
from engine.plan.passes import plan
from engine.plan.visits import plan_visits
from engine.principal import Principal
from engine.service.plan_view.gate_view import GateView, view_of_nodes, view_of_update
from engine.service.requests.blueprint import Blueprint, Limits, build, node_inputs
from engine.service.requests.breakpoint_targets import check_rules
from engine.service.requests.change import DesiredState, live_breakpoints
from engine.service.requests.requests import StackRequest
from engine.service.traversals.persistence import store_rules, store_version
from engine.service.traversals.thread_pool import ThreadPool
from engine.store import credentials, stack_rows, traversal_start
from engine.store.connection import Connection
from engine.store.current_resources import read_existing
from engine.store.encryption import Scope, Sealer
from engine.store.records import TemplateRecord
from engine.store.traversal_end import supersede
from engine.store.traversal_start import Below
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
        lifecycle_plugins: bool = False,
        sealer: Sealer | None = None,
    ) -> None:
        """lifecycle_plugins: True if any are installed: traversals get nodes that call them.
        sealer: encrypts credentials; without it, no credential is stored.
        """
        self.sealer = sealer
        self._lifecycle_plugins = lifecycle_plugins
        self.registry = registry
        self.limits = limits
        self.new_id = new_id
        self.thread_pool = ThreadPool()

    async def build(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        *,
        project: str,
        stack_id: UUID | None,
        name: str,
    ) -> Blueprint:
        """Parse and validate a request in a thread; see `engine.service.requests.blueprint.build`.

        stack_id: None if the stack does not exist yet. Raises Invalid, LimitReached, Unavailable.
        """
        task = partial(
            build,
            request,
            stored,
            project=project,
            stack_id=stack_id,
            stack_name=name,
            registry=self.registry,
            limits=self.limits.of(project),
        )
        return await self.thread_pool(task, project)

    async def lock(
        self, conn: Connection, project: str | None, stack_id: UUID
    ) -> stack_rows.Locked:
        """Lock a stack's row. project: None for any.

        Raises NotFound (EntityNotFound), also for a deleted stack.
        """
        locked = await stack_rows.lock_stack(conn, project, stack_id)
        if locked is None or locked.deleted:
            raise NotFound(f"The Stack ({stack_id}) could not be found.", code="EntityNotFound")
        return locked

    async def supersede(self, conn: Connection, locked: stack_rows.Locked, by: Principal) -> None:
        """Supersede the traversal of the stack, if one is under way."""
        if locked.state in UNDER_WAY:
            interruptible = self.registry.cancellable_types()
            await supersede(conn, locked.id, locked.traversal, by, interruptible)

    def plan_update(self, desired: DesiredState) -> tuple[Plan, list[str]]:
        """The plan, and warnings about patterns that match no resource. Raises Invalid."""
        blueprint = desired.blueprint
        warnings = check_rules(
            blueprint, desired.current.types_by_path(), self.registry, self.limits.hooks
        )
        breakpoints = self._breakpoints(desired)
        planned = plan(
            blueprint.definition.resources,
            desired.current.rows,
            breakpoints.of,
            self._new_resource_id,
            desired.options,
            desired.current.settled,
        )
        if desired.refuses and desired.within is None:
            _refuse(planned)
        stack_id = StackId(desired.stack_id)
        planned = gated(
            planned,
            stack_id,
            desired.action,
            breakpoints.of_stack(),
            watched=self._lifecycle_plugins,
        )
        return planned, warnings

    def _breakpoints(self, desired: DesiredState) -> Breakpoints:
        """All breakpoint rules of an update, of every source."""
        blueprint = desired.blueprint
        types = {row.name: row.type for row in desired.current.rows if row.replaced_by is None}
        types |= {name: one.type for name, one in blueprint.definition.resources.items()}
        return Breakpoints(
            desired.current.live,
            blueprint.asked,
            blueprint.by_environment,
            blueprint.by_template,
            cleared=desired.cleared,
            operator=blueprint.by_operator,
            type_of=types.get,
        )

    async def start_update(self, conn: Connection, desired: DesiredState) -> Plan:
        """Store the template version, the traversal, its graph, and the event of its start.

        Raises Invalid, if the plan is refused.
        """
        planned, warnings = self.plan_update(desired)
        started = await self._gate_view(conn, desired.stack_id, desired.action, desired.number,
        desired.version, desired.requested_by, desired.selected())  # fmt: skip
        if not desired.stored:
            await store_version(conn, desired, self.limits.versions, project=started.project)
        names = {node.name for node in planned.nodes}
        scope = Scope(started.project, desired.stack_id, "node.definition")
        inputs = node_inputs(desired.blueprint, self.registry, names, desired.kept,
                             desired.options.adjusted, scope)  # fmt: skip
        view = None
        if traversal_start.has_gate(planned):
            rows, registry = desired.current.rows, self.registry
            view = await view_of_update(conn, started, planned, desired.blueprint, rows, registry)
        await self._store(conn, started, planned, inputs, warnings, view, desired.nested_context())
        await store_rules(conn, desired)
        await self.keep_credential(conn, desired.stack_id, desired.number, desired.credential)
        return planned

    async def keep_credential(
        self, conn: Connection, stack_id: UUID, traversal: int, credential: str
    ) -> None:
        """Store a credential for a traversal, encrypted; deleted when the traversal waits or
        ends."""
        await self.keep_credentials(conn, [(stack_id, traversal)], credential)

    async def keep_credentials(
        self, conn: Connection, traversals: Sequence[tuple[UUID, int]], credential: str
    ) -> None:
        """As `keep_credential`, for several traversals: (stack id, traversal number)."""
        if credential and traversals and self.sealer is not None:
            projects = await credentials.projects_of(conn, [stack for stack, _ in traversals])
            seal = self.sealer.seal
            sealed = [
                (stack, number, seal(credentials.scope(projects[stack], stack), credential))
                for stack, number in traversals
                if stack in projects
            ]
            await credentials.keep(conn, sealed)

    async def start_delete(
        self,
        conn: Connection,
        locked: stack_rows.Locked,
        existing: Sequence[Existing],
        by: Principal,
        within: traversal_start.Within | None = None,
    ) -> None:
        """Start a traversal that deletes all resources. within: see `DesiredState`.

        Raises Invalid, if the plan is refused.
        """
        breakpoints, stored = await self._rules_without_request(
            conn, locked.project, locked.id, locked.names_above, existing
        )
        planned = plan({}, existing, breakpoints.of, self._new_resource_id)
        if within is None:
            _refuse(planned)
        rules = breakpoints.of_stack(stored)
        await self._start_without_template(conn, locked, Action.DELETE, planned, rules, by, within)

    async def start_action(
        self,
        conn: Connection,
        locked: stack_rows.Locked,
        action: Action,
        operation: Operation,
        by: Principal,
        within: traversal_start.Within | None = None,
    ) -> None:
        """Start the traversal of an in-place action. within: see `DesiredState`."""
        existing = await read_existing(conn, locked.id)
        breakpoints, stored = await self._rules_without_request(
            conn, locked.project, locked.id, locked.names_above, existing
        )
        planned = plan_visits(operation, existing, breakpoints.of)
        rules = breakpoints.of_stack(stored)
        await self._start_without_template(conn, locked, action, planned, rules, by, within)

    async def plan_delete(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        path: Sequence[str],
        existing: Sequence[Existing],
    ) -> Plan:
        """The plan of a delete. path: see `_rules_without_request`."""
        breakpoints, stored = await self._rules_without_request(
            conn, project, stack_id, path, existing
        )
        planned = plan({}, existing, breakpoints.of, self._new_resource_id)
        rules = breakpoints.of_stack(stored) if existing else ()
        return gated(planned, StackId(stack_id), Action.DELETE, rules, watched=False)

    async def _rules_without_request(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        path: Sequence[str],
        existing: Sequence[Existing],
    ) -> tuple[Breakpoints, tuple[Rule, ...]]:
        """The breakpoints of a change without a template: of the operator and of the live stack;
        and the stored rules of the stack itself. path: names of the resources from the root stack
        down to this stack.
        """
        types = {row.name: row.type for row in existing}
        by_operator = operator_declarations(
            self.limits.operator, project, self.limits.hooks, always, path
        )
        live = await live_breakpoints(conn, stack_id)
        breakpoints = Breakpoints(live, operator=by_operator, type_of=types.get)
        return breakpoints, await traversal_start.stack_rules(conn, stack_id)

    async def _start_without_template(
        self,
        conn: Connection,
        locked: stack_rows.Locked,
        action: Action,
        planned: Plan,
        rules: Sequence[Rule],
        by: Principal,
        within: traversal_start.Within | None,
    ) -> None:
        planned = gated(planned, StackId(locked.id), action, rules, watched=self._lifecycle_plugins)
        started = await self._gate_view(
            conn, locked.id, action, locked.traversal + 1, locked.version, by
        )
        view = (
            await view_of_nodes(conn, started, planned)
            if traversal_start.has_gate(planned)
            else None
        )
        await self._store(conn, started, planned, {}, (), view, Below(within))

    async def _gate_view(
        self,
        conn: Connection,
        stack_id: UUID,
        action: Action,
        number: int,
        version: int,
        by: Principal,
        only: Sequence[str] | None = None,
    ) -> GateView:
        header = await stack_rows.read_stack_header(conn, stack_id)
        return GateView(
            stack_id, header.project, header.name, action, number, version, by, header.tags, only
        )

    async def _store(
        self,
        conn: Connection,
        started: GateView,
        planned: Plan,
        inputs: Mapping[str, traversal_start.NodeInputs],
        warnings: Sequence[str],
        view: Mapping[str, Json] | None,
        nested_context: Below,
    ) -> None:
        """Store the traversal, its graph and its first event. view: stored with the stack's own
        gate nodes, if the plan has any.
        """
        stack_id, action, number = started.stack_id, started.action, started.number
        version = started.version
        await stack_rows.point_stack(
            conn, stack_id=stack_id, version=version, traversal=number, traceparent=TRACE.get()
        )
        data: dict[str, Json] = {"traversal": number, "version": version}
        if warnings:
            data["warnings"] = list(warnings)
        if planned.stale:
            data["stale"] = list(planned.stale)
        await stack_rows.record_stack_event(
            conn,
            stack_id=stack_id,
            kind=f"headgate.stack.{action.lower()}.started",
            action=action,
            status="IN_PROGRESS",
            reason=f"Stack {action} started",
            data=data,
        )
        await traversal_start.insert_traversal(
            conn,
            project=started.project,
            stack_id=stack_id,
            number=number,
            action=action,
            version=version,
            plan=planned,
            inputs=inputs,
            requested_by=started.requested_by,
            view=view,
            watched=self._lifecycle_plugins,
            below=nested_context,
        )

    def _new_resource_id(self) -> ResourceId:
        return ResourceId(self.new_id())


def _refuse(planned: Plan) -> None:
    if planned.problems:
        raise Invalid([
            Finding(one.place, one.reason, one.remedy, "PlanRefused") for one in planned.problems
        ])  # fmt: skip
