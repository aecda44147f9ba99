"""Operations of resources that own a nested stack: start a traversal of it and wait for its end.

`NestedStacks.run_operation` is one call of such an operation. The command that the type returns
(`RunNested`) is started in one transaction that locks both stacks, and recorded with the operation
key, so that each step runs once even if a process crashes. Then the node waits without a timer; the
end of the nested traversal wakes it (engine/service/traversals/end.py).

The lock of a parent stack is held as briefly as possible: all its nodes wait for it, and each that
waits holds a connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from inspect import isawaitable
from types import MappingProxyType
from typing import NamedTuple, assert_never
from uuid import UUID
from weakref import WeakValueDictionary

from engine.errors import Findings, NotFound
from engine.hooks.rule_patterns import cleared_inside
from engine.hot.evaluation.resolver import evaluate_output
from engine.hot.evaluation.stack_outputs import StackOutputs
from engine.hot.expressions.expression import decode
from engine.hot.expressions.member_attributes import ALL_SECRET
from engine.hot.functions.cost_budget import resolution_budget
from engine.hot.language.versions import date_of
from engine.hot.nested.template_stack import TEMPLATE_STACK, stack_parameters
from engine.plan.draft import AdoptedResource, Options, Plan
from engine.plan.traversal_result import ended_early
from engine.service.reads.stack_outputs import with_stack_outputs
from engine.service.reads.stored_state import secret_outputs
from engine.service.requests.adoption import check_adopted, read_adopted
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.change_checks import check_immutable
from engine.service.requests.desired_state import (
    CurrentState,
    DesiredState,
    live_breakpoints,
    read_current_state,
)
from engine.service.requests.external_validation import ExternalValidation
from engine.service.requests.nested_stack import (
    NestedStack,
    OwningResource,
    build_nested,
    nested_name,
    read_parent,
)
from engine.service.traversals import end as ending
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.encryption.secret_values import DecryptionFailed
from engine.store.resources.current_resources import read_existing
from engine.store.resources.overrides import read_ended_overrides, read_overrides
from engine.store.resources.scaling import find_properties
from engine.store.stacks import stack_locks
from engine.store.stacks.snapshots import SnapshotRecord, insert_nested_snapshot, read_snapshots
from engine.store.stacks.templates import read_template, read_template_summary
from engine.store.traversals import nested_stacks
from engine.store.traversals.advance import Claim, TraversalToEnd, Work
from engine.store.traversals.nested_stacks import ClaimedTraversal, MemberRecord, NestedStackRecord
from engine.store.traversals.start import ParentStep
from engine.types.contract import (
    ActOnNested,
    Call,
    Child,
    DeleteNested,
    Failed,
    Member,
    Outcome,
    ReconcileNested,
    RestoreNested,
    RunNested,
    Stopped,
    Wait,
)
from engine.types.registry import TypeRegistry
from engine.words import UNDER_WAY, Action, DeletionPolicy, Json, Operation, StackId, TraversalState
from engine.work.nodes.prepare import Inputs, PreparedNode
from engine.work.nodes.visible_properties import kept_view


class Children:
    def __init__(self, database: Database, registry: TypeRegistry) -> None:
        self._database = database
        self._registry = registry

    async def find(self, work: Work, call: Call) -> NestedStackRecord | None:
        """The nested stack of a resource; a deleted one only if this operation deleted it."""
        async with self._database.connection() as conn:
            found = await nested_stacks.find_nested_stack(
                conn, work.key.stack_id, call.resource_id, call.physical_id
            )
        gone = (
            found is not None and found.deleted and found.parent_operation_key != call.operation_key
        )
        return None if gone else found

    async def read(self, child: NestedStackRecord, key: UUID) -> Child:
        """The nested stack as the type's operation receives it. key: of that operation.

        Raises DecryptionFailed (Undecryptable).
        """
        async with self._database.connection() as conn:
            rows = await nested_stacks.read_members(conn, child.id)
            shown = await read_template_summary(conn, child.id, child.version)
            stored = await read_template(conn, child.id, child.version)
        if shown.undecryptable:
            raise DecryptionFailed(shown.undecryptable, place="outputs", code="Undecryptable")
        secrets = {row.name: self._secrets(row) for row in rows}
        view = Inputs({
            row.name: [row.reference, row.attributes, secrets[row.name]] for row in rows
        })  # fmt: skip
        budget = resolution_budget()
        outputs: dict[str, Json] = {}
        for one in shown.outputs if child.state == TraversalState.COMPLETE else ():
            value = decode(one["value"], date_of(shown.written_in))
            outputs[one["key"]], _ = evaluate_output(value, view, budget)
        secret = secret_outputs(shown, view, outputs, stored)
        return Child(
            StackId(child.id),
            child.name,
            (child.parent_step or "") if child.parent_operation_key == key else "",
            TraversalState(child.state),
            child.reason,
            [Member(**asdict(row) | {"secret_attributes": secrets[row.name]}) for row in rows],
            outputs,
            stored.template,
            stored.parameters,
            secret,
        )

    async def read_referenced(
        self, prepared: PreparedNode
    ) -> tuple[Mapping[str, Json] | None, bool]:
        """The properties of the resource that `referenced_resource` of the type names, and whether
        one is secret; None if there is none."""
        reference = prepared.type.referenced_resource(prepared.properties)
        if reference is None:
            return None, False
        async with self._database.connection() as conn:
            return await find_properties(conn, prepared.work.key.stack_id, reference)

    def _secrets(self, row: MemberRecord) -> Sequence[str]:
        """Names of a member's secret attributes. Rows of earlier releases do not have them: all
        attributes are secret if the type has secrets or is unknown."""
        if row.secret_attributes is not None:
            return row.secret_attributes
        try:
            return ALL_SECRET if self._registry.get(row.type).schema.has_secrets() else ()
        except NotFound:
            return ALL_SECRET


#: Maximum number of nested stacks that a process reads, computes and plans concurrently; limits its
#: memory.
MAX_CONCURRENT = 4
IN_PLACE_ACTIONS = {
    Operation.CHECK: Action.CHECK,
    Operation.SUSPEND: Action.SUSPEND,
    Operation.RESUME: Action.RESUME,
    Operation.SNAPSHOT: Action.SNAPSHOT,
}
#: Calls the operation of the resource type.
Run = Callable[[Call], Outcome | Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of an operation: a command for its nested stack."""

    prepared: PreparedNode
    call: Call
    nest: RunNested
    child: NestedStackRecord | None

    @property
    def claim(self) -> Claim:
        return self.prepared.work.key

    @property
    def parent_step(self) -> ParentStep:
        return ParentStep(
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
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        # Tasks of this process wait here for each other, without a connection.
        self._parent_locks = WeakValueDictionary[UUID, asyncio.Lock]()

    async def run_operation(self, prepared: PreparedNode, call: Call, run: Run) -> Outcome:
        """Call an operation; if it returns a command for the nested stack, start that.

        Raises what the operation and the start of a traversal raise.
        """
        async with self._slots:
            child = await self._find_child(prepared.work, call)
            if child is not None and child.is_run_by(call.operation_key):
                return Wait(None, call.progress)
            result = await self._call(prepared, call, run, child)
            if isinstance(result, RunNested):
                return await self._start(_Step(prepared, call, result, child))
        if not isawaitable(result):
            return result
        outcome = await result
        if not isinstance(outcome, RunNested):
            return outcome
        async with self._slots:
            return await self._start(_Step(prepared, call, outcome, child))

    async def _find_child(self, work: Work, call: Call) -> NestedStackRecord | None:
        """The nested stack. Ends its traversal if the operation that started it is superseded."""
        child = await self._children.find(work, call)
        if child is None or not child.is_run_by(call.operation_key) or not call.superseded:
            return child
        await self._end_child_early(work, child, cancels=call.cancelled)
        return await self._children.find(work, call)

    async def _call(
        self, prepared: PreparedNode, call: Call, run: Run, child: NestedStackRecord | None
    ) -> Outcome | Awaitable[Outcome]:
        """Call the operation of the type in a thread: the template of a thousand members takes
        longer than the event loop may be blocked."""
        view = None if child is None else await self._children.read(child, call.operation_key)
        named, names_secret = await self._children.read_referenced(prepared)
        has_secrets = names_secret or bool(_resource(prepared).secret)
        extended_call = replace(call, child=view, has_secrets=has_secrets, referenced=named)
        return await self._traversals.thread_pool(lambda: run(extended_call), prepared.work.project)

    async def _end_child_early(
        self, work: Work, child: NestedStackRecord, *, cancels: bool
    ) -> None:
        """End the nested traversal early, with the state of the parent's traversal. cancels: cancel
        its operations.

        Does nothing if another one has replaced it: a worker that has lost its claim must not end
        the traversal of a newer operation.
        """
        stopped = work.traversal_state == TraversalState.STOPPED
        state = TraversalState.STOPPED if stopped else TraversalState.FAILED
        async with self._database.transaction("nest") as conn:
            await stack_locks.lock_stacks(conn, [work.key.stack_id, child.id])
            locked = await stack_locks.lock_stack(conn, work.project, child.id)
            if locked is None or locked.state not in UNDER_WAY:
                return
            if locked.traversal != child.traversal:
                return
            action = Action(locked.action)
            verdict = ended_early(action, _REASONS[work.traversal_state].format(action), state)
            end = TraversalToEnd(locked.id, locked.traversal)
            await ending.end_traversal_early(
                conn,
                self._traversals.registry,
                end,
                action,
                locked.version,
                verdict,
                by=locked.requested_by,
                cancels=cancels,
            )

    async def _start(self, step: _Step) -> Outcome:
        """Start the step, unless another worker has the node or its traversal has ended."""
        command, child = step.nest.goal, step.child
        async with self._database.connection() as conn:
            parent_traversal = await nested_stacks.read_claimed_traversal(conn, step.claim)
        waiting = Wait(None, step.nest.progress)
        if parent_traversal is None:
            return waiting  # another worker has claimed the node: the outcome is discarded
        plan = (
            await self._plan(step, command, parent_traversal)
            if isinstance(command, ReconcileNested | RestoreNested)
            else None
        )
        if (
            plan is not None
            and child is None
            and not plan.blueprint.stack_outputs  # sources are locked after the parent
            and parent_traversal.state == TraversalState.RUNNING
            and await self._create(step, plan, parent_traversal)
        ):
            self._wake()
            return waiting
        lock = self._parent_locks.setdefault(step.claim.stack_id, asyncio.Lock())
        async with lock, self._database.transaction("nest") as conn:
            parent_and_child = [step.claim.stack_id, *([child.id] if child else [])]
            await stack_locks.lock_stacks(conn, parent_and_child)
            parent_traversal = await nested_stacks.read_claimed_traversal(conn, step.claim)
            if parent_traversal is None:
                return waiting
            if parent_traversal.state != TraversalState.RUNNING:
                return _outcome_of_ended(parent_traversal.state, child)
            if plan is not None:
                await self._update(conn, step, plan, parent_traversal)
            elif child is not None and isinstance(command, DeleteNested | ActOnNested):
                await self._delete_or_act(conn, step, command, child, parent_traversal)
            else:
                reason = "it has no nested stack"
                return Failed(reason, public_reason=reason)
        self._wake()
        return waiting

    async def _plan(
        self,
        step: _Step,
        command: ReconcileNested | RestoreNested,
        parent_traversal: ClaimedTraversal,
    ) -> "_Plan":
        """Build the nested stack's definition, before anything is locked. Raises Invalid."""
        work, call, child = step.prepared.work, step.call, step.child
        snapshot: SnapshotRecord | None = None
        async with self._database.connection() as conn:
            if isinstance(command, RestoreNested):
                command, snapshot = await _read_snapshot(conn, command, child)
            parent = await read_template(conn, work.key.stack_id, parent_traversal.version)
            current_files: Mapping[str, str] = {}
            if child is not None and command.template is not None:
                current_files = (await read_template(conn, child.id, child.version)).files
        stack_id = self._new_id() if child is None else child.id
        name = child.name if child else nested_name(work.stack_name, work.name, call.operation_key)
        limits = self._traversals.limits.for_project(work.project)
        nested_stack = NestedStack(
            stack_id, name, work.project, work.place.split("/"), parent_traversal.nested_breakpoints
        )
        registry = self._traversals.registry

        async def define(outputs: StackOutputs) -> Blueprint:
            return await self._traversals.thread_pool(
                lambda: build_nested(
                    read_parent(parent, limits),
                    command,
                    _resource(step.prepared),
                    nested_stack,
                    registry=registry,
                    limits=limits,
                    current_files=current_files,
                    stack_outputs=outputs,
                ),
                work.project,
            )

        read = partial(
            self._traversals.blueprints.read_stack_outputs,
            project=work.project,
            stack_id=work.key.stack_id,
        )
        # What the parent has read does not change during its traversal.
        blueprint = await with_stack_outputs(define, read, parent.read_outputs())
        await self._external_validation.validate(
            blueprint.definition, work.project, call.credential, call.region, is_nested=True
        )
        adopted = None
        if command.adopts is not None:
            findings = Findings()
            adopted = read_adopted(command.adopts, findings)
            findings.raise_if_any()
            check_adopted(blueprint, adopted, registry)
        kept = snapshot.saved_data(blueprint.definition.resources) if snapshot else {}
        return _Plan(stack_id, name, blueprint, adopted, kept, snapshot)

    async def _create(self, step: _Step, plan: "_Plan", parent_traversal: ClaimedTraversal) -> bool:
        """Start the first traversal of a new nested stack. Returns False, and stores nothing, if
        the parent has changed since it was read.

        The parent is locked last, after everything is planned and stored. This order causes no
        deadlock: no other transaction sees the rows of the new stack, so none waits for them.
        """
        try:
            async with self._database.transaction("nest") as conn:
                desired, planned = await self._start_first(conn, step, plan, parent_traversal)
                await stack_locks.lock_stacks(conn, [step.claim.stack_id])
                now = await nested_stacks.read_claimed_traversal(conn, step.claim)
                live = await live_breakpoints(conn, plan.stack_id)
                if now != parent_traversal or live != desired.current.live:
                    raise _ParentChanged
                await self._check_quotas(conn, step, planned)
        except _ParentChanged:
            return False
        return True

    async def _start_first(
        self, conn: Connection, step: _Step, plan: "_Plan", parent_traversal: ClaimedTraversal
    ) -> tuple[DesiredState, Plan]:
        """Store a new nested stack with its first traversal."""
        work, resource_id = step.prepared.work, step.call.resource_id
        await nested_stacks.insert_nested_stack(
            conn, plan.stack_id, plan.name, work.key.stack_id, resource_id, work.name
        )
        current = CurrentState(live=await live_breakpoints(conn, plan.stack_id))
        desired = self._build_desired(step, plan, parent_traversal, Action.CREATE, current)
        started = await self._traversals.start_update(conn, desired)
        await self._store_rules(conn, plan, parent_traversal)
        return desired, started.plan

    async def _update(
        self, conn: Connection, step: _Step, plan: "_Plan", parent_traversal: ClaimedTraversal
    ) -> None:
        """Start a traversal that creates or updates the nested stack; both stacks are locked."""
        if step.child is None:
            _, planned = await self._start_first(conn, step, plan, parent_traversal)
            await self._check_quotas(conn, step, planned)
            return
        locked = await self._traversals.lock(conn, step.prepared.work.project, plan.stack_id)
        await self._traversals.supersede(conn, locked, parent_traversal.requested_by)
        await check_immutable(conn, plan.stack_id, locked.version, plan.blueprint)
        overrides = await read_ended_overrides(conn, plan.stack_id)
        if plan.snapshot is not None:
            names = plan.blueprint.definition.resources
            now = await read_overrides(conn, plan.stack_id)
            overrides = plan.snapshot.restored_overrides(names, now)
        restored = {*plan.kept, *overrides}
        current = await read_current_state(conn, plan.stack_id, plan.blueprint, restored)
        desired = self._build_desired(
            step, plan, parent_traversal, Action.UPDATE, current, overrides
        )
        desired = replace(desired, number=locked.traversal + 1, version=locked.newest + 1)
        started = await self._traversals.start_update(conn, desired)
        await self._store_rules(conn, plan, parent_traversal)
        await self._check_quotas(conn, step, started.plan)

    def _build_desired(
        self,
        step: _Step,
        plan: "_Plan",
        parent_traversal: ClaimedTraversal,
        action: Action,
        current: CurrentState,
        overrides: Mapping[str, Json] = MappingProxyType({}),
    ) -> DesiredState:
        """The target of the nested stack's first traversal. action: unless the plan has one."""
        return DesiredState(
            stack_id=plan.stack_id,
            action=plan.action or action,
            number=1,
            version=1,
            blueprint=plan.blueprint,
            current=current,
            requested_by=parent_traversal.requested_by,
            options=Options(
                adopted=plan.adopted or {}, restored=frozenset({*plan.kept, *overrides})
            ),
            kept=plan.kept,
            overrides=overrides,
            cleared_breakpoints=cleared_inside(
                parent_traversal.cleared_breakpoints, step.prepared.work.name
            ),
            refuses=False,
            credential=step.call.credential,
            parent_step=step.parent_step,
            excluded=parent_traversal.excluded,
        )

    @staticmethod
    async def _store_rules(
        conn: Connection, plan: "_Plan", parent_traversal: ClaimedTraversal
    ) -> None:
        """Store the rules of the parent stack that stay."""
        lasting = [one for one in parent_traversal.nested_breakpoints if not one["requested"]]
        await nested_stacks.store_parent_rules(conn, plan.stack_id, lasting)

    async def _check_quotas(self, conn: Connection, step: _Step, planned: Plan) -> None:
        project = step.prepared.work.project
        quotas = self._traversals.limits.for_project(project).quotas
        await quotas.check_change(conn, project, planned)

    async def _delete_or_act(
        self,
        conn: Connection,
        step: _Step,
        command: DeleteNested | ActOnNested,
        child: NestedStackRecord,
        parent_traversal: ClaimedTraversal,
    ) -> None:
        """Start a traversal that deletes the nested stack or runs an in-place action on it."""
        project, by = step.prepared.work.project, parent_traversal.requested_by
        locked = await self._traversals.lock(conn, project, child.id)
        await self._traversals.supersede(conn, locked, by)
        match command:
            case DeleteNested():
                existing = await read_existing(conn, child.id)
                await self._traversals.start_delete(
                    conn, locked, existing, by, step.parent_step, parent_traversal.excluded
                )
            case ActOnNested(operation=operation):
                action = IN_PLACE_ACTIONS[operation]
                if action is Action.SNAPSHOT:
                    await insert_nested_snapshot(
                        conn,
                        child.id,
                        step.call.operation_key,
                        (step.claim.stack_id, step.claim.traversal),
                        locked.traversal + 1,
                        locked.version,
                    )
                await self._traversals.start_action(
                    conn, locked, action, operation, by, step.parent_step, parent_traversal.excluded
                )
            case _ as never:
                assert_never(never)
        await self._traversals.keep_credential(
            conn, child.id, locked.traversal + 1, step.call.credential
        )


class _ParentChanged(Exception):
    """The parent's traversal is not as it was when a nested stack was planned."""


class _Plan(NamedTuple):
    """adopted: physical resources by resource name; None: no adoption. kept: snapshot data by
    resource name. snapshot: that the nested stack returns to; None: it is created or updated."""

    stack_id: UUID
    name: str
    blueprint: Blueprint
    adopted: Mapping[str, AdoptedResource] | None
    kept: Mapping[str, Json]
    snapshot: SnapshotRecord | None

    @property
    def action(self) -> Action | None:
        """The action of the nested stack; None: a create or update."""
        if self.snapshot is not None:
            return Action.RESTORE
        return None if self.adopted is None else Action.ADOPT


async def _read_snapshot(
    conn: Connection, command: RestoreNested, child: NestedStackRecord | None
) -> tuple[ReconcileNested, SnapshotRecord | None]:
    """The command and the snapshot for a restore. Raises NotFound (SnapshotNotFound);
    DecryptionFailed (Undecryptable)."""
    found = await read_snapshots(conn, child.id, command.snapshot_id, nested=True) if child else []
    if not found or child is None:
        reason = "the snapshot of the nested stack does not exist"
        remedy = "Restore another snapshot of the root stack."
        raise NotFound(reason, place="snapshot", remedy=remedy, code="SnapshotNotFound")
    if found[0].undecryptable:
        raise DecryptionFailed(found[0].undecryptable, place="snapshot", code="Undecryptable")
    if command.parameters is not None:
        return ReconcileNested(None, command.parameters, file=command.file), found[0]
    stored = await read_template(conn, child.id, found[0].version)
    return ReconcileNested(stored.template, stored.parameters), found[0]


#: Why a nested traversal ends early, by the state of the parent's traversal.
_REASONS: Mapping[str, str] = {
    TraversalState.SUPERSEDED: "superseded by a newer change",
    TraversalState.STOPPED: "Stopped: the parent stack was stopped",
    TraversalState.FAILED: "Stack {} cancelled",
    TraversalState.COMPLETE: "Stack {} cancelled",
}


def _outcome_of_ended(state: str, child: NestedStackRecord | None) -> Outcome:
    """The outcome of an operation whose traversal ended before the step could start."""
    physical_id = str(child.id) if child else None
    if state == TraversalState.STOPPED:
        reason = "Stopped: before the operation started"
        return Stopped(reason, physical_id, public_reason=reason)
    reason = "superseded by a newer change"
    return Failed(reason, physical_id, public_reason=reason)


def _resource(prepared: PreparedNode) -> OwningResource:
    work, shown = prepared.work, kept_view(prepared)
    properties = prepared.properties
    if work.type == TEMPLATE_STACK:
        properties = _parameters_of(properties)
        shown = None if shown is None else _parameters_of(shown)
    secret = frozenset(
        name for name in properties if shown is not None and shown.get(name) != properties[name]
    )
    policy = (work.definition or {}).get("deletion_policy", DeletionPolicy.DELETE)
    metadata, updating = work.metadata_now or {}, work.update_policy_now or {}
    return OwningResource(work.name, str(policy), metadata, updating, secret, _secret_parts(work))


def _parameters_of(properties: Mapping[str, Json]) -> Mapping[str, Json]:
    """The parameters of the nested stack; none if they are masked as a whole."""
    found = stack_parameters(properties)
    return found if isinstance(found, Mapping) else {}


def _secret_parts(work: Work) -> frozenset[str]:
    """The values of `resource_facade` that may hold secrets in the nested stack."""
    definition = work.definition or {}
    names = ("secret_metadata", "secret_policy")
    if Inputs(work.inputs or {}).has_secrets or any(definition.get(name) for name in names):
        return frozenset({"metadata", "update_policy"})
    return frozenset()
