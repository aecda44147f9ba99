"""The node machine, explored completely: all rules, all inputs, in every reachable state."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import product
from typing import NamedTuple

import pytest

from engine.hooks.rule import Rule, is_confirm, step_rule
from engine.node.machine import (
    STORE_MOVES,
    TABLE,
    Place,
    decide,
    decide_superseded,
    stepping_moves,
)
from engine.node.node import (
    BREAKING,
    DECIDED_BY_ENGINE,
    ENDED,
    Answered,
    BreakpointAdded,
    CallOperation,
    Cancelled,
    Claimed,
    Effect,
    EventKind,
    Expired,
    Input,
    InvalidInput,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustStop,
    MustWait,
    Node,
    NotifyType,
    OpenHook,
    OperationFailed,
    OperationForbidden,
    Record,
    Remove,
    Step,
    Succeeded,
    Superseded,
    WakeAt,
    WriteDone,
    WriteFailed,
    WriteUnchanged,
)
from engine.node.pending_breakpoints import POINTS
from engine.words import (
    GATES,
    REPEATED,
    RESUMING_DECISIONS,
    Action,
    Decision,
    Mode,
    OnTimeout,
    Operation,
    Phase,
    Point,
    State,
    point_of,
    post_stack,
    pre_stack,
)

UNTIL = datetime(2026, 1, 1, tzinfo=UTC)
CONTINUE = Answered(Decision.CONTINUE, "ann")
REJECT = Answered(Decision.REJECT, "ann", "no")
INPUTS: tuple[Input, ...] = (
    *(Claimed(operation) for operation in (None, *Operation)),
    Succeeded(),
    MustWait(UNTIL),
    MustRetry(UNTIL, "busy"),
    MustReplace(),
    MustStop("the nested stack was stopped"),
    OperationFailed("broken"),
    OperationForbidden("protected"),
    *(Answered(decision, "ann") for decision in Decision if decision is not Decision.REJECT),
    REJECT,
    *(Expired(on_timeout) for on_timeout in OnTimeout),
    Superseded(),
    Cancelled(),
    BreakpointAdded(),
)
#: Steps inside an operation, in any order; the last one repeatedly.
CONFIRMS = (MustConfirm("cut"), MustConfirm("join"), MustConfirm(Point.PRE_BATCH))


def rule(point: Point, mode: Mode = Mode.WAIT, short: bool = False) -> Rule:
    return Rule(point, mode, short=short)


def new_node(operation: Operation, *rules: Rule) -> Node:
    return Node(operation, State.RUNNING, Phase.PRE, rules)


def step_of(node: Node, node_input: Input) -> Step:
    step = decide(node, node_input)
    assert isinstance(step, Step), step
    return step


def begins_when_claimed(node: Node) -> bool:
    """Whether the claim of a ready node calls its operation, perhaps for the first time."""
    return node.state is State.READY and node.phase is Phase.EXECUTE


def claim(node: Node) -> Node:
    """As the store does: claim a node that is ready, or parked with a timer."""
    assert node.state in (State.READY, State.PARKED)
    return replace(node, state=State.RUNNING)


OWN_POINTS = {
    Operation.CREATE: (Point.PRE_CREATE, Point.POST_CREATE),
    Operation.UPDATE: (Point.PRE_UPDATE, Point.POST_UPDATE),
    Operation.DELETE: (Point.PRE_DELETE, Point.POST_DELETE),
}


def common_rules() -> Iterator[Node]:
    """All modes at the points of an operation, with and without rules at those of another one."""
    for operation, (pre, post) in OWN_POINTS.items():
        other = Operation.CREATE if operation is Operation.UPDATE else Operation.UPDATE
        for before, after, beside in product((None, *Mode), repeat=3):
            modes = [(pre, before), (post, after), *((one, beside) for one in OWN_POINTS[other])]
            yield new_node(operation, *(rule(point, mode) for point, mode in modes if mode))
        yield new_node(operation, rule(Point.PRE_UPDATE, short=True))


def rule_variants(point: str) -> Iterator[tuple[Rule, ...]]:
    """No rule, and one of each mode, each also as a dry run."""
    yield ()
    for mode, dry in product(Mode, (False, True)):
        yield (Rule(point, mode, dry=dry),)


def with_confirmations() -> Iterator[Node]:
    """Rules of each mode at a step, and rules around the operation and at a step that repeats."""
    for operation in (Operation.CREATE, Operation.UPDATE, Operation.SUSPEND):
        pre, post = (POINTS[operation, phase][0] for phase in (Phase.PRE, Phase.POST))
        around = ((), (Rule(pre), Rule(post)))
        for cut, batch, rules in product(
            rule_variants("confirm-cut"), ((), (Rule(Point.PRE_BATCH),)), around
        ):
            yield new_node(operation, *cut, *batch, *rules)


def with_two_steps() -> Iterator[Node]:
    """Two steps of one operation, and a step that repeats, in any order: many nodes."""
    for cut in rule_variants("confirm-cut"):
        yield new_node(Operation.UPDATE, *cut, Rule("confirm-join"), Rule(Point.PRE_BATCH))


def with_stepping() -> Iterator[Node]:
    for operation in Operation:
        points = POINTS[operation, Phase.PRE][:3] + POINTS[operation, Phase.POST]
        for point in points or ("pre-create",):
            for rules in rule_variants(point):
                yield replace(new_node(operation, *rules), stepping=True)


def with_replacement() -> Iterator[Node]:
    pre, post = (POINTS[Operation.REPLACE, phase] for phase in (Phase.PRE, Phase.POST))
    for points in (pre, post):
        for modes in product((None, *Mode), repeat=3):
            rules = [rule(Point(at), mode) for at, mode in zip(points, modes, strict=True) if mode]
            yield new_node(Operation.UPDATE, *rules)
    yield replace(new_node(Operation.UPDATE, *(Rule(one) for one in pre + post)), stepping=True)


def stack_nodes() -> Iterator[Node]:
    for operation, point in (
        (Operation.BEGIN, pre_stack(Action.UPDATE)),
        (Operation.FINISH, post_stack(Action.UPDATE)),
    ):
        for rules, is_stepping in product(rule_variants(point), (False, True)):
            yield replace(new_node(operation, *rules), stepping=is_stepping)


#: The maximum number of nodes in an exploration.
MAX_NODES = 50_000


class Transition(NamedTuple):
    """is_called: the operation was called on the way here, and has not ended. after: the node after
    the decision; None if the input is refused. Equal nodes are one object (`unique`).
    """

    node: Node
    is_called: bool
    node_input: Input
    answer: Step | InvalidInput
    after: Node | None


_NODES: dict[Node, Node] = {}


def unique(node: Node) -> Node:
    """The one object for all equal nodes. Comparing their identities is cheaper than hashing nodes
    again and again."""
    return _NODES.setdefault(node, node)


_CLAIMS: dict[int, Node] = {}


def claimed(node: Node) -> Node:
    """The unique node that a claim makes of a unique one."""
    if (after := _CLAIMS.get(id(node))) is None:
        after = _CLAIMS[id(node)] = unique(claim(node))
    return after


def explore(
    starts: Iterable[Node], inputs: Sequence[Input], *, any_operation: bool = False
) -> Iterator[Transition]:
    """The result of every input for every node that is reachable from the start nodes, also through
    moves of the store.

    any_operation: a worker may find that another operation than the planned one is needed.

    An input without a row in the table is refused for every node, so it is tested with one. The
    first input is tried on every node, so that the result has every node.
    """
    queue = [(unique(node), False) for node in starts]
    seen = {(id(node), is_called) for node, is_called in queue}
    without_row: set[tuple[State, Phase, type[Input]]] = set()
    for node, is_called in queue:
        assert len(queue) < MAX_NODES, (
            "the number of nodes is not bounded: an input is always accepted"
        )
        for node_input in inputs:
            usual_claims = (None, node.operation, Operation.REPLACE)
            if isinstance(node_input, Claimed) and not (
                any_operation or node_input.operation in usual_claims
            ):
                continue
            at = (node.state, node.phase, type(node_input))
            if at in without_row and node_input is not inputs[0]:
                continue
            if at not in TABLE:
                without_row.add(at)
            answer = decide(node, node_input)
            if isinstance(answer, InvalidInput):
                yield Transition(node, is_called, node_input, answer, None)
                continue
            after = unique(answer.node)
            yield Transition(node, is_called, node_input, answer, after)
            has_call = any(isinstance(effect, CallOperation) for effect in answer.effects)
            acts = has_call or (is_called and not isinstance(node_input, Succeeded | MustReplace))
            reached = [(after, acts)]
            timer = any(isinstance(effect, WakeAt) for effect in answer.effects)
            if after.state is State.READY or timer:
                reached.append((claimed(after), acts or begins_when_claimed(after)))
            for one, called in reached:
                if (id(one), called) not in seen:
                    seen.add((id(one), called))
                    queue.append((one, called))


@cache
def explorations() -> dict[str, list[Transition]]:
    """Made by the first test that needs them, and not by each process that collects the tests."""
    return {
        "common": list(explore(common_rules(), INPUTS)),
        "wrong operation": list(
            explore(
                [new_node(Operation.CREATE, rule(Point.PRE_UPDATE))], INPUTS, any_operation=True
            )
        ),
        "confirming": list(explore(with_confirmations(), (*INPUTS, CONFIRMS[0], CONFIRMS[-1]))),
        "two steps": list(explore(with_two_steps(), (*INPUTS, *CONFIRMS))),
        "stepping": list(explore(with_stepping(), (*INPUTS, CONFIRMS[0]))),
        "replacing": list(explore(with_replacement(), INPUTS)),
        "gates": list(explore(stack_nodes(), (*INPUTS, CONFIRMS[0]), any_operation=True)),
    }


@cache
def transitions() -> list[Transition]:
    return [one for reached in explorations().values() for one in reached]


def test_the_exploration_reaches_every_state_and_phase() -> None:
    states = {(one.node.state, one.node.phase) for one in transitions()}
    assert {
        (State.RUNNING, Phase.PRE),
        (State.RUNNING, Phase.EXECUTE),
        (State.PARKED, Phase.PRE),
        (State.PARKED, Phase.EXECUTE),
        (State.PARKED, Phase.CONFIRM),
        (State.PARKED, Phase.POST),
        (State.READY, Phase.PRE),
        (State.READY, Phase.EXECUTE),
        (State.DONE, Phase.POST),
        (State.FAILED, Phase.PRE),
        (State.STOPPED, Phase.CONFIRM),
        (State.STOPPED, Phase.POST),
        (State.DROPPED, Phase.PRE),
    } <= states
    assert len(explorations()["common"]) > 5_000
    assert {one.node.operation for one in transitions()} == set(Operation)


def steps() -> Iterator[tuple[Transition, Step]]:
    """The accepted inputs, with their steps."""
    for one in transitions():
        if isinstance(one.answer, Step):
            yield one, one.answer


def opened_rules(step: Step) -> list[Rule]:
    return [effect.rule for effect in step.effects if isinstance(effect, OpenHook)]


def has_call(step: Step) -> bool:
    return any(isinstance(effect, CallOperation) for effect in step.effects)


def test_no_operation_is_called_before_all_hooks_in_front_of_it_were_opened() -> None:
    for one, step in steps():
        if one.node.phase is Phase.PRE and begins_when_claimed(step.node):
            blocking = {rule.point for rule in step.node.rules if rule.blocks}
            assert {*POINTS[step.node.operation, Phase.PRE]} & blocking <= {
                *step.node.breakpoints_hit
            }
        if has_call(step):
            after = step.node
            points = POINTS[after.operation, Phase.PRE]
            held = {rule.point for rule in after.rules if rule.blocks}
            if after.stepping and after.operation not in GATES:
                held.update(points[-1:])
            replaced = isinstance(one.node_input, MustReplace)
            again = one.node.phase is Phase.EXECUTE and not replaced
            assert {*points} & held <= {*after.breakpoints_hit} or again
            assert again is (one.is_called and not replaced)


RESUMED = (CONTINUE, Answered(Decision.RUN, "ann"), Expired(OnTimeout.CONTINUE))


@pytest.mark.parametrize("resumed", RESUMED, ids=["continued", "run", "expired"])
def test_the_claim_after_the_last_answer_before_a_create_begins_it(resumed: Input) -> None:
    """Unless something is left to determine: the operation, or whether its preconditions hold."""
    at_hook = Node(
        Operation.CREATE, State.PARKED, Phase.PRE, (rule(Point.PRE_CREATE),), (Point.PRE_CREATE,)
    )
    ready = step_of(at_hook, resumed).node
    assert ready == replace(at_hook, state=State.READY, phase=Phase.EXECUTE)
    assert step_of(claim(ready), Claimed(Operation.CREATE)).effects == (
        CallOperation(Operation.CREATE),
    )
    assert step_of(ready, Superseded()).node.state is State.DROPPED
    for other in (
        replace(at_hook, conditional=True),
        replace(at_hook, operation=Operation.UPDATE, breakpoints_hit=(Point.PRE_UPDATE,)),
        replace(
            at_hook,
            operation=Operation.REPLACE,
            breakpoints_hit=POINTS[Operation.REPLACE, Phase.PRE],
        ),
    ):
        assert step_of(other, resumed).node == replace(other, state=State.READY)


def test_no_operation_is_called_in_the_step_that_opens_a_blocking_hook() -> None:
    for _, step in steps():
        held = [rule for rule in opened_rules(step) if rule.blocks]
        assert not (has_call(step) and held)
        assert len(held) <= 1
        if held:
            waits = held[0].mode is Mode.WAIT
            assert step.node.state is (State.PARKED if waits else State.STOPPED)


def test_a_hook_opens_once_per_point() -> None:
    for one, step in steps():
        # Stepping stops at a point where a rule that does not block opens a hook of its own.
        beside = len(opened_rules(step)) > 1 and opened_rules(step)[-1].stepped
        points = [rule.point for rule in opened_rules(step)]
        if beside and points[-1] == points[-2]:
            points.pop()
        if isinstance(one.node_input, MustConfirm):
            point = point_of(one.node_input.step)
            assert points in ([], [point])
            points = [point]
        assert len({*step.node.breakpoints_hit}) == len(step.node.breakpoints_hit)
        before = one.node.breakpoints_hit
        if (
            isinstance(one.node_input, MustReplace) and not one.node.cancelled
        ):  # another operation, with its own steps
            before = tuple(point for point in before if not is_confirm(point))
        if points and points[0] in REPEATED:
            before = tuple(point for point in before if point not in points)
        assert step.node.breakpoints_hit == (*before, *points)


def test_a_confirmed_step_opens_no_second_hook_unless_it_is_repeated() -> None:
    again = [
        (one.node_input.step in REPEATED, one.answer)
        for one in transitions()
        if isinstance(one.node_input, MustConfirm)
        and point_of(one.node_input.step) in one.node.breakpoints_hit
        and not isinstance(decide(one.node, Succeeded()), InvalidInput)
    ]
    assert {repeated for repeated, _ in again} == {True, False}
    assert all(isinstance(answer, Step if repeated else InvalidInput) for repeated, answer in again)


def test_hooks_open_for_rules_of_the_node_or_in_step_mode() -> None:
    for one, step in steps():
        for rule in opened_rules(step):
            assert rule in one.node.rules or (one.node.stepping and rule.stepped)


def test_notify_and_dry_run_rules_do_not_block() -> None:
    for one, step in steps():
        notified = [rule for rule in opened_rules(step) if not rule.blocks]
        if (
            notified
            and len(notified) == len(opened_rules(step))
            and one.node_input not in (REJECT, Superseded())
        ):
            assert step.node.state in (State.RUNNING, State.READY, State.DONE)


def test_after_a_rejection_no_operation_is_called_and_no_hook_opens() -> None:
    for one, step in steps():
        if one.node_input not in (REJECT, Expired(OnTimeout.REJECT)):
            continue
        if one.node.phase is Phase.CONFIRM:
            (notified,) = step.effects
            assert isinstance(notified, NotifyType) and notified.decision is Decision.REJECT
            assert (step.node.state, step.node.phase) == (State.READY, Phase.EXECUTE)
        else:
            assert step.node.state is State.FAILED
            written = [] if one.node.operation in GATES else [WriteFailed, Record]
            assert [type(effect) for effect in step.effects] == written


def test_an_accepted_input_changes_the_node_unless_it_is_a_repeated_claim() -> None:
    for one, step in steps():
        again = isinstance(one.node_input, Claimed) and one.node.phase is Phase.EXECUTE
        call = (CallOperation(one.node.operation),)
        assert step.node != one.node or (again and step.effects == call)


def test_an_ended_node_does_not_change() -> None:
    ended = [one.answer for one in transitions() if one.node.state in ENDED]
    assert ended and all(isinstance(answer, InvalidInput) for answer in ended)


def test_a_superseded_node_is_dropped_unless_its_operation_has_started() -> None:
    for one in transitions():
        if not isinstance(one.node_input, Superseded) or one.node.state in ENDED:
            continue
        if not one.is_called:
            assert isinstance(one.answer, Step)
            assert one.answer.node.state is State.DROPPED and not one.answer.effects
        elif one.node.phase is Phase.CONFIRM:
            assert isinstance(one.answer, Step)
            (notified,) = one.answer.effects
            assert isinstance(notified, NotifyType) and notified.decision is Decision.REJECT
            assert (one.answer.node.state, one.answer.node.phase) == (State.READY, Phase.EXECUTE)
        else:
            assert isinstance(one.answer, InvalidInput)


def test_a_node_that_ends_during_its_operation_marks_its_resource() -> None:
    for one, step in steps():
        ends = step.node.state in (State.FAILED, State.STOPPED)
        midway = one.is_called and not isinstance(
            one.node_input, OperationForbidden | Succeeded | MustReplace
        )
        if ends and midway and one.node.operation not in GATES:
            (written,) = [one for one in step.effects if isinstance(one, WriteFailed)]
            assert written.reason == step.node.reason
            assert written.tainted is (one.node.operation in BREAKING)
            assert Record(EventKind.FAILED, written.reason) in step.effects


def test_a_stack_node_writes_no_resource_and_keeps_its_operation() -> None:
    of_resources = (Record, WriteDone, WriteFailed, WriteUnchanged, Remove)
    for one, step in steps():
        if one.node.operation in GATES:
            assert step.node.operation is one.node.operation
            assert not any(isinstance(effect, of_resources) for effect in step.effects)
        else:
            assert step.node.operation not in GATES


def test_a_confirmation_is_passed_to_the_operation_exactly_once() -> None:
    for one, step in steps():
        notified = [effect for effect in step.effects if isinstance(effect, NotifyType)]
        inside = isinstance(one.node_input, MustConfirm) or one.node.phase is Phase.CONFIRM
        goes_on = step.node.state is State.READY
        assert len(notified) == (inside and goes_on)
        if notified:
            assert step.node.phase is Phase.EXECUTE
            assert step.node.breakpoints_hit[-1] == point_of(notified[0].step)


def test_every_approving_decision_resumes_the_node_the_same_way() -> None:
    points = {
        one.node for one in transitions() if (one.node.state, one.node.phase) in WAITING_STATES
    }
    for node in points:
        first, *others = (
            decide(node, Answered(decision, "ann")) for decision in RESUMING_DECISIONS
        )
        assert isinstance(first, Step)
        assert all(other == first for other in others)


#: States in which a node waits for an answer.
WAITING_STATES = {(State.PARKED, phase) for phase in (Phase.PRE, Phase.CONFIRM, Phase.POST)}


def test_progress_is_no_decision() -> None:
    for one in transitions():
        if isinstance(one.node_input, Answered) and one.node_input.decision is Decision.PROGRESS:
            assert isinstance(one.answer, InvalidInput)


def test_answers_are_accepted_in_waiting_states_only() -> None:
    for one, _ in steps():
        if isinstance(one.node_input, Answered | Expired):
            assert (one.node.state, one.node.phase) in WAITING_STATES


def test_every_reachable_node_can_end() -> None:
    origins: dict[int, list[Node]] = {}
    for one in transitions():
        if one.after is not None:
            origins.setdefault(id(one.after), []).append(one.node)
    nodes = {id(one.node): one.node for one in transitions()}
    for node in nodes.values():
        timer = (node.state, node.phase) == (State.PARKED, Phase.EXECUTE)
        if node.state is State.READY or timer:
            origins.setdefault(id(claimed(node)), []).append(node)
    queue = [node for node in nodes.values() if node.state in ENDED]
    can_end = {id(node) for node in queue}
    for node in queue:
        earlier = [one for one in origins.get(id(node), ()) if id(one) not in can_end]
        can_end.update(map(id, earlier))
        queue.extend(earlier)
    assert nodes.keys() == can_end


def row_key(node: Node) -> Place:
    return Place(node.state, node.phase)


def test_each_row_of_the_table_has_exactly_its_results_and_effects() -> None:
    """No decision leads to a waiting node: the store makes nodes ready."""
    led: dict[tuple[State, Phase, type[Input]], set[Place]] = {}
    effects: dict[tuple[State, Phase, type[Input]], set[type[Effect]]] = {}
    waiting = [Node(Operation.CREATE, State.WAITING, phase) for phase in (Phase.PRE, Phase.EXECUTE)]
    ready = Node(Operation.CREATE, State.READY, Phase.EXECUTE)
    planned: list[tuple[Node, Input, Step | InvalidInput]] = [
        (node, node_input, decide(node, node_input))
        for node in (replace(one, stepping=True) for one in (*waiting, ready))
        for node_input in (Superseded(), BreakpointAdded())
    ]
    found = [(one.node, one.node_input, one.answer) for one in transitions()]
    for node, node_input, answer in (*found, *planned):
        if isinstance(answer, Step):
            at = (*row_key(node), type(node_input))
            led.setdefault(at, set()).add(row_key(answer.node))
            effects.setdefault(at, set()).update(map(type, answer.effects))
    assert effects == {at: set(row.effects) for at, row in TABLE.items()}
    assert led == {at: set(row.leads_to) for at, row in TABLE.items()}


PENDING_STATES = {State.WAITING, State.READY}
PENDING = [
    Node(operation, state, Phase.EXECUTE)
    for operation in Operation
    for state in sorted(PENDING_STATES)
]


@pytest.mark.parametrize("pending", PENDING, ids=lambda one: f"{one.operation}-{one.state}")
def test_a_breakpoint_is_in_time_until_the_operation_begins(pending: Node) -> None:
    added = [replace(pending, stepping=True)]
    for point in Point:
        added += [replace(pending, rules=rules) for rules in rule_variants(point) if rules]
    for node in added:
        step = decide(node, BreakpointAdded())
        claimed = replace(node, state=State.RUNNING, phase=Phase.PRE)
        opened = opened_rules(step_of(claimed, Claimed(node.operation)))
        if opened:
            assert step == Step(replace(node, phase=Phase.PRE))
        else:
            assert isinstance(step, InvalidInput)
    confirmed = replace(added[0], state=State.READY, breakpoints_hit=("confirm-cut",))
    for late in (confirmed, *(replace(added[0], state=one) for one in {*State} - PENDING_STATES)):
        assert isinstance(decide(late, BreakpointAdded()), InvalidInput)


@pytest.mark.parametrize("operation", list(Operation))
def test_a_breakpoint_takes_a_node_back_from_a_worker_that_has_not_called_it(
    operation: Operation,
) -> None:
    """Also at a point of another operation, because only the worker knows which one begins."""
    for point in Point:
        for rules in filter(None, rule_variants(point)):
            claimed = Node(operation, State.RUNNING, Phase.PRE, rules)
            step = step_of(claimed, BreakpointAdded())
            assert step == Step(replace(claimed, state=State.READY))
    stepping = Node(operation, State.RUNNING, Phase.PRE, stepping=True)
    assert isinstance(decide(stepping, BreakpointAdded()), InvalidInput)


def test_stepping_stops_before_operations_with_points() -> None:
    moved = {operation for operation, _, _ in stepping_moves()}
    assert moved == {one for one in Operation if POINTS[one, Phase.PRE]} - GATES
    assert {(before.state, before.phase, after.phase) for _, before, after in stepping_moves()} == {
        (state, Phase.EXECUTE, Phase.PRE) for state in PENDING_STATES
    }


def test_moves_of_the_store_are_between_states_of_the_table() -> None:
    known = {Place(state, phase) for state, phase, _ in TABLE}
    known.update(to for row in TABLE.values() for to in row.leads_to)
    for move in STORE_MOVES:
        assert move.origin in known and move.to in known and move.origin.state not in ENDED


ENDED_WITH = Superseded(reason="cancelled")


@cache
def steps_of_claimed_nodes() -> list[Transition]:
    """Only these can arrive after the end of their traversal."""
    return [
        one
        for one in transitions()
        if one.node.state is State.RUNNING and one.node_input != Superseded()
    ]


def test_in_an_ended_traversal_no_hook_opens_and_no_node_waits_at_one() -> None:
    for one in steps_of_claimed_nodes():
        again = decide_superseded(one.node, one.node_input, ENDED_WITH)
        assert isinstance(again, InvalidInput) is isinstance(one.answer, InvalidInput)
        if not isinstance(again, Step) or not isinstance(one.answer, Step):
            continue
        assert not opened_rules(again) and again.node.rules == one.node.rules
        assert again.node.state is not State.PARKED or again.node.phase is Phase.EXECUTE
        if not opened_rules(one.answer):
            assert again == one.answer
        elif not any(rule.blocks for rule in opened_rules(one.answer)):
            assert again.node == one.answer.node


def test_the_result_of_an_operation_is_in_the_step_that_is_decided_again() -> None:
    rule_variants = (WriteDone, WriteUnchanged, Record)
    for one in steps_of_claimed_nodes():
        if isinstance(one.node_input, Succeeded) and isinstance(one.answer, Step):
            again = decide_superseded(one.node, one.node_input, ENDED_WITH)
            assert isinstance(again, Step)
            before, after = (
                [effect for effect in step.effects if isinstance(effect, rule_variants)]
                for step in (one.answer, again)
            )
            assert before == after
            held = one.answer.node.state is not State.DONE
            assert again.node.state is (State.DROPPED if held else State.DONE)
            assert again.node.reason == ("cancelled" if held else None)


@pytest.mark.parametrize("mode", [Mode.WAIT, Mode.STOP])
@pytest.mark.parametrize("step", ["cut", Point.PRE_BATCH, Point.PRE_SCALE_IN])
def test_a_confirmation_in_an_ended_traversal_is_refused_with_the_name_of_its_step(
    step: str, mode: Mode
) -> None:
    held = Node(Operation.UPDATE, State.RUNNING, Phase.EXECUTE, (Rule(point_of(step), mode),))
    again = decide_superseded(held, MustConfirm(step), ENDED_WITH)
    assert isinstance(again, Step)
    assert (again.node.state, again.node.phase) == (State.READY, Phase.EXECUTE)
    assert again.effects == (NotifyType(step, Decision.REJECT, DECIDED_BY_ENGINE, "cancelled"),)


@pytest.mark.parametrize("step", ["cut", Point.PRE_BATCH, Point.PRE_SCALE_IN])
def test_a_waiting_confirmation_is_refused_with_its_step_when_its_traversal_ends(step: str) -> None:
    acting = Node(Operation.UPDATE, State.RUNNING, Phase.EXECUTE, (Rule(point_of(step)),))
    held = step_of(acting, MustConfirm(step)).node
    notified = step_of(held, Superseded("ann", "cancelled")).effects
    assert notified == (NotifyType(step, Decision.REJECT, "ann", "cancelled"),)
    assert notified[0].as_json() == {
        "step": step, "accepted": False, "by": "ann", "reason": "cancelled",
    }  # fmt: skip


def test_a_create_without_breakpoints_completes_without_a_hook() -> None:
    acting = step_of(new_node(Operation.CREATE), Claimed(Operation.CREATE))
    assert [type(e) for e in acting.effects] == [Record, CallOperation]
    done = step_of(acting.node, Succeeded())
    assert done.node.state is State.DONE
    assert [type(e) for e in done.effects] == [WriteDone, Record]


def test_a_post_hook_parks_a_node_after_its_resource_is_written() -> None:
    node = Node(Operation.CREATE, State.RUNNING, Phase.EXECUTE, (rule(Point.POST_CREATE),))
    held = step_of(node, Succeeded())
    assert held.node.state is State.PARKED and held.node.phase is Phase.POST
    assert [type(e) for e in held.effects] == [WriteDone, Record, OpenHook]
    assert step_of(held.node, CONTINUE).node.state is State.DONE


def test_a_stop_rule_stops_and_records_an_event() -> None:
    held = step_of(
        new_node(Operation.CREATE, rule(Point.PRE_CREATE, Mode.STOP)), Claimed(Operation.CREATE)
    )
    assert held.node.state is State.STOPPED
    assert [type(e) for e in held.effects] == [OpenHook]


def test_a_failure_before_the_operation_does_not_taint_the_resource() -> None:
    held = step_of(new_node(Operation.UPDATE, rule(Point.PRE_UPDATE)), Claimed(Operation.UPDATE))
    assert step_of(held.node, REJECT).effects[0] == WriteFailed(
        "pre-update rejected by ann: no", False
    )
    acting = Node(Operation.UPDATE, State.RUNNING, Phase.EXECUTE)
    assert step_of(acting, OperationFailed("x")).effects[0] == WriteFailed("x", True)


def test_a_pre_update_hook_in_heats_form_opens_before_an_unchanged_update() -> None:
    points = step_of(new_node(Operation.UPDATE, rule(Point.PRE_UPDATE, short=True)), Claimed(None))
    assert points.node.state is State.PARKED
    again = step_of(claim(step_of(points.node, CONTINUE).node), Claimed(None))
    assert again.effects == (WriteUnchanged(),)
    full = step_of(new_node(Operation.UPDATE, rule(Point.PRE_UPDATE)), Claimed(None))
    assert full.node.state is State.DONE


def test_a_replacement_opens_the_hooks_that_its_update_did_not_open() -> None:
    rules = (rule(Point.PRE_CREATE), rule(Point.PRE_UPDATE))
    node = Node(Operation.UPDATE, State.RUNNING, Phase.EXECUTE, rules, (Point.PRE_UPDATE,))
    replaced = step_of(node, MustReplace())
    assert replaced.node.operation is Operation.REPLACE
    assert replaced.effects == (OpenHook(rules[0]),)


def test_the_row_of_a_deleted_resource_is_removed_after_the_last_hook() -> None:
    node = Node(Operation.DELETE, State.RUNNING, Phase.EXECUTE, (rule(Point.POST_DELETE),))
    held = step_of(node, Succeeded())
    assert Remove() not in held.effects
    assert step_of(held.node, CONTINUE).effects == (Remove(),)


@pytest.mark.parametrize(
    "node_input", [Succeeded(), OperationFailed("x"), CONTINUE, MustWait(UNTIL)]
)
def test_an_invalid_input_is_refused_with_a_reason(node_input: Input) -> None:
    answer = decide(Node(Operation.CREATE, State.DONE, Phase.POST), node_input)
    assert isinstance(answer, InvalidInput) and "is not valid for" in answer.reason


def test_a_retry_parks_the_node_with_a_reason() -> None:
    acting = step_of(new_node(Operation.CREATE), Claimed(Operation.CREATE)).node
    step = step_of(acting, MustRetry(UNTIL, "busy"))
    assert (step.node.state, step.node.phase) == (State.PARKED, Phase.EXECUTE)
    assert step.effects == (WakeAt(UNTIL), Record(EventKind.RETRYING, "busy"))


def test_a_forbidden_operation_fails_the_node_and_keeps_the_resource() -> None:
    step = step_of(new_node(Operation.UPDATE), OperationForbidden("protected"))
    assert step.node.state is State.FAILED
    assert step.effects == (Record(EventKind.FAILED, "protected"),)


@pytest.mark.parametrize("operation", sorted(set(Operation) - GATES))
def test_only_an_operation_with_an_unknown_result_taints_a_resource(operation: Operation) -> None:
    acting = step_of(new_node(operation), Claimed(operation)).node
    (written,) = [
        effect
        for effect in step_of(acting, OperationFailed("no")).effects
        if isinstance(effect, WriteFailed)
    ]
    harmless = {Operation.ADOPT, Operation.SUSPEND, Operation.RESUME, Operation.SNAPSHOT}
    assert written.tainted is (operation not in harmless)


def test_a_cleanup_without_work_opens_no_hook() -> None:
    node = new_node(Operation.DELETE, rule(Point.PRE_UPDATE, short=True))
    assert step_of(node, Claimed(None)).effects == (WriteUnchanged(),)


def step_after_confirm(rule: Rule | None, operation: Operation = Operation.UPDATE) -> Step:
    """The step after a running operation has asked to confirm `cut`."""
    acting = Node(operation, State.RUNNING, Phase.EXECUTE, (rule,) if rule else ())
    return step_of(acting, MustConfirm("cut"))


CUT = "confirm-cut"


@pytest.mark.parametrize(
    "rule",
    [None, Rule(CUT, Mode.NOTIFY), Rule(CUT, dry=True), Rule(CUT, Mode.STOP, dry=True),
     Rule("confirm-other")],
)  # fmt: skip
def test_a_confirmation_without_a_rule_continues_at_once(rule: Rule | None) -> None:
    step = step_after_confirm(rule)
    assert (step.node.state, step.node.phase) == (State.READY, Phase.EXECUTE)
    notified = NotifyType("cut", Decision.CONTINUE, DECIDED_BY_ENGINE, "no breakpoint blocks it")
    hook = (OpenHook(rule),) if rule and rule.point == CUT else ()
    assert step.effects == (*hook, notified)
    again = step_of(claim(step.node), Claimed(Operation.UPDATE))
    assert again.effects == (CallOperation(Operation.UPDATE),)


def test_an_answer_is_passed_to_the_waiting_operation() -> None:
    held = step_after_confirm(Rule(CUT))
    assert (held.node.state, held.node.phase) == (State.PARKED, Phase.CONFIRM)
    assert held.effects == (OpenHook(Rule(CUT)),)
    for decision in RESUMING_DECISIONS:
        step = step_of(held.node, Answered(decision, "ann", "fine"))
        assert step.effects == (NotifyType("cut", Decision.CONTINUE, "ann", "fine"),)
    assert step_of(held.node, REJECT).effects == (NotifyType("cut", Decision.REJECT, "ann", "no"),)


@pytest.mark.parametrize(
    ("node_input", "decision"),
    [
        (Expired(OnTimeout.CONTINUE), Decision.CONTINUE),
        (Expired(OnTimeout.REJECT), Decision.REJECT),
        (Superseded(), Decision.REJECT),
    ],
)
def test_an_expired_confirmation_is_passed_to_the_operation(
    node_input: Input, decision: Decision
) -> None:
    step = step_of(step_after_confirm(Rule(CUT)).node, node_input)
    (notified,) = step.effects
    assert isinstance(notified, NotifyType)
    assert (notified.step, notified.decision, notified.by) == (
        "cut",
        decision,
        DECIDED_BY_ENGINE,
    ) and notified.reason
    assert (step.node.state, step.node.phase) == (State.READY, Phase.EXECUTE)
    assert isinstance(decide(step.node, Superseded()), InvalidInput)


@pytest.mark.parametrize("operation", [Operation.UPDATE, Operation.SUSPEND])
def test_a_stop_during_an_operation_leaves_a_failed_resource(
    operation: Operation,
) -> None:
    expired = step_of(step_after_confirm(Rule(CUT), operation).node, Expired(OnTimeout.STOP))
    at_once = step_after_confirm(Rule(CUT, Mode.STOP), operation)
    for step, hooks in ((expired, ()), (at_once, (OpenHook(Rule(CUT, Mode.STOP)),))):
        assert (step.node.state, step.node.phase) == (State.STOPPED, Phase.CONFIRM)
        why = step.node.reason or ""
        assert CUT in why
        failed = WriteFailed(why, operation in BREAKING)
        assert step.effects == (*hooks, failed, Record(EventKind.FAILED, why))


@pytest.mark.parametrize("operation", Operation)
def test_step_mode_opens_a_hook_before_each_operation_with_a_point(
    operation: Operation,
) -> None:
    step = step_of(replace(new_node(operation), stepping=True), Claimed(operation))
    points = operation not in GATES | {Operation.ADOPT, Operation.SNAPSHOT}
    assert [rule.stepped for rule in opened_rules(step)] == [True] * points
    assert step.node.state is (State.PARKED if points else State.RUNNING)
    if points:
        on = step_of(claim(step_of(step.node, CONTINUE).node), Claimed(operation))
        assert has_call(on)


def test_step_mode_opens_no_second_hook_next_to_a_rule() -> None:
    ruled = Rule(Point.PRE_UPDATE, answer_by=("user:bob",))
    node = replace(new_node(Operation.UPDATE, ruled), stepping=True)
    assert step_of(node, Claimed(Operation.UPDATE)).effects == (OpenHook(ruled),)
    assert step_of(node, Claimed(None)).effects == (WriteUnchanged(),)


@pytest.mark.parametrize(
    "beside",
    [Rule(Point.PRE_UPDATE, Mode.NOTIFY, by_operator=True), Rule(Point.PRE_UPDATE, dry=True)],
    ids=["notify", "dry"],
)
def test_stepping_opens_its_hook_after_that_of_a_rule_that_does_not_block(beside: Rule) -> None:
    step = step_of(
        replace(new_node(Operation.UPDATE, beside), stepping=True), Claimed(Operation.UPDATE)
    )
    assert opened_rules(step) == [beside, step_rule(Point.PRE_UPDATE)]
    assert (step.node.state, step.node.breakpoints_hit) == (State.PARKED, (Point.PRE_UPDATE,))
    on = step_of(claim(step_of(step.node, CONTINUE).node), Claimed(Operation.UPDATE))
    assert has_call(on) and not opened_rules(on)


def test_a_replacement_has_its_points_in_order_before_and_after() -> None:
    before, after = (POINTS[Operation.REPLACE, phase] for phase in (Phase.PRE, Phase.POST))
    node = new_node(Operation.REPLACE, *(Rule(point) for point in (*after, *before)))
    points: list[str] = []
    step = step_of(node, Claimed(Operation.REPLACE))
    while not has_call(step):
        points += [rule.point for rule in opened_rules(step)]
        ready = step_of(step.node, CONTINUE).node
        step = step_of(claim(ready), Claimed(Operation.REPLACE))
    step = step_of(step.node, Succeeded())
    while step.node.state is not State.DONE:
        points += [rule.point for rule in opened_rules(step)]
        step = step_of(step.node, CONTINUE)
    assert points == [
        "pre-update", "pre-replace", "pre-create", "post-create", "post-replace", "post-update",
    ]  # fmt: skip


def test_a_stack_node_has_hook_call_and_end_without_a_resource() -> None:
    guard = Rule(pre_stack(Action.DELETE))
    held = step_of(new_node(Operation.BEGIN, guard), Claimed(Operation.BEGIN))
    assert held.effects == (OpenHook(guard),)
    ready = step_of(held.node, CONTINUE).node
    acting = step_of(claim(ready), Claimed(Operation.BEGIN))
    assert acting.effects == (CallOperation(Operation.BEGIN),)
    done = step_of(acting.node, Succeeded())
    assert done.node.state is State.DONE and done.effects == ()
    refused = step_of(acting.node, OperationFailed("Quota refused it: too many"))
    assert refused.node.reason == "Quota refused it: too many" and refused.effects == ()


def test_an_adoption_opens_hooks_of_operator_rules_for_creates() -> None:
    mine, operators = Rule(Point.PRE_CREATE), Rule(Point.PRE_CREATE, by_operator=True)
    assert not opened_rules(step_of(new_node(Operation.ADOPT, mine), Claimed(Operation.ADOPT)))
    step = step_of(new_node(Operation.ADOPT, operators), Claimed(Operation.ADOPT))
    assert (opened_rules(step), step.node.state) == ([operators], State.PARKED)
    after = Rule(Point.POST_CREATE, by_operator=True)
    acting = replace(new_node(Operation.ADOPT, after), state=State.RUNNING, phase=Phase.EXECUTE)
    assert opened_rules(step_of(acting, Succeeded())) == [after]


def cancelled_ones() -> list[tuple[Node, Step | InvalidInput]]:
    return [
        (one.node, one.answer) for one in transitions() if isinstance(one.node_input, Cancelled)
    ]


def test_only_operations_that_have_begun_are_cancelled_and_no_deletes() -> None:
    for node, answer in cancelled_ones():
        cancels = (
            node.phase is Phase.EXECUTE
            and node.state in (State.READY, State.RUNNING, State.PARKED)
            and (node.state is not State.READY or any(map(is_confirm, node.breakpoints_hit)))
            and node.operation not in {*GATES, Operation.DELETE}
            and not node.cancelled
        )
        assert isinstance(answer, Step) is cancels, node
        if isinstance(answer, Step):
            assert answer == Step(replace(node, cancelled=True))


def test_a_cancelled_operation_is_neither_retried_nor_turned_into_a_replacement() -> None:
    ended = [
        step
        for one, step in steps()
        if one.node.cancelled and isinstance(one.node_input, MustRetry | MustReplace)
    ]
    assert ended
    for step in ended:
        assert step.node.state is State.FAILED
        assert not has_call(step) and not opened_rules(step)


def test_a_cancelled_operation_stays_cancelled() -> None:
    assert all(step.node.cancelled for one, step in steps() if one.node.cancelled)
