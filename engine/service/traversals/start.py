"""Starts traversals. Every change of a stack, from a request or from a parent stack, starts here.

All methods that take a connection run in the caller's transaction, which has locked the stack's
row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from engine.errors import Conflict, Finding, Findings
from engine.hooks.precedence import Breakpoints
from engine.hooks.rule import Rule, encode_rules
from engine.hooks.rule_reader import Declaration
from engine.missing_objects import no_stack
from engine.plan.convergence import ConvergencePolicy
from engine.plan.draft import ExistingResource, Plan
from engine.plan.drift import ConvergeRound
from engine.plan.gates import add_gates
from engine.plan.labels import labels_without_node, set_labels
from engine.plan.passes import plan, plan_in_place
from engine.principal import Principal
from engine.service.plan_preview import overrides_of, refuse_known_replacements
from engine.service.reads.stack_outputs import (
    check_sources,
)
from engine.service.requests.blueprint import (
    Limits,
    node_inputs,
    stored_outputs,
)
from engine.service.requests.change_checks import (
    check_root_stack,
    name_taken,
)
from engine.service.requests.desired_state import DesiredState
from engine.service.traversals.blueprints import Blueprints
from engine.service.traversals.gate_view import GateView, view_of_nodes, view_of_update
from engine.service.traversals.planner import Planner, refuse
from engine.service.traversals.thread_pool import ThreadPool
from engine.store.access.trusts import trust_id
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.database_errors import project_moved
from engine.store.encryption.secret_values import Keyring, Scope
from engine.store.hooks.drift_hooks import close_drift_hooks
from engine.store.observer import observation_schedule
from engine.store.resources.current_resources import read_existing
from engine.store.stacks import stack_locks, stack_rows, templates
from engine.store.traversals import start as traversal_start
from engine.store.traversals import traversal_credentials
from engine.store.traversals.end import cancel_operations, supersede
from engine.store.traversals.start import NestedContext
from engine.tracing import TRACE
from engine.types.registry import TypeRegistry
from engine.words import UNDER_WAY, Action, Json, Operation, StackId
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


#: Maximum number of warnings in an event, and characters of each.
MAX_RECORDED_WARNINGS, MAX_WARNING_LENGTH = 20, 500


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
        self.blueprints = Blueprints(registry, limits, database, self.thread_pool)
        self.planner = Planner(
            registry, limits, self.thread_pool, new_id, lifecycle_plugins=lifecycle_plugins
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
            planned = PlannedUpdate(
                header, *await self.planner.plan_update(desired, header.project)
            )
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
        return PlannedUpdate(header, *await self.planner.plan_update(desired, header.project))

    def is_one_statement(self, desired: DesiredState, planned: PlannedUpdate) -> bool:
        """Whether `create_at_once` can store the first traversal of a new stack: `start_update`
        would read nothing, and write nothing but the traversal."""
        blueprint = desired.blueprint
        policy = self._policy(desired, planned.header.project)
        return (
            traversal_start.is_one_statement(planned.plan)
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
        requests = desired.blueprint.environment.registry
        label_of, current = self.limits.labels.find_for(project, requests), desired.current
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
        breakpoints, stored = await self.planner.rules_without_request(
            conn, locked.project, locked.id, locked.path_names, existing, excluded
        )
        planned = plan({}, existing, breakpoints.find_rules, self.planner.new_resource_id)
        planned = set_labels(planned, existing, None)
        if parent_step is None:
            refuse(planned)
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
        breakpoints, stored = await self.planner.rules_without_request(
            conn, locked.project, locked.id, locked.path_names, existing, excluded
        )
        planned = plan_in_place(operation, existing, breakpoints.find_rules)
        planned = set_labels(planned, existing, None)
        rules = breakpoints.find_stack_rules(stored)
        context = NestedContext(parent_step, excluded=excluded)
        await self._start_without_template(conn, locked, action, planned, rules, by, context)

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


def action_in_progress(
    locked: stack_locks.LockedStack, remedy: str, place: str = "stack"
) -> Conflict:
    return Conflict(
        f"Stack {locked.name} already has an action ({locked.action}) in progress.",
        place=place,
        remedy=remedy,
        code="ActionInProgress",
    )


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
