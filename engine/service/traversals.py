"""Traversals begun and ended. Every change of a stack, whoever asked for it, begins here.

All methods work in the caller's transaction, under the lock on the stack's row.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from engine.errors import Conflict, Finding, Findings, Invalid, NotFound
from engine.hooks.rules import Breakpoints, check_patterns, encode_rules
from engine.plan.draft import Existing, Options, Plan
from engine.plan.graph import downstream
from engine.plan.passes import plan
from engine.plan.visits import plan_visits
from engine.service.blueprint import Blueprint, Limits, build, node_inputs, stored_outputs
from engine.service.requests import StackRequest
from engine.store import accept, begin
from engine.store.database import Connection
from engine.store.existing import read_concerned, read_existing, read_plain
from engine.store.records import TemplateRecord
from engine.store.supersede import supersede
from engine.types.registry import Registry
from engine.words import (
    Action,
    Json,
    Operation,
    Point,
    ResourceId,
    TraversalState,
)

#: States of a traversal that has not ended.
UNDER_WAY = (TraversalState.RUNNING, TraversalState.ENDING)


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a stack. settled: names whose rows are as wanted, left out of `rows`.

    kept: breakpoints stay with some of the settled.
    """

    rows: Sequence[Existing] = ()
    settled: frozenset[str] = frozenset()
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """What a stack is to become, and at whose request.

    stored: the version is in the store already. cleared: breakpoints left out, as
    ``resource:point`` patterns. wanted_plan: the digest of the plan that its author saw, or "".
    refuses: a plan with problems is refused; else its nodes fail where they may not go on.
    """

    stack_id: UUID
    action: Action
    number: int
    version: int
    blueprint: Blueprint
    found: Found
    requested_by: str
    stored: bool = False
    cleared: Sequence[str] = ()
    options: Options = field(default_factory=Options)
    kept: Mapping[str, Json] = field(default_factory=dict)
    wanted_plan: str = ""
    refuses: bool = True


class Traversals:
    def __init__(self, registry: Registry, limits: Limits, *, new_id: Callable[[], UUID]) -> None:
        self.registry = registry
        self.limits = limits
        self.new_id = new_id

    def build(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        *,
        project: str,
        stack_id: UUID,
        name: str,
    ) -> Blueprint:
        """Read a request whole. Raises Invalid, LimitReached."""
        return build(
            request,
            stored,
            project=project,
            stack_id=stack_id,
            stack_name=name,
            registry=self.registry,
            limits=self.limits,
        )

    async def lock(self, conn: Connection, project: str, stack_id: UUID) -> accept.Locked:
        """NotFound (code EntityNotFound) also when the stack was deleted."""
        locked = await accept.lock_stack(conn, project, stack_id)
        if locked is None or locked.deleted:
            raise NotFound(f"The Stack ({stack_id}) could not be found.", code="EntityNotFound")
        return locked

    async def supersede(self, conn: Connection, locked: accept.Locked, by: str) -> None:
        if locked.state in UNDER_WAY:
            await supersede(conn, locked.id, locked.traversal, by)

    def plan_toward(self, goal: Goal) -> tuple[Plan, list[str]]:
        """The plan, and warnings about patterns that match nothing. Raises Invalid, Conflict."""
        blueprint, names = goal.blueprint, {row.name for row in goal.found.rows}
        findings = Findings()
        said = (*blueprint.asked, *blueprint.by_environment, *blueprint.by_template)
        known = sorted({*blueprint.definition.resources, *names})
        warnings = check_patterns(said, known, findings)
        findings.raise_if_any()
        asking = Breakpoints(
            blueprint.asked, blueprint.by_environment, blueprint.by_template, cleared=goal.cleared
        )
        planned = plan(
            blueprint.definition.resources,
            goal.found.rows,
            asking.of,
            self._new_resource_id,
            goal.options,
            goal.found.settled,
        )
        if goal.refuses:
            _refuse(planned)
        if goal.wanted_plan and goal.wanted_plan != planned.digest:
            raise Conflict(
                "the plan is not the one that was looked at: the stack has moved since",
                place="plan_digest",
                remedy="Look at the plan again (--dry-run), and send its digest.",
                code="PlanChanged",
            )
        return planned, warnings

    async def toward(self, conn: Connection, goal: Goal) -> Plan:
        """Store the version, the traversal toward it and its graph, and the event that it began."""
        planned, warnings = self.plan_toward(goal)
        if not goal.stored:
            await self._store_version(conn, goal)
        await self._begin(
            conn, goal.stack_id, goal.action, goal.number, goal.version, planned,
            node_inputs(
                goal.blueprint, self.registry, {node.name for node in planned.nodes}, goal.kept
            ),
            goal.requested_by, warnings,
        )  # fmt: skip
        await self._store_rules(conn, goal)
        return planned

    async def away(
        self, conn: Connection, locked: accept.Locked, existing: Sequence[Existing], by: str
    ) -> None:
        """Begin a traversal that clears everything away."""
        planned = plan({}, existing, Breakpoints().of, self._new_resource_id)
        _refuse(planned)
        await self._begin(
            conn,
            locked.id,
            Action.DELETE,
            locked.traversal + 1,
            locked.version,
            planned,
            {},
            by,
            (),
        )

    async def visit(
        self, conn: Connection, locked: accept.Locked, action: Action, operation: Operation, by: str
    ) -> None:
        """Begin a traversal that leaves every definition alone."""
        existing = await read_existing(conn, locked.id)
        planned = plan_visits(operation, existing, Breakpoints().of)
        await self._begin(
            conn, locked.id, action, locked.traversal + 1, locked.version, planned, {}, by, ()
        )

    async def _begin(
        self,
        conn: Connection,
        stack_id: UUID,
        action: Action,
        number: int,
        version: int,
        planned: Plan,
        inputs: Mapping[str, begin.NodeInputs],
        by: str,
        warnings: Sequence[str],
    ) -> None:
        await accept.point_stack(conn, stack_id=stack_id, version=version, traversal=number)
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
            requested_by=by,
        )

    async def _store_version(self, conn: Connection, goal: Goal) -> None:
        blueprint, definition = goal.blueprint, goal.blueprint.definition
        await accept.insert_template(
            conn,
            stack_id=goal.stack_id,
            version=goal.version,
            description=definition.description,
            template=blueprint.template.document,
            environment=blueprint.environment.document,
            files=blueprint.files,
            parameters=blueprint.parameters,
            shown=definition.shown_parameters(),
            hidden=definition.hidden,
            outputs=stored_outputs(definition),
            requested_by=goal.requested_by,
        )
        await accept.forget_versions(conn, goal.stack_id, self.limits.versions)

    async def _store_rules(self, conn: Connection, goal: Goal) -> None:
        """Breakpoints of lasting sources stay with the resources, and go with them."""
        blueprint, resources = goal.blueprint, goal.blueprint.definition.resources
        declared = (*blueprint.asked, *blueprint.by_environment, *blueprint.by_template)
        before = goal.found.kept or any(row.rules for row in goal.found.rows)
        if declared or before:
            lasting = Breakpoints(blueprint.by_environment, blueprint.by_template)
            rules = {name: encode_rules(lasting.of(name)) for name in resources}
            await begin.store_rules(conn, goal.stack_id, rules)

    async def find(
        self, conn: Connection, stack_id: UUID, blueprint: Blueprint, also: Collection[str] = ()
    ) -> Found:
        """The rows that a change toward the blueprint may concern.

        Those that are as wanted, and that nothing changed reads or requires, are only counted: what
        an update costs should not grow with what it leaves alone. also: names that change anyway.
        """
        wanted = blueprint.definition.resources
        plain = await read_plain(conn, stack_id)
        settled = {
            name
            for name, digest in plain.digests.items()
            if name in wanted and wanted[name].digest == digest
        }
        settled -= {*also, *_asked_anyway(blueprint)}
        changed = downstream(
            {name: one.reads for name, one in wanted.items()}, wanted.keys() - settled
        )
        required = {one for name in changed for one in wanted[name].requires}
        gone = plain.digests.keys() - wanted.keys()
        rows = await read_concerned(conn, stack_id, changed | required | gone)
        return Found(rows, frozenset(settled - changed - required), plain.kept)

    def _new_resource_id(self) -> ResourceId:
        return ResourceId(self.new_id())


def _asked_anyway(blueprint: Blueprint) -> list[str]:
    """Resources with a short pre-update hook: it asks even if nothing changes."""
    asking = Breakpoints(blueprint.asked, blueprint.by_environment, blueprint.by_template)
    return [
        name
        for name in blueprint.definition.resources
        if any(rule.short and rule.point is Point.PRE_UPDATE for rule in asking.of(name))
    ]


def _refuse(planned: Plan) -> None:
    if planned.problems:
        raise Invalid([
            Finding(one.place, one.reason, one.remedy, "PlanRefused") for one in planned.problems
        ])  # fmt: skip
