"""What a worker does with a node in its hands: decide, and write down what the store is told.

The decisions are the real machine's. The writing mirrors engine/work/transition_documents.py,
reduced to what the protocol reads again: action, status, digest, whether it is broken, who
replaces whom.
"""

from functools import cache

from engine.hooks.rule import Rule
from engine.hot.schema.type_schema import TypeSchema
from engine.node.effects import (
    Effect,
    OpenHook,
    Remove,
    WakeAt,
    WriteDone,
    WriteFailed,
    WriteUnchanged,
)
from engine.node.inputs import (
    Claimed,
    Input,
    MustRetry,
    OperationFailed,
    OperationForbidden,
    Succeeded,
    Superseded,
)
from engine.node.machine import decide, decide_superseded
from engine.node.node import Node as Decided
from engine.node.node import Refused, Step
from engine.plan.change import Actual, cleanup_change, forward_change
from engine.words import (
    GATES,
    VISITS,
    Direction,
    Mode,
    Operation,
    Phase,
    ResourceAction,
    State,
    Status,
)
from engine.work.hook_opening import ACTION_OF
from tests.model.world import KEPT, Fixed, Row, Seen, Told, Write

SCHEMA = TypeSchema("T", description="", any_property=True)
#: A failure that names what it left behind; and a refusal before anything was done.
LEFT, DENIED = OperationFailed("left"), OperationForbidden("no")
#: How a hook stands right after it was opened.
SAID_AT: dict[Mode, str] = {Mode.WAIT: "waiting", Mode.NOTIFY: "continue", Mode.STOP: "stop"}


@cache
def decided(
    operation: Operation,
    state: State,
    phase: Phase,
    rules: tuple[Rule, ...],
    passed: tuple[str, ...],
    said: Input,
) -> Step | Refused:
    return decide(Decided(operation, state, phase, rules, passed), said)


def tell(fixed: Fixed, seen: Seen, said: Input, state: State = State.RUNNING) -> Told | None:
    """`decide` and `write_step`; None when the machine refuses."""
    step = decided(seen.operation, state, seen.phase, fixed.rules, seen.passed, said)
    return None if isinstance(step, Refused) else _told(fixed, seen, step, said, state)


def tell_superseded(fixed: Fixed, seen: Seen, said: Input) -> Told:
    """`decide_superseded` and `write_step`."""
    node = Decided(seen.operation, State.RUNNING, seen.phase, fixed.rules, seen.passed)
    step = decide_superseded(node, said, Superseded())
    assert isinstance(step, Step)
    return _told(fixed, seen, step, said, State.RUNNING)


def _told(fixed: Fixed, seen: Seen, step: Step, said: Input, state: State) -> Told:
    node = step.node
    opens = any(isinstance(effect, OpenHook) for effect in step.effects)
    acted = seen.phase is Phase.ACT and state is State.RUNNING
    return Told(
        state=node.state,
        phase=node.phase,
        operation=node.operation,
        passed=node.passed,
        wake=any(isinstance(effect, WakeAt) for effect in step.effects),
        write=_write(fixed, seen, node, step.effects, left=said == LEFT),
        hooks=tuple(
            (effect.rule.point, SAID_AT[effect.rule.mode])
            for effect in step.effects
            if isinstance(effect, OpenHook)
        ),
        outcome=isinstance(said, Succeeded | OperationFailed) and seen.phase is Phase.ACT,
        attempts=seen.attempts + isinstance(said, MustRetry) if acted else 0,
        said=said if opens else None,
    )


def take_up(fixed: Fixed, seen: Seen) -> Told | None:
    """What a worker says at once of a node it was given in phase pre (`take_up`)."""
    if seen.operation in VISITS | GATES:
        return tell(fixed, seen, Claimed(seen.operation))
    operation = change(fixed, seen.row)
    if operation is not None and operation in fixed.restricted:
        return tell(fixed, seen, DENIED)
    return tell(fixed, seen, Claimed(operation))


def change(fixed: Fixed, row: Row | None) -> Operation | None:
    """The operation (`prepare` in engine/work/prepare.py), by the real engine.plan.change."""
    if fixed.direction is Direction.CLEANUP:
        only, stays = fixed.only_if_replaced, row is not None and row.policy == "Retain"
        return cleanup_change(_actual(row), only_if_replaced=only, retained=stays).operation
    found = forward_change(_actual(row), "T", SCHEMA, {"value": fixed.value})
    if found.operation is Operation.UPDATE and fixed.value.endswith("!"):
        return Operation.REPLACE
    return found.operation


def _actual(row: Row | None) -> Actual | None:
    if row is None:
        return None
    return Actual(
        type="T",
        action=ResourceAction(row.action),
        status=Status(row.status),
        physical_id="there" if row.made else None,
        properties=None if row.value is None else {"value": row.value},
        broken=row.broken,
        replaced=row.replaced_by is not None,
    )


def _write(
    fixed: Fixed, seen: Seen, node: Decided, effects: tuple[Effect, ...], *, left: bool
) -> Write | None:
    write: Write | None = None
    for effect in effects:
        match effect:
            case WriteDone():
                write = _written(fixed, seen, node.operation)
            case WriteUnchanged():
                write = _unchanged(fixed, seen)
            case WriteFailed(broken=broken):
                write = _failed(fixed, seen, node, broken, left=left)
            case Remove():
                write = None if seen.row is None else Write("remove", seen.row)
            case _:
                pass
    return write


def _written(fixed: Fixed, seen: Seen, operation: Operation) -> Write:
    """`_Writer._written`: forward it takes over what was wanted, cleanup keeps what was."""
    if operation in VISITS:
        return _visited(seen, operation)
    forward = fixed.direction is Direction.FORWARD
    row = _row_of(fixed, seen)._replace(
        action=ACTION_OF[operation],
        status="COMPLETE",
        made=operation is not Operation.DELETE,
        broken=False,
    )
    if forward:
        row = row._replace(digest=fixed.value, value=fixed.value, policy=fixed.policy)
    if operation is Operation.REPLACE or seen.row is None:
        new = row._replace(id=_replacement(fixed), replaced_by=None, rules=fixed.rules)
        return Write("insert", new, row.id if operation is Operation.REPLACE else None)
    return Write("update", row)


def _visited(seen: Seen, operation: Operation) -> Write:
    """`_Writer._visited`: what was applied stays as it is; a check that succeeds heals."""
    assert seen.row is not None
    row = seen.row._replace(action=ACTION_OF[operation], status="COMPLETE", digest=KEPT)
    return Write("update", row._replace(broken=row.broken and operation is not Operation.CHECK))


def _failed(fixed: Fixed, seen: Seen, node: Decided, broken: bool, *, left: bool) -> Write:
    """`_Writer._failed`. left: the operation says that it left something behind."""
    replaces = node.operation is Operation.REPLACE and node.phase is Phase.ACT
    row = _row_of(fixed, seen)
    if replaces and left:
        return Write("leave", _left(fixed, row), row.id)
    action = "UPDATE" if node.operation is Operation.REPLACE else ACTION_OF[node.operation]
    if node.operation in VISITS:
        row = row._replace(digest=KEPT)
    now_broken = row.broken if replaces else broken or row.broken
    made = row.made or left
    if node.operation is Operation.CREATE and node.phase is Phase.ACT:
        row = row._replace(value=fixed.value)
    if seen.row is None and fixed.direction is Direction.FORWARD:
        row = row._replace(id=_replacement(fixed))
        return Write(
            "insert", row._replace(action=action, status="FAILED", broken=broken, made=made)
        )
    return Write(
        "update", row._replace(action=action, status="FAILED", broken=now_broken, made=made)
    )


def _left(fixed: Fixed, row: Row) -> Row:
    return row._replace(
        id=_replacement(fixed),
        action="CREATE",
        status="FAILED",
        value=fixed.value,
        made=True,
        broken=True,
        replaced_by=row.id,
        rules=fixed.rules,
        policy="Delete",
    )


def _unchanged(fixed: Fixed, seen: Seen) -> Write | None:
    """`_Writer._unchanged`: what failed and is as wanted after all is well again."""
    row = seen.row
    if row is None:
        return None
    if fixed.direction is Direction.CLEANUP:
        gone = not fixed.only_if_replaced or row.replaced_by is not None
        return Write("remove", row) if gone else None
    if row.status == "FAILED":
        row = row._replace(action="UPDATE", status="COMPLETE")
    return Write("update", row._replace(digest=fixed.value, policy=fixed.policy))


def _row_of(fixed: Fixed, seen: Seen) -> Row:
    return seen.row or Row(fixed.resource, fixed.name, "", "", "")


def _replacement(fixed: Fixed) -> int:
    assert fixed.replacement is not None
    return fixed.replacement
