"""Plans traversals: what a change would do, for the change itself and for its preview."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from uuid import UUID

from engine.errors import Finding, Invalid, as_errors
from engine.hooks.operator import always, operator_declarations
from engine.hooks.precedence import Breakpoints
from engine.hooks.rule import Rule
from engine.hot.definition.model import StackDefinition
from engine.plan.draft import ExistingResource, Options, Plan, PlannedNode
from engine.plan.gates import add_gates
from engine.plan.labels import set_labels
from engine.plan.passes import plan
from engine.service.requests.adoption import imported_resources
from engine.service.requests.blueprint import Blueprint, Limits
from engine.service.requests.breakpoint_targets import check_rules
from engine.service.requests.change_checks import partial_filter
from engine.service.requests.desired_state import CurrentState, DesiredState, live_breakpoints
from engine.service.requests.policy_check import check_policy
from engine.service.requests.requests import StackRequest
from engine.service.traversals.thread_pool import ThreadPool
from engine.store.connection import Connection
from engine.store.traversals import start as traversal_start
from engine.types.registry import TypeRegistry
from engine.words import Action, Direction, Operation, ResourceId, StackId

#: Actions that apply the environment of a request. Others apply one that was valid before.
POLICY_CHECKED = (Action.CREATE, Action.UPDATE, Action.ADOPT)
#: Maximum number of resources that are planned on the event loop.
PLANNED_AT_ONCE = 200


class Planner:
    """lifecycle_plugins: True if any are installed: traversals get nodes that call them."""

    def __init__(
        self,
        registry: TypeRegistry,
        limits: Limits,
        thread_pool: ThreadPool,
        new_id: Callable[[], UUID],
        *,
        lifecycle_plugins: bool,
    ) -> None:
        self._registry = registry
        self._limits = limits
        self._thread_pool = thread_pool
        self._new_id = new_id
        self._lifecycle_plugins = lifecycle_plugins

    async def plan_update(self, desired: DesiredState, project: str) -> tuple[Plan, list[Finding]]:
        """The plan, and the warnings about the request, with those about patterns that match no
        resource. Raises Invalid.

        Large stacks are planned in a thread: each resource is matched against each pattern. So are
        those with a convergence policy, whose patterns are matched against properties.
        """
        work = partial(self._plan_update, desired, project)
        if desired.size <= PLANNED_AT_ONCE and desired.blueprint.convergence is None:
            return work()
        return await self._thread_pool(work, project)

    async def select(
        self, request: StackRequest, names: Collection[str], project: str
    ) -> Callable[[str], bool] | None:
        """See `partial_filter`, which runs in a thread."""
        if not request.only and not request.except_:
            return None
        return await self._thread_pool(partial(partial_filter, request, names), project)

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
        by_parent = blueprint.by_parent or desired.parent_step is not None
        # What a parent clears in its nested stacks is checked with the parent.
        cleared = () if by_parent else desired.cleared_breakpoints
        warnings = check_rules(
            blueprint, desired.current.types_by_path(), self._registry, self._limits.hooks, cleared
        )
        if desired.action in POLICY_CHECKED and not by_parent:
            existing, policies = desired.current.types_by_path(), self._limits.convergence
            warnings += check_policy(blueprint, existing, self._registry, policies, project)
            requests = blueprint.environment.registry
            if refused := self._limits.labels.check_requests(project, requests):
                raise Invalid(refused)
            types = self._types_without_nested_stacks(blueprint.definition)
            warnings += self._limits.labels.find_unused_requests(project, requests, types)
        if warnings and blueprint.strict:
            raise Invalid(as_errors(warnings))
        breakpoints = self._breakpoints(desired)
        planned = plan(
            blueprint.definition.resources,
            desired.current.rows,
            breakpoints.find_rules,
            self.new_resource_id,
            desired.options,
            desired.current.settled,
        )
        label_of = self._limits.labels.find_for(project, blueprint.environment.registry)
        planned = set_labels(planned, desired.current.rows, label_of)
        if desired.refuses and desired.parent_step is None:
            refuse(planned)
        stack_id = StackId(desired.stack_id)
        planned = add_gates(
            planned,
            stack_id,
            desired.action,
            breakpoints.find_stack_rules(),
            lifecycle_plugins=self._lifecycle_plugins,
        )
        return planned, [*blueprint.warnings, *warnings]

    def _types_without_nested_stacks(self, definition: StackDefinition) -> dict[str, str | None]:
        """The types of all resources, by name; None: it has nested stacks."""
        types = dict(definition.undecided)
        types |= {name: one.type for name, one in definition.resources.items()}
        nested = {one.resource for one in definition.contained}
        return {
            name: None
            if name in nested or self._registry.has_nested_stack(type_name)
            else type_name
            for name, type_name in types.items()
        }

    def possible_nodes(self, desired: DesiredState, project: str) -> list[PlannedNode]:
        """The further nodes of a preview's plan: of resources whose condition is not known yet."""
        undecided = desired.blueprint.definition.undecided
        if not undecided:
            return []
        managed = {
            row.name for row in desired.current.rows if row.replaced_by is None and row.is_managed
        }
        breakpoints = self._breakpoints(desired)
        requests = desired.blueprint.environment.registry
        label_of = self._limits.labels.find_for(project, requests)
        return [
            PlannedNode(
                resource_id=self.new_resource_id(),
                name=name,
                type=type_name,
                operation=Operation.UPDATE if name in managed else Operation.CREATE,
                direction=Direction.FORWARD,
                rules=breakpoints.find_rules(name),
                label=label_of(type_name, name) if label_of else None,
            )
            for name, type_name in sorted(undecided.items())
        ]

    def _breakpoints(self, desired: DesiredState) -> Breakpoints:
        """All breakpoint rules of an update, of every source."""
        blueprint = desired.blueprint
        types = {row.name: row.type for row in desired.current.rows if row.replaced_by is None}
        types |= blueprint.definition.undecided
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

    async def plan_delete(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        path: Sequence[str],
        existing: Sequence[ExistingResource],
    ) -> Plan:
        """The plan of a delete. path: see `rules_without_request`."""
        breakpoints, stored = await self.rules_without_request(
            conn, project, stack_id, path, existing
        )
        planned = plan({}, existing, breakpoints.find_rules, self.new_resource_id)
        planned = set_labels(planned, existing, None)
        rules = breakpoints.find_stack_rules(stored) if existing else ()
        return add_gates(planned, StackId(stack_id), Action.DELETE, rules, lifecycle_plugins=False)

    async def rules_without_request(
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
            self._limits.operator, project, self._limits.hooks, always, path, by_parent=bool(path)
        )
        live = await live_breakpoints(conn, stack_id)
        breakpoints = Breakpoints(live, operator=by_operator, type_of=types.get, excluded=excluded)
        return breakpoints, await traversal_start.stack_rules(conn, stack_id)

    def new_resource_id(self) -> ResourceId:
        return ResourceId(self._new_id())


def refuse(planned: Plan) -> None:
    """Raises Invalid, if the plan has problems."""
    if planned.problems:
        raise Invalid([
            Finding(one.place, one.reason, one.remedy, "PlanRefused") for one in planned.problems
        ])  # fmt: skip
