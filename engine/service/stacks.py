"""Changes of stacks: each method starts or ends a traversal."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

import orjson

from engine.errors import Conflict, Findings, NotFound
from engine.plan.draft import Options
from engine.plan.drift import NO_MARKS, DriftMarks
from engine.principal import Principal
from engine.service.actions import cancel as cancelling
from engine.service.actions.moves import Moves
from engine.service.converge_rounds import begin_round, check_continued
from engine.service.dry_run import DryRun
from engine.service.observations import read_repairs, repair_drift
from engine.service.reads.stack_outputs import refuse_if_read
from engine.service.repairs import RepairNotNeeded, RepairUpdate, check_repair
from engine.service.requests.adoption import check_adopted, check_imported, imported_resources
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.change_checks import (
    PARTICIPLES,
    check_immutable,
    check_name,
)
from engine.service.requests.desired_state import CurrentState, DesiredState, read_current_state
from engine.service.requests.external_validation import ExternalValidation
from engine.service.requests.quotas import CHECKS, REPAIRS, StackCounts
from engine.service.requests.requests import StackRequest
from engine.service.requests.stack_region import change_region
from engine.service.traversals import end as ending
from engine.service.traversals.prepared_update import PreparedUpdate, UpdateBuilder
from engine.service.traversals.start import PlannedUpdate, Traversals, action_in_progress
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.observer import drift_rows
from engine.store.observer.converge_requests import PendingConverge
from engine.store.resources.current_resources import read_existing
from engine.store.stacks import stack_locks, stack_rows
from engine.store.stacks.stack_lists import find_stack
from engine.store.stacks.stack_tree import busy_ancestor
from engine.store.stacks.templates import read_requesters
from engine.store.traversals.advance import TraversalToEnd
from engine.words import UNDER_WAY, Action, Operation

#: In-place actions: the operation that each runs on every resource. They change no template.
_OPERATIONS = {
    Action.CHECK: Operation.CHECK,
    Action.SUSPEND: Operation.SUSPEND,
    Action.RESUME: Operation.RESUME,
}


class CreatedStack(NamedTuple):
    """A stack whose create has been accepted."""

    id: UUID
    name: str


class Stacks:
    """The changes of stacks that users request, and the ends of traversals that workers report."""

    def __init__(
        self,
        database: Database,
        traversals: Traversals,
        *,
        moves: Moves,
        external_validation: ExternalValidation,
        dry_run: DryRun,
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._moves = moves
        self._external_validation = external_validation
        self._dry_run = dry_run
        self._updates = UpdateBuilder(database, traversals, external_validation)
        self._wake = wake
        self._stack_counts = StackCounts()

    async def create(
        self, project: str, request: StackRequest, warned: Findings | None = None
    ) -> CreatedStack:
        """Validate the request, plan the stack and store both; returns after the commit.

        warned: gets the warnings about the request.

        Raises Conflict (StackExists, PlanChanged, IdempotencyKeyReused), Invalid, LimitReached.
        """
        check_name(request.name)
        stack_id = self._traversals.new_id()
        blueprint = await self._traversals.blueprints.build(
            request, None, project=project, stack_id=stack_id, name=request.name
        )
        if warned is not None:
            warned.warn_all(blueprint.warnings)
        if request.adopted is not None:
            check_adopted(blueprint, request.adopted, self._traversals.registry)
        check_imported(blueprint.definition, self._traversals.registry)
        await self._external_validation.validate(
            blueprint.definition, project, request.credential, blueprint.region
        )
        new_stack = _new_stack(project, request, blueprint.region)
        desired = _desired_by_create(stack_id, request, blueprint, new_stack)
        if request.idempotency_key or request.plan_digest:
            created = await self._create(project, request, desired, warned)
        else:
            planned = await self._traversals.plan_create(desired, new_stack.header)
            created = await self._create_planned(project, request, desired, warned, planned)
        self._wake()
        return created

    async def _create_planned(
        self,
        project: str,
        request: StackRequest,
        desired: DesiredState,
        warned: Findings | None,
        planned: PlannedUpdate,
    ) -> CreatedStack:
        """Store the stack in one statement, if that is enough."""
        quotas = self._traversals.limits.for_project(project).quotas
        below = self._stack_counts.range_below(project, quotas)
        if (
            below is not None
            and not quotas.limits_change(planned.plan)
            and self._traversals.is_one_statement(desired, planned)
            and await self._traversals.create_at_once(desired, planned, below)
        ):
            if warned is not None:
                warned.warn_all(planned.warnings)
            return CreatedStack(desired.stack_id, request.name)
        return await self._create(project, request, desired, warned, planned)

    async def _create(
        self,
        project: str,
        request: StackRequest,
        desired: DesiredState,
        warned: Findings | None,
        planned: PlannedUpdate | None = None,
    ) -> CreatedStack:
        async with self._database.transaction("accept") as conn:
            repeated = await self._find_repeated(conn, project, request, desired.stack_id)
            if repeated is not None:
                return await self._find_created(conn, project, repeated)
            if request.plan_digest:
                previewed = replace(
                    desired, blueprint=await self._dry_run.build_new(project, request, conn)
                )
                await self._dry_run.preview(conn, project, request.name, previewed)
            started = await self._traversals.start_update(conn, desired, warned, planned)
            quotas = self._traversals.limits.for_project(project).quotas
            await self._stack_counts.check(conn, project, quotas, started.outbox)
            await quotas.check_change(conn, project, started.plan)
        return CreatedStack(desired.stack_id, request.name)

    @staticmethod
    async def _find_created(conn: Connection, project: str, stack_id: UUID) -> CreatedStack:
        record = await find_stack(conn, project, stack_id, "")
        if record is None:
            raise NotFound(
                "the stack that this request created is gone",
                place="Idempotency-Key",
                remedy="Use a new key to create the stack again.",
                code="EntityNotFound",
            )
        return CreatedStack(record.id, record.name)

    async def _find_repeated(
        self, conn: Connection, project: str, request: StackRequest, stack_id: UUID
    ) -> UUID | None:
        """The stack that an earlier request with the same Idempotency-Key created, or None.

        Raises Conflict (IdempotencyKeyReused) if that request was a different one.
        """
        if not request.idempotency_key:
            return None
        content = orjson.dumps(
            [request.name, request.template, request.environment, request.files,
             request.parameters, request.tags, request.timeout_mins, request.environment_files,
             request.disable_rollback, request.plan_digest, request.hooks_clear, request.hooks_add],
            option=orjson.OPT_SORT_KEYS,
        )  # fmt: skip
        digest = hashlib.sha256(content).hexdigest()
        claimed = await stack_rows.claim_key(
            conn, project, request.idempotency_key, digest, stack_id
        )
        if claimed.digest != digest:
            raise Conflict(
                "this Idempotency-Key was used for another request",
                place="Idempotency-Key",
                remedy="Use a new key for each new request.",
                code="IdempotencyKeyReused",
            )
        return None if claimed.stack_id == stack_id else claimed.stack_id

    async def update(
        self,
        project: str,
        stack_id: UUID,
        request: StackRequest,
        warned: Findings | None = None,
        repair: RepairUpdate | None = None,
        continued: PendingConverge | None = None,
    ) -> None:
        """Start a traversal toward the requested template; it supersedes one under way.

        warned: gets the warnings about the request. repair: of a policy, which supersedes nothing.
        continued: a converge, whose next round this is, unless another process has begun it.
        Raises NotFound, Invalid, Conflict, LimitReached; RepairNotNeeded.
        """
        warned = Findings() if warned is None else warned
        prepared = await self._updates.prepare(project, stack_id, request, warned)
        async with self._database.transaction("accept") as conn:
            locked = await self._lock_to_update(conn, project, stack_id, request, prepared)
            if continued is not None:
                await check_continued(conn, continued)
            excluded: Sequence[str] = ()
            if repair is not None:
                await check_repair(conn, locked, repair)
                excluded = await read_requesters(conn, stack_id, locked.version, scales=False)
            blueprint = await self._updates.build_locked(conn, locked, request, prepared)
            warned.warn_all(blueprint.warnings)
            await check_immutable(conn, stack_id, locked.version, blueprint)
            configured = self._traversals.limits.region
            await change_region(conn, locked, blueprint.region, configured)
            check_imported(blueprint.definition, self._traversals.registry)
            await self._traversals.supersede(conn, locked, request.requested_by)
            moved = await self._moves.apply(conn, project, locked, request, blueprint)
            marks = NO_MARKS
            if request.converge:
                automatic = repair is not None or continued is not None
                marks = await self._begin_converge(
                    conn, locked, request, blueprint, repair, automatic=automatic
                )
            current = await read_current_state(conn, stack_id, blueprint)
            await stack_rows.update_settings(
                conn,
                stack_id=stack_id,
                tags=request.tags,
                timeout_mins=request.timeout_mins,
                disable_rollback=request.disable_rollback,
            )
            desired = await self._traversals.planner.desired_by_update(
                project,
                request,
                blueprint,
                current,
                stack_id=stack_id,
                number=locked.traversal + 1,
                version=locked.newest + 1,
                moved=moved,
                chosen=repair.make_filter(blueprint.definition) if repair else None,
            )
            tags = locked.tags if request.tags is None else list(request.tags)
            desired = replace(
                desired,
                credential=request.credential,
                excluded=excluded,
                header=stack_rows.StackHeader(project, locked.name, tags),
            )
            if request.plan_digest:
                await self._dry_run.preview(conn, project, locked.name, desired, marks)
            started = await self._traversals.start_update(conn, desired, warned)
            quotas = self._traversals.limits.for_project(project).quotas
            await quotas.check_change(conn, project, started.plan)
            if repair is not None:
                await drift_rows.mark_repair(conn, stack_id, desired.number)
                if repair.limit is not None:
                    await quotas.check(conn, project, REPAIRS)
        self._wake()

    async def _lock_to_update(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        request: StackRequest,
        prepared: PreparedUpdate | None,
    ) -> stack_locks.LockedStack:
        """Lock the rows that the update changes: of the stack, and of stacks of its tree from which
        resources move. Raises NotFound, Invalid."""
        renames = bool(prepared and prepared.blueprint.definition.moved)
        whole_tree = renames or request.converge
        await self._moves.lock(conn, project, stack_id, request.moved, whole_tree=whole_tree)
        return await self._traversals.lock_root(conn, project, stack_id, "updated")

    async def _begin_converge(
        self,
        conn: Connection,
        locked: stack_locks.LockedStack,
        request: StackRequest,
        blueprint: Blueprint,
        repair: RepairUpdate | None,
        *,
        automatic: bool,
    ) -> DriftMarks:
        """Select the drift that the converge repairs, and begin its round. Return what it repairs,
        if the request has the digest of a plan. automatic: no user asks for it. Raises
        RepairNotNeeded, if it is automatic and there is no drift any more."""
        selected = await self._traversals.planner.select_defined(request, blueprint, locked.project)
        marks = NO_MARKS
        if request.plan_digest:
            marks = await read_repairs(conn, locked.id, selected)
        if repair is None:
            repaired = await repair_drift(conn, locked.id, selected)
        else:
            repaired = await repair.mark(conn, locked.id)
        if automatic and not repaired:
            raise RepairNotNeeded
        number, keyring = locked.traversal + 1, self._traversals.keyring
        await begin_round(conn, locked, number, request, selected, keyring)
        return marks

    async def delete(
        self, project: str, stack_id: UUID, requested_by: Principal, *, credential: str = ""
    ) -> None:
        """Start a traversal that deletes all resources and then the stack; it supersedes one under
        way. Does nothing if a delete is under way. Raises NotFound, Invalid.
        """
        async with self._database.transaction("accept") as conn:
            locked = await self._lock_to_delete(conn, project, stack_id)
            if locked.action == Action.DELETE and locked.state in UNDER_WAY:
                return
            await refuse_if_read(conn, project, stack_id, locked.name, "deleted")
            await self._traversals.supersede(conn, locked, requested_by)
            existing = await read_existing(conn, stack_id)
            await self._traversals.start_delete(conn, locked, existing, requested_by)
            await self._traversals.keep_credential(conn, stack_id, locked.traversal + 1, credential)
        self._wake()

    async def _lock_to_delete(
        self, conn: Connection, project: str, stack_id: UUID
    ) -> stack_locks.LockedStack:
        """As `lock_root`; also a nested stack, if the operator allows it and no stack above it has
        an action in progress. Raises Conflict."""
        if not self._traversals.limits.deletes_nested:
            return await self._traversals.lock_root(conn, project, stack_id, "deleted")
        await stack_locks.lock_with_ancestors(conn, stack_id)
        locked = await self._traversals.lock(conn, project, stack_id)
        busy = await busy_ancestor(conn, stack_id) if locked.root else None
        if busy is not None:
            raise Conflict(
                f"Stack {locked.name} is part of stack {busy}, which has an action in progress.",
                place="stack",
                remedy=f"Wait until the action of {busy} ends.",
                code="ActionInProgress",
            )
        return locked

    async def start_action(
        self, project: str, stack_id: UUID, action: Action, by: Principal, *, credential: str = ""
    ) -> None:
        """Start an in-place action: check, suspend or resume.

        Does nothing if the same action is under way, or if a suspended stack is to be suspended.
        Raises NotFound, Invalid, Conflict (ActionInProgress) while another action is under way.
        """
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock_root(conn, project, stack_id, PARTICIPLES[action])
            if locked.action == action and locked.state in UNDER_WAY:
                return
            if locked.action == action == Action.SUSPEND and locked.state == "complete":
                return
            if locked.state in UNDER_WAY:
                remedy = f"Wait until it ends or stop it, then {action.lower()} the stack."
                raise action_in_progress(locked, remedy)
            await self._traversals.start_action(conn, locked, action, _OPERATIONS[action], by)
            await self._traversals.keep_credential(conn, stack_id, locked.traversal + 1, credential)
            if action == Action.CHECK:
                await self._traversals.limits.for_project(project).quotas.check(
                    conn, project, CHECKS
                )
        self._wake()

    async def cancel(self, project: str, stack_id: UUID, by: Principal, *, rollback: bool) -> None:
        """End the traversal under way as FAILED; with rollback, start a rollback.

        Raises NotFound; Invalid (NotSupported) if no traversal is under way or its action cannot
        be cancelled this way.
        """
        async with self._database.transaction("accept") as conn:
            await cancelling.cancel(
                conn, self._traversals, project, stack_id, by, rollback=rollback
            )
        self._wake()

    async def stop(self, project: str, stack_id: UUID, by: Principal) -> None:
        """End the traversal under way as STOPPED, so that it can be continued.

        Raises NotFound; Invalid (NotSupported) if no traversal is under way.
        """
        async with self._database.transaction("accept") as conn:
            await cancelling.stop(conn, self._traversals, project, stack_id, by)
        self._wake()

    async def end_complete(self, ends: Sequence[TraversalToEnd]) -> list[TraversalToEnd]:
        """For workers: end traversals whose nodes have all succeeded, in one transaction. Returns
        those that `end_alone` must end."""
        async with self._database.statement("end") as conn:
            completed = await ending.end_complete(conn, ends)
        if completed.parents_due:
            self._wake()
        return [one for one in ends if one not in completed.ended]

    async def end_traversal(self, ended: TraversalToEnd) -> None:
        """End a traversal whose nodes have all ended, or that has timed out."""
        for one in await self.end_complete([ended]):
            await self.end_alone(one)

    async def end_alone(self, ended: TraversalToEnd) -> None:
        """For workers: end a traversal in a transaction of its own, whatever its result is."""
        async with self._database.transaction("end") as conn:
            await ending.end(conn, self._traversals, ended)
        self._wake()

    async def fail_traversal(self, ended: TraversalToEnd, reason: str) -> None:
        """For workers: fail a traversal for which `end_traversal` raised an unexpected error."""
        async with self._database.transaction("end") as conn:
            await ending.fail(conn, ended, reason)
        self._wake()


def _new_stack(project: str, request: StackRequest, region: str) -> stack_rows.NewStack:
    return stack_rows.NewStack(
        project=project,
        name=request.name,
        owner=request.requested_by,
        tags=list(request.tags or ()),
        timeout_mins=request.timeout_mins,
        disable_rollback=request.disable_rollback is not False,
        private_outputs=request.private_outputs,
        region=region,
    )


def _desired_by_create(
    stack_id: UUID, request: StackRequest, blueprint: Blueprint, new_stack: stack_rows.NewStack
) -> DesiredState:
    return DesiredState(
        stack_id=stack_id,
        action=Action.CREATE if request.adopted is None else Action.ADOPT,
        number=1,
        version=1,
        blueprint=blueprint,
        current=CurrentState(),
        requested_by=request.requested_by,
        cleared_breakpoints=request.hooks_clear,
        options=Options(
            adopted=imported_resources(blueprint.definition) | {**(request.adopted or {})}
        ),
        wanted_plan=request.plan_digest,
        credential=request.credential,
        header=new_stack.header,
        new_stack=new_stack,
    )
