"""The decisions of a worker for a claimed node, and the steps that it commits.

The real machine decides. The encoding mirrors engine/work/nodes/transition_encoder.py, reduced to
the columns that the protocol reads: action, status, digest, taint and replacement.
"""

from functools import cache

from engine.hooks.rule import rules_in_force
from engine.hot.schema.type_schema import TypeSchema
from engine.node.machine import decide, decide_superseded
from engine.node.node import (
    Claimed,
    Effect,
    Input,
    InvalidInput,
    MustConfirm,
    MustRetry,
    MustStop,
    MustWait,
    NotifyType,
    OpenHook,
    OperationFailed,
    OperationForbidden,
    Remove,
    Step,
    Succeeded,
    Superseded,
    WakeAt,
    WriteDone,
    WriteFailed,
    WriteUnchanged,
)
from engine.node.node import Node as MachineNode
from engine.plan.draft import is_checkable, may_be_suspended
from engine.plan.resource_change import ResourceState, cleanup_change, forward_change
from engine.words import (
    GATES,
    IN_PLACE_OPERATIONS,
    Decision,
    Direction,
    Mode,
    Operation,
    Phase,
    ResourceAction,
    State,
    Status,
    StepMode,
)
from engine.work.nodes.hook_opening import ACTION_OF, CURRENT_ACTION_OF
from tests.model.system_state import KEPT, NodePlan, NodeView, Row, Transition, Write

SCHEMA = TypeSchema("T", description="", any_property=True)
#: A failure, and a stop, that leave a physical resource; and a refusal before the operation.
FAILED_LEAVING_RESOURCE, FORBIDDEN_OUTCOME = OperationFailed("left"), OperationForbidden("no")
STOPPED_LEAVING_RESOURCE = MustStop("left")
LEAVING = (FAILED_LEAVING_RESOURCE, STOPPED_LEAVING_RESOURCE)
#: The state of a new hook.
STATE_AT: dict[Mode, str] = {Mode.WAIT: "waiting", Mode.NOTIFY: "continue", Mode.STOP: "stop"}


@cache
def decide_cached(node: MachineNode, node_input: Input) -> Step | InvalidInput:
    return decide(node, node_input)


def machine_node(node_plan: NodePlan, view: NodeView, state: State = State.RUNNING) -> MachineNode:
    """`node_of` in engine/work/nodes/job.py."""
    return MachineNode(
        view.operation,
        state,
        view.phase,
        rules_in_force(node_plan.rules, view.step_mode),
        view.breakpoints_hit,
        stepping=view.step_mode is StepMode.STEP and state is State.RUNNING,
        cancelled=view.cancelled,
    )


def decide_transition(
    node_plan: NodePlan, view: NodeView, node_input: Input, state: State = State.RUNNING
) -> Transition | None:
    """`decide` and `write_step`; None when the machine refuses."""
    step = decide_cached(machine_node(node_plan, view, state), node_input)
    return (
        None
        if isinstance(step, InvalidInput)
        else _transition(node_plan, view, step, node_input, state)
    )


def decide_superseded_transition(
    node_plan: NodePlan, view: NodeView, node_input: Input
) -> Transition:
    """`decide_superseded` and `write_step`."""
    step = decide_superseded(machine_node(node_plan, view), node_input, Superseded())
    assert isinstance(step, Step)
    return _transition(node_plan, view, step, node_input, State.RUNNING)


def _transition(
    node_plan: NodePlan, view: NodeView, step: Step, node_input: Input, state: State
) -> Transition:
    node = step.node
    opens = any(isinstance(effect, OpenHook) for effect in step.effects)
    at_hook = state is State.PARKED
    called = view.phase is Phase.EXECUTE and state is State.RUNNING
    return Transition(
        state=node.state,
        phase=node.phase,
        operation=node.operation,
        breakpoints_hit=node.breakpoints_hit,
        wake=any(isinstance(effect, WakeAt) and effect.until for effect in step.effects),
        write=_write(
            node_plan,
            view,
            node,
            step.effects,
            leaves_resource=node_input in LEAVING,
        ),
        hooks=tuple(
            (effect.rule.point, STATE_AT[effect.rule.mode], effect.rule.stepped)
            for effect in step.effects
            if isinstance(effect, OpenHook)
        ),
        outcome=isinstance(node_input, Succeeded | OperationFailed) and view.phase is Phase.EXECUTE,
        attempts=view.attempts + isinstance(node_input, MustRetry) if called or at_hook else 0,
        input=node_input if opens or node.state is State.RUNNING else None,
        progress=_progress(node_plan, view, node_input) if called else view.progress,
        confirmation=answer_for_type(step) or answer_to_keep(view, node_input),
        group_progress=_group_progress(view, node_input) if called else view.group_progress,
    )


def _group_progress(view: NodeView, node_input: Input) -> str:
    """The view of a worker has the progress that the group returned."""
    kept = isinstance(node_input, MustConfirm | MustWait | MustRetry)
    return view.group_progress if kept else ""


def answer_for_type(step: Step) -> tuple[str, bool] | None:
    """`node.confirmation`: the answer with which the operation is called again."""
    for effect in step.effects:
        if isinstance(effect, NotifyType):
            return effect.step, effect.decision is not Decision.REJECT
    return None


def answer_to_keep(view: NodeView, node_input: Input) -> tuple[str, bool] | None:
    """`Result.confirmation`: an operation that is retried keeps its answer."""
    return view.confirmation if isinstance(node_input, MustRetry) else None


def _progress(node_plan: NodePlan, view: NodeView, node_input: Input) -> int:
    """The progress that a type returns: twice the steps it has performed, plus 1 if the
    next one is to be confirmed."""
    match node_input:
        case MustConfirm():
            return after_answer(view) + 1
        case MustWait():
            return after_answer(view)
        case MustRetry():
            return view.progress
        case _:
            return 0


def after_answer(view: NodeView) -> int:
    """The progress after the step that the last answer accepts."""
    return view.progress + view.progress % 2


def begin_claim(node_plan: NodePlan, view: NodeView) -> Transition | None:
    """The step of a node that was claimed in phase pre (`prepare_claim`)."""
    if view.operation is Operation.CHECK and not _is_checkable(view.row):
        return decide_transition(node_plan, view, FORBIDDEN_OUTCOME)
    if view.operation in IN_PLACE_OPERATIONS | GATES:
        return decide_transition(node_plan, view, Claimed(view.operation))
    operation = change(node_plan, view)
    if operation is not None and operation in node_plan.restricted:
        return decide_transition(node_plan, view, FORBIDDEN_OUTCOME)
    return decide_transition(node_plan, view, Claimed(operation))


def _is_checkable(row: Row | None) -> bool:
    """`check_refusal`: the resource exists, and its last change did not fail."""
    return row is not None and is_checkable(ResourceAction(row.action), Status(row.status))


def change(node_plan: NodePlan, view: NodeView) -> Operation | None:
    """The operation (`prepare` in engine/work/nodes/prepare.py), by the real
    engine.plan.resource_change."""
    if node_plan.direction is Direction.CLEANUP:
        only, stays = (
            node_plan.only_if_replaced,
            view.row is not None and view.row.policy == "Retain",
        )
        return cleanup_change(_actual(view.row), only_if_replaced=only, retained=stays).operation
    if view.operation is Operation.ADOPT:
        return Operation.ADOPT
    found = forward_change(
        _actual(view.row), "T", SCHEMA, {"value": node_plan.value}, nests=node_plan.nests
    )
    replacing = view.begun and view.operation is Operation.REPLACE
    if found.operation is Operation.UPDATE and (replacing or node_plan.value.endswith("!")):
        return Operation.REPLACE
    return found.operation


def _actual(row: Row | None) -> ResourceState | None:
    if row is None:
        return None
    return ResourceState(
        type="T",
        action=ResourceAction(row.action),
        status=Status(row.status),
        physical_id="there" if row.has_physical_id else None,
        properties=None if row.value is None else {"value": row.value},
        tainted=row.tainted,
        replaced=row.replaced_by is not None,
    )


def _write(
    node_plan: NodePlan,
    view: NodeView,
    node: MachineNode,
    effects: tuple[Effect, ...],
    *,
    leaves_resource: bool,
) -> Write | None:
    write: Write | None = None
    for effect in effects:
        match effect:
            case WriteDone():
                write = _written(node_plan, view, node.operation)
            case WriteUnchanged():
                write = _unchanged(node_plan, view)
            case WriteFailed(tainted=tainted):
                write = _failed(node_plan, view, node, tainted, leaves_resource=leaves_resource)
            case Remove():
                write = None if view.row is None else Write("remove", view.row)
            case _:
                pass
    return write


def _written(node_plan: NodePlan, view: NodeView, operation: Operation) -> Write:
    """`TransitionEncoder._done`: a forward node stores its definition, a cleanup node keeps it."""
    if operation in IN_PLACE_OPERATIONS:
        return _in_place_write(view, operation)
    forward = node_plan.direction is Direction.FORWARD
    row = _row_of(node_plan, view)._replace(
        action=ACTION_OF[operation],
        status="COMPLETE",
        has_physical_id=operation is not Operation.DELETE,
        tainted=False,
    )
    if forward:
        row = row._replace(digest=node_plan.value, value=node_plan.value, policy=node_plan.policy)
    if operation is Operation.REPLACE or view.row is None:
        new = row._replace(id=_replacement(node_plan), replaced_by=None, rules=node_plan.rules)
        return Write("insert", new, row.id if operation is Operation.REPLACE else None)
    return Write("update", row)


def _in_place_write(view: NodeView, operation: Operation) -> Write:
    """`_done_in_place`: the definition stays; a successful check clears the taint."""
    assert view.row is not None
    row = view.row._replace(action=ACTION_OF[operation], status="COMPLETE", digest=KEPT)
    if _stays_suspended(view.row, operation):
        row = row._replace(action=view.row.action, status=view.row.status)
    tainted = row.tainted and operation is not Operation.CHECK
    return Write("update", row._replace(tainted=tainted), snapshot=operation is Operation.SNAPSHOT)


def _stays_suspended(row: Row, operation: Operation) -> bool:
    """`TransitionEncoder._stays_suspended`."""
    keeps = operation in (Operation.CHECK, Operation.SNAPSHOT)
    return keeps and may_be_suspended(ResourceAction(row.action), Status(row.status))


def _failed(
    node_plan: NodePlan, view: NodeView, node: MachineNode, tainted: bool, *, leaves_resource: bool
) -> Write:
    """`_failed`. left: the operation reports a physical resource."""
    replaces = node.operation is Operation.REPLACE and node.phase in (Phase.EXECUTE, Phase.CONFIRM)
    row = _row_of(node_plan, view)
    if replaces and leaves_resource:
        return Write("leave", _left_row(node_plan, row), row.id)
    action = CURRENT_ACTION_OF[node.operation]
    if node.operation in IN_PLACE_OPERATIONS:
        row = row._replace(digest=KEPT)
    if node.operation is Operation.SNAPSHOT and _stays_suspended(row, node.operation):
        action = row.action
    now_tainted = row.tainted if replaces else tainted or row.tainted
    has_physical_id = row.has_physical_id or leaves_resource
    if node.operation is Operation.CREATE and node.phase is Phase.EXECUTE:
        row = row._replace(value=node_plan.value)
    if view.row is None and node_plan.direction is Direction.FORWARD:
        row = row._replace(id=_replacement(node_plan))
        return Write(
            "insert",
            row._replace(
                action=action, status="FAILED", tainted=tainted, has_physical_id=has_physical_id
            ),
        )
    return Write(
        "update",
        row._replace(
            action=action, status="FAILED", tainted=now_tainted, has_physical_id=has_physical_id
        ),
    )


def _left_row(node_plan: NodePlan, row: Row) -> Row:
    return row._replace(
        id=_replacement(node_plan),
        action="CREATE",
        status="FAILED",
        value=node_plan.value,
        has_physical_id=True,
        tainted=True,
        replaced_by=row.id,
        rules=node_plan.rules,
        policy="Delete",
    )


def _unchanged(node_plan: NodePlan, view: NodeView) -> Write | None:
    """`_unchanged`: a failed resource that is up to date becomes COMPLETE."""
    row = view.row
    if row is None:
        return None
    if node_plan.direction is Direction.CLEANUP:
        is_removed = not node_plan.only_if_replaced or row.replaced_by is not None
        return Write("remove", row) if is_removed else None
    if row.status == "FAILED":
        row = row._replace(action="UPDATE", status="COMPLETE")
    return Write("update", row._replace(digest=node_plan.value, policy=node_plan.policy))


def _row_of(node_plan: NodePlan, view: NodeView) -> Row:
    return view.row or Row(node_plan.resource, node_plan.name, "", "", "")


def _replacement(node_plan: NodePlan) -> int:
    assert node_plan.replacement is not None
    return node_plan.replacement
