"""Starts traversals. Every change of a stack, from a request or from a parent stack, starts here.

All methods that take a connection run in the caller's transaction, which has locked the stack's
row.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from uuid import UUID

from engine.errors import Conflict, Finding, Findings, Invalid, as_errors
from engine.hooks.operator import always, operator_declarations
from engine.hooks.precedence import Breakpoints
from engine.hooks.rule import Rule, encode_rules
from engine.hooks.rule_reader import Declaration
from engine.hot.definition.reuse import NONE_REUSABLE
from engine.hot.evaluation.stack_outputs import OutputName, StackOutput, StackOutputs
from engine.missing_objects import no_stack
from engine.plan.convergence import ConvergencePolicy
from engine.plan.draft import ExistingResource, Options, Plan
from engine.plan.drift import ConvergeRound
from engine.plan.gates import add_gates
from engine.plan.labels import labels_without_node, set_labels
from engine.plan.passes import plan, plan_in_place
from engine.principal import Principal
from engine.service.plan_preview import overrides_of, refuse_known_replacements
from engine.service.reads.stack_outputs import (
    check_sources,
    read_stack_outputs,
    with_stack_outputs,
)
from engine.service.requests.adoption import imported_resources
from engine.service.requests.blueprint import (
    Blueprint,
    Limits,
    NestedPlace,
    build,
    node_inputs,
    stored_outputs,
)
from engine.service.requests.breakpoint_targets import check_rules
from engine.service.requests.change_checks import (
    check_root_stack,
    name_taken,
    partial_filter,
)
from engine.service.requests.definition_cache import CacheKey, DefinitionCache
from engine.service.requests.desired_state import CurrentState, DesiredState, live_breakpoints
from engine.service.requests.policy_check import check_policy
from engine.service.requests.requests import StackRequest
from engine.service.traversals.gate_view import GateView, view_of_nodes, view_of_update
from engine.service.traversals.thread_pool import ThreadPool
from engine.store.access.trusts import trust_id
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.database_errors import project_moved
from engine.store.encryption.secret_values import Keyring, Scope
from engine.store.hooks.drift_hooks import close_drift_hooks
from engine.store.observer import observation_schedule
from engine.store.records import StackRecord, TemplateRecord
from engine.store.resources.current_resources import read_existing
from engine.store.stacks import stack_locks, stack_rows, templates
from engine.store.traversals import start as traversal_start
from engine.store.traversals import traversal_credentials
from engine.store.traversals.end import cancel_operations, supersede
from engine.store.traversals.start import NestedContext
from engine.tracing import TRACE
from engine.types.registry import TypeRegistry
from engine.words import UNDER_WAY, Action, Json, Operation, ResourceId, StackId
from engine.work.observer.drift_hooks import holds


@dataclass(frozen=True, slots=True)
class PlannedUpdate:
    """The plan of a change of a stack. warnings: about the request."""

    header: stack_rows.StackHeader
    plan: Plan
    warnings: Sequence[Finding]


class StartedUpdate(NamedTuple):
    """outbox: for a new stack, the last ID of the outbox before; else 0."""

    plan: Plan
    outbox: int


#: Actions that apply the environment of a request. Others apply one that was valid before.
POLICY_CHECKED = (Action.CREATE, Action.UPDATE, Action.ADOPT)

NO_OUTPUTS: Mapping[OutputName, StackOutput] = {}
#: Maximum number of warnings in an event, and characters of each.
MAX_RECORDED_WARNINGS, MAX_WARNING_LENGTH = 20, 500
#: Maximum number of resources that are planned on the event loop.
PLANNED_AT_ONCE = 200


class Traversals:
    def __init__(
        self,
        registry: TypeRegistry,
        limits: Limits,
        *,
        new_id: Callable[[], UUID],
        database: Database,
        lifecycle_plugins: bool = False,
        keyring: Keyring | None = None,
    ) -> None:
        """database: for outputs of other stacks that are read without a transaction.
        lifecycle_plugins: True if any are installed: traversals get nodes that call them. keyring:
        encrypts credentials; without it, no credential is stored.
        """
        self.keyring = keyring
        self._database = database
        self._lifecycle_plugins = lifecycle_plugins
        self.registry = registry
        self.limits = limits
        self.new_id = new_id
        self.thread_pool = ThreadPool()
        self._definitions = DefinitionCache()

    async def build(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        *,
        project: str,
        stack_id: UUID | None,
        name: str,
        nested: NestedPlace | None = None,
        conn: "Connection | None" = None,
        known: Mapping[OutputName, StackOutput] = NO_OUTPUTS,
    ) -> Blueprint:
        """Parse and validate a request in a thread; see `engine.service.requests.blueprint.build`.

        stack_id: None if the stack does not exist yet. conn: of the caller's transaction, if it has
        one. known: outputs of other stacks that are not read again. Raises Invalid, LimitReached,
        Unavailable.
        """

        async def define(outputs: StackOutputs) -> Blueprint:
            return await self._build(
                request,
                stored,
                project=project,
                stack_id=stack_id,
                name=name,
                nested=nested,
                stack_outputs=outputs,
            )

        read = partial(self.read_stack_outputs, project=project, stack_id=stack_id, conn=conn)
        return await with_stack_outputs(define, read, known)

    async def read_stack_outputs(
        self,
        wanted: Collection[OutputName],
        *,
        project: str,
        stack_id: UUID | None,
        conn: "Connection | None" = None,
    ) -> Mapping[OutputName, StackOutput]:
        """Read outputs of other stacks. stack_id: of the stack that reads them. conn: see
        `build`."""
        if conn is not None:
            return await read_stack_outputs(conn, project, wanted, stack_id)
        async with self._database.connection() as own:
            return await read_stack_outputs(own, project, wanted, stack_id)

    async def _build(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        *,
        project: str,
        stack_id: UUID | None,
        name: str,
        nested: NestedPlace | None,
        stack_outputs: StackOutputs,
    ) -> Blueprint:
        task = partial(
            build,
            request,
            stored,
            project=project,
            stack_id=stack_id,
            stack_name=name,
            registry=self.registry,
            limits=self.limits.for_project(project),
            nested=nested,
            stack_outputs=stack_outputs,
        )
        if stack_id is None or nested is not None:
            return await self.thread_pool(task, project)
        key = CacheKey(stack_id, request.timeout_mins)
        cached = partial(task, previous=self._definitions.get(key))
        blueprint = await self.thread_pool(cached, project)
        self._definitions.put(key, blueprint.definition.reusable or NONE_REUSABLE)
        return blueprint

    async def build_for(
        self,
        stack: stack_locks.LockedStack | StackRecord,
        request: StackRequest,
        stored: TemplateRecord | None,
        nested: NestedPlace | None = None,
        conn: "Connection | None" = None,
        known: Mapping[OutputName, StackOutput] = NO_OUTPUTS,
    ) -> Blueprint:
        """As `build`, for a stack that exists."""
        return await self.build(
            request,
            stored,
            project=stack.project,
            stack_id=stack.id,
            name=stack.name,
            nested=nested,
            conn=conn,
            known=known,
        )

    async def lock(
        self, conn: Connection, project: str | None, stack_id: UUID
    ) -> stack_locks.LockedStack:
        """Lock a stack's row. project: None for any.

        Raises NotFound (EntityNotFound), also for a deleted stack.
        """
        locked = await stack_locks.lock_stack(conn, project, stack_id)
        if locked is None or locked.deleted:
            raise no_stack(stack_id)
        return locked

    async def lock_root(
        self, conn: Connection, project: str, stack_id: UUID, done: str
    ) -> stack_locks.LockedStack:
        """As `lock`. Raises Invalid (NotSupported) for a nested stack; see `check_root_stack`."""
        locked = await self.lock(conn, project, stack_id)
        check_root_stack(locked, done)
        return locked

    async def supersede(
        self, conn: Connection, locked: stack_locks.LockedStack, by: Principal
    ) -> None:
        """Supersede the traversal of the stack, if one is under way."""
        if locked.state in UNDER_WAY:
            supersedable = self.registry.supersedable_types()
            await supersede(conn, locked.id, locked.traversal, by, supersedable)

    async def plan_update(self, desired: DesiredState, project: str) -> tuple[Plan, list[Finding]]:
        """The plan, and the warnings about the request, with those about patterns that match no
        resource. Raises Invalid.

        Large stacks are planned in a thread: each resource is matched against each pattern. So are
        those with a convergence policy, whose patterns are matched against properties.
        """
        work = partial(self._plan_update, desired, project)
        if desired.size <= PLANNED_AT_ONCE and desired.blueprint.convergence is None:
            return work()
        return await self.thread_pool(work, project)

    async def select(
        self, request: StackRequest, names: Collection[str], project: str
    ) -> Callable[[str], bool] | None:
        """See `partial_filter`, which runs in a thread."""
        if not request.only and not request.except_:
            return None
        return await self.thread_pool(partial(partial_filter, request, names), project)

    async def select_defined(
        self, request: StackRequest, blueprint: Blueprint, project: str
    ) -> list[str] | None:
        """The names of the template's resources that an update includes; None: all."""
        resources = blueprint.definition.resources
        only = await self.select(request, [*resources], project)
        return None if only is None else [*filter(only, resources)]

    async def desired_by_update(
        self,
        project: str,
        request: StackRequest,
        blueprint: Blueprint,
        current: CurrentState,
        *,
        stack_id: UUID,
        number: int,
        version: int,
        moved: Mapping[str, str],
        chosen: Callable[[str], bool] | None = None,
    ) -> DesiredState:
        """What an update wants, and what its preview shows.

        chosen: the resources that it may change; None: those that the request selects.
        """
        names = {*blueprint.definition.resources, *(row.name for row in current.rows)}
        return DesiredState(
            stack_id=stack_id,
            action=Action.UPDATE,
            number=number,
            version=version,
            blueprint=blueprint,
            current=current,
            requested_by=request.requested_by,
            cleared_breakpoints=request.hooks_clear,
            options=Options(
                chosen=chosen or await self.select(request, names, project),
                adopted=imported_resources(blueprint.definition),
            ),
            moved=moved,
            wanted_plan=request.plan_digest,
            round=request.round,
        )

    def _plan_update(self, desired: DesiredState, project: str) -> tuple[Plan, list[Finding]]:
        blueprint = desired.blueprint
        warnings = check_rules(
            blueprint, desired.current.types_by_path(), self.registry, self.limits.hooks
        )
        if desired.action in POLICY_CHECKED and desired.parent_step is None:
            existing, policies = desired.current.types_by_path(), self.limits.convergence
            warnings += check_policy(blueprint, existing, self.registry, policies, project)
        if warnings and blueprint.strict:
            raise Invalid(as_errors(warnings))
        breakpoints = self._breakpoints(desired)
        planned = plan(
            blueprint.definition.resources,
            desired.current.rows,
            breakpoints.find_rules,
            self._new_resource_id,
            desired.options,
            desired.current.settled,
        )
        planned = set_labels(planned, desired.current.rows, self.limits.labels.find_for(project))
        if desired.refuses and desired.parent_step is None:
            _refuse(planned)
        stack_id = StackId(desired.stack_id)
        planned = add_gates(
            planned,
            stack_id,
            desired.action,
            breakpoints.find_stack_rules(),
            lifecycle_plugins=self._lifecycle_plugins,
        )
        return planned, [*blueprint.warnings, *warnings]

    def _breakpoints(self, desired: DesiredState) -> Breakpoints:
        """All breakpoint rules of an update, of every source."""
        blueprint = desired.blueprint
        types = {row.name: row.type for row in desired.current.rows if row.replaced_by is None}
        types |= {name: one.type for name, one in blueprint.definition.resources.items()}
        return Breakpoints(
            desired.current.live,
            blueprint.by_request,
            blueprint.by_environment,
            blueprint.by_template,
            cleared_breakpoints=desired.cleared_breakpoints,
            operator=blueprint.by_operator,
            type_of=types.get,
            excluded=desired.excluded,
        )

    async def start_update(
        self,
        conn: Connection,
        desired: DesiredState,
        warned: Findings | None = None,
        planned: PlannedUpdate | None = None,
    ) -> StartedUpdate:
        """Store the template version, the traversal, its graph, and the event of its start.
        warned: gets the warnings about the request. planned: the plan, if it is known.

        Raises Invalid, if the plan is refused; Conflict (StackExists).
        """
        if planned is None:
            header = desired.header or await stack_rows.read_stack_header(conn, desired.stack_id)
            planned = PlannedUpdate(header, *await self.plan_update(desired, header.project))
        plan, project = planned.plan, planned.header.project
        if desired.refuses and desired.parent_step is None:
            await refuse_known_replacements(conn, desired, plan, self.registry)
        if warned is not None:
            warned.warn_all(planned.warnings)
        if not desired.stored:
            outputs = desired.blueprint.stack_outputs
            await check_sources(conn, desired.stack_id, outputs, lock=project)
        view = None
        if traversal_start.has_gate(plan):
            overrides = await overrides_of(conn, desired)
            view = await view_of_update(
                conn,
                _gate_view(desired, planned.header),
                plan,
                desired.blueprint,
                desired.current.rows,
                self.registry,
                overrides,
            )
        accepted = await self._accept(conn, desired, planned, view=view)
        if not desired.stored and desired.version > self.limits.versions:
            await templates.delete_old_versions(conn, desired.stack_id, self.limits.versions)
        if _has_rules(desired):
            await _store_rules(conn, desired)
        await self._store_labels(conn, desired, plan, project)
        policy = None
        if desired.parent_step is None:
            policy = await self._schedule_observation(conn, desired, project)
        # The policy of a nested stack is that of its root stack.
        if desired.number > 1 and (desired.parent_step is not None or holds(policy)):
            await self._close_drift_hooks(conn, _gate_view(desired, planned.header), plan)
        await self.keep_credential(conn, desired.stack_id, desired.number, desired.credential)
        return StartedUpdate(plan, accepted.outbox or 0)

    async def plan_create(
        self, desired: DesiredState, header: stack_rows.StackHeader
    ) -> PlannedUpdate:
        """Plan the first traversal of a new stack. Raises Invalid, if the plan is refused."""
        return PlannedUpdate(header, *await self.plan_update(desired, header.project))

    def is_one_statement(self, desired: DesiredState, planned: PlannedUpdate) -> bool:
        """Whether `create_at_once` can store the first traversal of a new stack: `start_update`
        would read nothing, and write nothing but the traversal."""
        blueprint = desired.blueprint
        policy = self._policy(desired, planned.header.project)
        return (
            self._prepare(desired, planned, None).is_one_statement
            and not traversal_start.has_gate(planned.plan)
            and not blueprint.stack_outputs
            and not _has_rules(desired)
            and self.limits.labels.find_for(planned.header.project) is None
            and (policy is None or policy.every is None)
            and not (desired.credential and self.keyring)
        )

    async def create_at_once(
        self,
        desired: DesiredState,
        planned: PlannedUpdate,
        outbox: traversal_start.OutboxRange | None,
    ) -> bool:
        """Store a new stack and its first traversal in one statement, which is a transaction.

        outbox: see `OutboxRange`. Returns False, and stores nothing, if the outbox is not in it.
        Raises Conflict (StackExists).
        """
        async with self._database.statement("accept") as conn:
            accepted = await self._accept(conn, desired, planned, outbox=outbox)
        return accepted.outcome == "accepted"

    async def _accept(
        self,
        conn: Connection,
        desired: DesiredState,
        planned: PlannedUpdate,
        *,
        view: Mapping[str, Json] | None = None,
        outbox: traversal_start.OutboxRange | None = None,
    ) -> traversal_start.AcceptedChange:
        """Raises Conflict (StackExists), Unavailable (ProjectMoving)."""
        accepted = await traversal_start.accept_change(
            conn,
            self._prepare(desired, planned, view),
            version=None if desired.stored else _version_document(desired, planned.header.project),
            new_stack=desired.new_stack,
            outbox=outbox,
        )
        if accepted.outcome == "name_taken":
            raise name_taken(planned.header.name)
        if accepted.outcome == "moved":
            raise project_moved(f'the project "{planned.header.project}" has moved to another cell')
        return accepted

    def _prepare(
        self, desired: DesiredState, planned: PlannedUpdate, view: Mapping[str, Json] | None
    ) -> traversal_start.PreparedTraversal:
        names = {node.name for node in planned.plan.nodes}
        scope = Scope(planned.header.project, desired.stack_id, "node.definition")
        inputs = node_inputs(desired.blueprint, self.registry, names, desired.kept,
                             desired.options.adjusted, desired.overrides, scope)  # fmt: skip
        started = _gate_view(desired, planned.header)
        nested = desired.nested_context()
        return self._prepare_started(
            started, planned.plan, inputs, planned.warnings, view, nested, desired.round
        )

    async def _store_labels(
        self, conn: Connection, desired: DesiredState, planned: Plan, project: str
    ) -> None:
        """Store the labels of resources that the plan does not change."""
        label_of, current = self.limits.labels.find_for(project), desired.current
        if (
            label_of is None
            and not current.has_labels
            and not any(row.label for row in current.rows)
        ):
            return
        types = {name: one.type for name, one in desired.blueprint.definition.resources.items()}
        labels = labels_without_node(planned, types, label_of)
        await traversal_start.store_labels(conn, desired.stack_id, labels)

    async def _schedule_observation(
        self, conn: Connection, desired: DesiredState, project: str
    ) -> ConvergencePolicy | None:
        """Observe the stack as its policy says; return the policy. A policy that ends is noticed by
        the observer."""
        policy = self._policy(desired, project)
        if policy is not None and policy.every is not None:
            await observation_schedule.schedule(conn, desired.stack_id, policy.every)
        return policy

    def _policy(self, desired: DesiredState, project: str) -> ConvergencePolicy | None:
        return self.limits.convergence.policy(desired.blueprint.convergence, project)

    @staticmethod
    async def _close_drift_hooks(conn: Connection, started: GateView, planned: Plan) -> None:
        """Close the hooks about the drift of resources that a change concerns."""
        concerned = [node.resource_id for node in planned.nodes if not node.is_gate]
        everything = None if started.action is Action.DELETE else concerned
        why = f"Stack {started.action} started"
        await close_drift_hooks(conn, started.stack_id, everything, started.requested_by, why)

    async def keep_credential(
        self, conn: Connection, stack_id: UUID, traversal: int, credential: str
    ) -> None:
        """Store a credential for a traversal, encrypted; deleted when the traversal waits or
        ends."""
        await self.keep_credentials(conn, {(stack_id, traversal): credential})

    async def keep_credentials(
        self, conn: Connection, kept: Mapping[tuple[UUID, int], str]
    ) -> None:
        """As `keep_credential`, for several traversals (stack id, traversal number)."""
        kept = {key: credential for key, credential in kept.items() if credential}
        if not kept or self.keyring is None:
            return
        projects = await traversal_credentials.projects_of(conn, [stack for stack, _ in kept])
        encrypt = self.keyring.encrypt
        encrypted = [
            (
                stack,
                number,
                encrypt(traversal_credentials.scope(projects[stack], stack), credential),
                trust_id(credential),
            )
            for (stack, number), credential in kept.items()
            if stack in projects
        ]
        await traversal_credentials.store(conn, encrypted)

    async def start_delete(
        self,
        conn: Connection,
        locked: stack_locks.LockedStack,
        existing: Sequence[ExistingResource],
        by: Principal,
        parent_step: traversal_start.ParentStep | None = None,
        excluded: Sequence[str] = (),
    ) -> None:
        """Start a traversal that deletes all resources, and cancel the operations that it waits
        for. parent_step, excluded: see `DesiredState`.

        Raises Invalid, if the plan is refused.
        """
        if any(row.running for row in existing):
            await cancel_operations(conn, locked.id, self.registry.cancellable_types())
        breakpoints, stored = await self._rules_without_request(
            conn, locked.project, locked.id, locked.path_names, existing, excluded
        )
        planned = plan({}, existing, breakpoints.find_rules, self._new_resource_id)
        planned = set_labels(planned, existing, None)
        if parent_step is None:
            _refuse(planned)
        rules = breakpoints.find_stack_rules(stored)
        context = NestedContext(parent_step, excluded=excluded)
        await self._start_without_template(conn, locked, Action.DELETE, planned, rules, by, context)

    async def start_action(
        self,
        conn: Connection,
        locked: stack_locks.LockedStack,
        action: Action,
        operation: Operation,
        by: Principal,
        parent_step: traversal_start.ParentStep | None = None,
        excluded: Sequence[str] = (),
    ) -> None:
        """Start the traversal of an in-place action. parent_step, excluded: see `DesiredState`."""
        existing = await read_existing(conn, locked.id)
        breakpoints, stored = await self._rules_without_request(
            conn, locked.project, locked.id, locked.path_names, existing, excluded
        )
        planned = plan_in_place(operation, existing, breakpoints.find_rules)
        planned = set_labels(planned, existing, None)
        rules = breakpoints.find_stack_rules(stored)
        context = NestedContext(parent_step, excluded=excluded)
        await self._start_without_template(conn, locked, action, planned, rules, by, context)

    async def plan_delete(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        path: Sequence[str],
        existing: Sequence[ExistingResource],
    ) -> Plan:
        """The plan of a delete. path: see `_rules_without_request`."""
        breakpoints, stored = await self._rules_without_request(
            conn, project, stack_id, path, existing
        )
        planned = plan({}, existing, breakpoints.find_rules, self._new_resource_id)
        planned = set_labels(planned, existing, None)
        rules = breakpoints.find_stack_rules(stored) if existing else ()
        return add_gates(planned, StackId(stack_id), Action.DELETE, rules, lifecycle_plugins=False)

    async def _rules_without_request(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        path: Sequence[str],
        existing: Sequence[ExistingResource],
        excluded: Sequence[str] = (),
    ) -> tuple[Breakpoints, tuple[Rule, ...]]:
        """The breakpoints of a change without a template: of the operator and of the live stack;
        and the stored rules of the stack itself. path: names of the resources from the root stack
        down to this stack.
        """
        types = {row.name: row.type for row in existing}
        by_operator = operator_declarations(
            self.limits.operator, project, self.limits.hooks, always, path, by_parent=bool(path)
        )
        live = await live_breakpoints(conn, stack_id)
        breakpoints = Breakpoints(live, operator=by_operator, type_of=types.get, excluded=excluded)
        return breakpoints, await traversal_start.stack_rules(conn, stack_id)

    async def _start_without_template(
        self,
        conn: Connection,
        locked: stack_locks.LockedStack,
        action: Action,
        planned: Plan,
        rules: Sequence[Rule],
        by: Principal,
        nested_context: NestedContext,
    ) -> None:
        planned = add_gates(
            planned, StackId(locked.id), action, rules, lifecycle_plugins=self._lifecycle_plugins
        )
        started = GateView(
            locked.id, locked.project, locked.name, action, locked.traversal + 1, locked.version,
            by, locked.tags,
        )  # fmt: skip
        view = (
            await view_of_nodes(conn, started, planned, self.registry)
            if traversal_start.has_gate(planned)
            else None
        )
        prepared = self._prepare_started(started, planned, {}, (), view, nested_context)
        await traversal_start.accept_change(conn, prepared)
        if action not in (Action.CHECK, Action.SNAPSHOT):
            await self._close_drift_hooks(conn, started, planned)

    def _prepare_started(
        self,
        started: GateView,
        planned: Plan,
        inputs: Mapping[str, traversal_start.NodeInputs],
        warnings: Sequence[Finding],
        view: Mapping[str, Json] | None,
        nested_context: NestedContext,
        number_of_round: ConvergeRound | None = None,
    ) -> traversal_start.PreparedTraversal:
        """The traversal, its graph and its first event. view: stored with the stack's own gate
        nodes, if the plan has any. number_of_round: of a converge with several.
        """
        action, number, version = started.action, started.number, started.version
        data: dict[str, Json] = {"traversal": number, "version": version}
        if warnings:
            data["warnings"] = recorded_warnings(warnings)
        if planned.out_of_date:
            data["out_of_date"] = list(planned.out_of_date)
        reason = f"Stack {action} started"
        if number_of_round:
            data["converge"] = number_of_round.as_json()
            reason += f" ({number_of_round} of a converge)"
        return traversal_start.prepare_traversal(
            project=started.project,
            stack_id=started.stack_id,
            number=number,
            action=action,
            version=version,
            plan=planned,
            inputs=inputs,
            requested_by=started.requested_by,
            event=traversal_start.StackEvent(
                type=f"headgate.stack.{action.lower()}.started",
                action=action.value,
                status="IN_PROGRESS",
                reason=reason,
                data=data,
            ),
            traceparent=TRACE.get(),
            view=view,
            lifecycle_plugins=self._lifecycle_plugins,
            nested=nested_context,
        )

    def _new_resource_id(self) -> ResourceId:
        return ResourceId(self.new_id())


def action_in_progress(
    locked: stack_locks.LockedStack, remedy: str, place: str = "stack"
) -> Conflict:
    return Conflict(
        f"Stack {locked.name} already has an action ({locked.action}) in progress.",
        place=place,
        remedy=remedy,
        code="ActionInProgress",
    )


def _refuse(planned: Plan) -> None:
    if planned.problems:
        raise Invalid([
            Finding(one.place, one.reason, one.remedy, "PlanRefused") for one in planned.problems
        ])  # fmt: skip


def recorded_warnings(warnings: Sequence[Finding]) -> list[str]:
    """The warnings as an event contains them: without positions and lines of the template."""
    texts = [str(one)[:MAX_WARNING_LENGTH] for one in warnings[:MAX_RECORDED_WARNINGS]]
    if more := len(warnings) - len(texts):
        texts.append(f"There are {more} more warnings.")
    return texts


def _gate_view(desired: DesiredState, header: stack_rows.StackHeader) -> GateView:
    return GateView(
        desired.stack_id, header.project, header.name, desired.action, desired.number,
        desired.version, desired.requested_by, header.tags, desired.selected_names(),
    )  # fmt: skip


def _version_document(desired: DesiredState, project: str) -> Json:
    """The new version of the template."""
    blueprint, definition = desired.blueprint, desired.blueprint.definition
    return templates.version_document(
        project=project,
        stack_id=desired.stack_id,
        version=desired.version,
        description=definition.description,
        template=blueprint.template.document,
        environment=blueprint.environment.document,
        files=blueprint.files,
        parameters=blueprint.parameters,
        masked_parameters=definition.shown_parameters(),
        hidden_parameters=blueprint.hidden,
        outputs=stored_outputs(definition),
        requested_by=desired.requested_by,
        source=blueprint.source,
        template_order=blueprint.template_order,
        stack_outputs=blueprint.stack_outputs,
    )


def _declared_rules(desired: DesiredState) -> Sequence[Declaration]:
    blueprint = desired.blueprint
    return (
        *desired.current.live,
        *blueprint.by_request,
        *blueprint.by_environment,
        *blueprint.by_template,
    )


def _has_rules(desired: DesiredState) -> bool:
    """Whether the template or the environment has rules, now or before."""
    current = desired.current
    return bool(
        _declared_rules(desired) or current.has_rules or any(row.rules for row in current.rows)
    )


async def _store_rules(conn: Connection, desired: DesiredState) -> None:
    """Store the rules of the template and the environment with the stack and its resources."""
    blueprint, resources = desired.blueprint, desired.blueprint.definition.resources
    lasting = Breakpoints(blueprint.by_environment, blueprint.by_template)
    rules = {name: encode_rules(lasting.find_rules(name)) for name in resources}
    of_stack = encode_rules(lasting.find_stack_rules())
    await traversal_start.store_rules(conn, desired.stack_id, rules, of_stack)
