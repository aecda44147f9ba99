"""The node machine, explored whole: every rule set, every input, in every state that is reached."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product

import pytest

from engine.hooks.rule import Rule
from engine.node.effects import (
    Call,
    Moment,
    OpenHook,
    Record,
    Remove,
    WakeAt,
    WriteDone,
    WriteFailed,
    WriteUnchanged,
)
from engine.node.inputs import (
    Answered,
    Broke,
    Claimed,
    Denied,
    Expired,
    Input,
    MustReplace,
    MustRetry,
    MustWait,
    Succeeded,
    Superseded,
)
from engine.node.machine import ENDED, Node, Refused, Step, decide
from engine.node.points import POINTS
from engine.words import GATES, Decision, Mode, OnTimeout, Operation, Phase, Point, State

UNTIL = datetime(2026, 1, 1, tzinfo=UTC)
CONTINUE = Answered(Decision.CONTINUE, "ann")
REJECT = Answered(Decision.REJECT, "ann", "no")
INPUTS: tuple[Input, ...] = (
    *(Claimed(operation) for operation in (None, *Operation)),
    Succeeded(),
    MustWait(UNTIL),
    MustRetry(UNTIL, "busy"),
    MustReplace(),
    Broke("broken"),
    Denied("protected"),
    CONTINUE,
    REJECT,
    *(Expired(on_timeout) for on_timeout in OnTimeout),
    Superseded(),
)


def rule(point: Point, mode: Mode = Mode.WAIT, short: bool = False) -> Rule:
    return Rule(point, mode, short=short)


def fresh(operation: Operation, *rules: Rule) -> Node:
    return Node(operation, State.RUNNING, Phase.PRE, rules)


def stepped(node: Node, said: Input) -> Step:
    step = decide(node, said)
    assert isinstance(step, Step), step
    return step


def claimed_again(node: Node) -> Node:
    """What the store does: a node that is ready, or parked with a timer, is claimed."""
    assert node.state in (State.READY, State.PARKED)
    return Node(node.operation, State.RUNNING, node.phase, node.rules, node.passed, node.reason)


def rule_sets() -> Iterator[tuple[Rule, ...]]:
    points = (Point.PRE_CREATE, Point.POST_CREATE, Point.PRE_UPDATE, Point.POST_UPDATE)
    for modes in product((None, *Mode), repeat=4):
        yield tuple(rule(point, mode) for point, mode in zip(points, modes, strict=True) if mode)
    for mode in Mode:
        yield (rule(Point.PRE_DELETE, mode), rule(Point.POST_DELETE, mode))
    yield (rule(Point.PRE_UPDATE, short=True),)


def reachable() -> Iterator[tuple[Node, Input, Step | Refused]]:
    """Every (node, input, answer) from every fresh node, through the store's moves, too."""
    queue = [
        fresh(operation, *rules)
        for rules in rule_sets()
        for operation in (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
    ]
    seen = set(queue)
    for node in queue:
        for said in INPUTS:
            answer = decide(node, said)
            yield node, said, answer
            if isinstance(answer, Refused):
                continue
            after = [answer.node]
            timer = any(isinstance(effect, WakeAt) for effect in answer.effects)
            if answer.node.state is State.READY or timer:
                after.append(claimed_again(answer.node))
            queue.extend(one for one in after if one not in seen)
            seen.update(after)


ALL = list(reachable())


def test_the_exploration_reaches_every_state_and_phase_a_worker_sees() -> None:
    states = {(node.state, node.phase) for node, _, _ in ALL}
    assert {
        (State.RUNNING, Phase.PRE),
        (State.RUNNING, Phase.ACT),
        (State.PARKED, Phase.PRE),
        (State.PARKED, Phase.ACT),
        (State.PARKED, Phase.POST),
        (State.READY, Phase.PRE),
        (State.DONE, Phase.POST),
        (State.FAILED, Phase.PRE),
        (State.STOPPED, Phase.POST),
        (State.DROPPED, Phase.PRE),
    } <= states
    assert len(ALL) > 5_000


def test_no_operation_is_called_while_a_breakpoint_before_it_is_unasked() -> None:
    for node, said, answer in ALL:
        if isinstance(answer, Step) and any(isinstance(e, Call) for e in answer.effects):
            held = {r.point for r in node.rules if r.mode is Mode.WAIT}
            before = set(POINTS[answer.node.operation, Phase.PRE]) & held
            replaced = isinstance(said, MustReplace)
            assert before <= set(answer.node.passed) or (node.phase is Phase.ACT and not replaced)


def test_no_operation_is_called_in_the_step_that_opens_a_waiting_hook() -> None:
    for _, _, answer in ALL:
        if isinstance(answer, Step):
            opens = [e for e in answer.effects if isinstance(e, OpenHook)]
            calls = [e for e in answer.effects if isinstance(e, Call)]
            assert not calls or all(e.rule.mode is Mode.NOTIFY for e in opens)


def test_a_point_is_asked_once() -> None:
    for node, _, answer in ALL:
        if isinstance(answer, Step):
            asked = [e.rule.point for e in answer.effects if isinstance(e, OpenHook)]
            assert not set(asked) & set(node.passed)
            assert len(answer.node.passed) == len(set(answer.node.passed))
            assert answer.node.passed == (*node.passed, *asked)


def test_after_a_rejection_there_is_neither_a_call_nor_a_hook() -> None:
    for _, said, answer in ALL:
        if said in (REJECT, Expired(OnTimeout.REJECT)) and isinstance(answer, Step):
            assert answer.node.state is State.FAILED
            assert [type(e) for e in answer.effects] == [WriteFailed, Record]


def test_an_accepted_input_changes_the_node_unless_work_is_taken_up_again() -> None:
    for node, said, answer in ALL:
        if isinstance(answer, Step):
            again = isinstance(said, Claimed) and node.phase is Phase.ACT
            assert answer.node != node or (again and answer.effects == (Call(node.operation),))


def test_nothing_moves_a_node_that_has_ended() -> None:
    ended = [answer for node, _, answer in ALL if node.state in ENDED]
    assert ended and all(isinstance(answer, Refused) for answer in ended)


def test_a_node_that_acts_is_not_dropped() -> None:
    for node, said, answer in ALL:
        if isinstance(said, Superseded) and node.phase is Phase.ACT:
            assert isinstance(answer, Refused) or node.state in (State.READY, State.WAITING)


def test_every_reachable_node_can_end() -> None:
    goes: dict[Node, set[Node]] = {}
    for node, _, answer in ALL:
        if isinstance(answer, Step):
            goes.setdefault(node, set()).add(answer.node)
    nodes = {node for node, _, _ in ALL}
    for node in nodes:
        timer = (node.state, node.phase) == (State.PARKED, Phase.ACT)
        if node.state is State.READY or timer:
            goes.setdefault(node, set()).add(claimed_again(node))
    can_end = {node for node in nodes if node.state in ENDED}
    while fresh_ones := {n for n in nodes - can_end if goes.get(n, set()) & can_end}:
        can_end |= fresh_ones
    assert nodes == can_end


def test_a_create_without_breakpoints_goes_straight_through() -> None:
    acting = stepped(fresh(Operation.CREATE), Claimed(Operation.CREATE))
    assert [type(e) for e in acting.effects] == [Record, Call]
    done = stepped(acting.node, Succeeded())
    assert done.node.state is State.DONE
    assert [type(e) for e in done.effects] == [WriteDone, Record]


def test_a_post_hook_parks_a_node_whose_resource_is_written_already() -> None:
    node = Node(Operation.CREATE, State.RUNNING, Phase.ACT, (rule(Point.POST_CREATE),))
    held = stepped(node, Succeeded())
    assert held.node.state is State.PARKED and held.node.phase is Phase.POST
    assert [type(e) for e in held.effects] == [WriteDone, Record, OpenHook]
    assert stepped(held.node, CONTINUE).node.state is State.DONE


def test_a_stop_rule_stops_and_tells() -> None:
    held = stepped(
        fresh(Operation.CREATE, rule(Point.PRE_CREATE, Mode.STOP)), Claimed(Operation.CREATE)
    )
    assert held.node.state is State.STOPPED
    assert [type(e) for e in held.effects] == [OpenHook]


def test_a_failure_before_the_operation_leaves_the_resource_whole() -> None:
    held = stepped(fresh(Operation.UPDATE, rule(Point.PRE_UPDATE)), Claimed(Operation.UPDATE))
    assert stepped(held.node, REJECT).effects[0] == WriteFailed(
        "pre-update rejected by ann: no", False
    )
    acting = Node(Operation.UPDATE, State.RUNNING, Phase.ACT)
    assert stepped(acting, Broke("x")).effects[0] == WriteFailed("x", True)


def test_heats_short_form_asks_before_an_update_that_changes_nothing() -> None:
    asked = stepped(fresh(Operation.UPDATE, rule(Point.PRE_UPDATE, short=True)), Claimed(None))
    assert asked.node.state is State.PARKED
    again = stepped(claimed_again(stepped(asked.node, CONTINUE).node), Claimed(None))
    assert again.effects == (WriteUnchanged(),)
    full = stepped(fresh(Operation.UPDATE, rule(Point.PRE_UPDATE)), Claimed(None))
    assert full.node.state is State.DONE


def test_a_replacement_asks_what_it_has_not_asked_as_an_update() -> None:
    rules = (rule(Point.PRE_CREATE), rule(Point.PRE_UPDATE))
    node = Node(Operation.UPDATE, State.RUNNING, Phase.ACT, rules, (Point.PRE_UPDATE,))
    replaced = stepped(node, MustReplace())
    assert replaced.node.operation is Operation.REPLACE
    assert replaced.effects == (OpenHook(rules[0]),)


def test_a_deleted_resource_loses_its_row_behind_the_last_hook() -> None:
    node = Node(Operation.DELETE, State.RUNNING, Phase.ACT, (rule(Point.POST_DELETE),))
    held = stepped(node, Succeeded())
    assert Remove() not in held.effects
    assert stepped(held.node, CONTINUE).effects == (Remove(),)


@pytest.mark.parametrize("said", [Succeeded(), Broke("x"), CONTINUE, MustWait(UNTIL)])
def test_what_does_not_fit_is_refused_with_a_reason(said: Input) -> None:
    answer = decide(Node(Operation.CREATE, State.DONE, Phase.POST), said)
    assert isinstance(answer, Refused) and "does not fit" in answer.reason


def test_a_retry_parks_the_node_and_says_why() -> None:
    acting = stepped(fresh(Operation.CREATE), Claimed(Operation.CREATE)).node
    step = stepped(acting, MustRetry(UNTIL, "busy"))
    assert (step.node.state, step.node.phase) == (State.PARKED, Phase.ACT)
    assert step.effects == (WakeAt(UNTIL), Record(Moment.RETRYING, "busy"))


def test_what_is_denied_fails_the_node_and_leaves_the_resource() -> None:
    step = stepped(fresh(Operation.UPDATE), Denied("protected"))
    assert step.node.state is State.FAILED
    assert step.effects == (Record(Moment.FAILED, "protected"),)


@pytest.mark.parametrize("operation", set(Operation) - GATES)
def test_only_what_leaves_a_doubt_breaks_a_resource(operation: Operation) -> None:
    acting = stepped(fresh(operation), Claimed(operation)).node
    (written,) = [
        effect for effect in stepped(acting, Broke("no")).effects if isinstance(effect, WriteFailed)
    ]
    harmless = {Operation.ADOPT, Operation.SUSPEND, Operation.RESUME, Operation.SNAPSHOT}
    assert written.broken is (operation not in harmless)


def test_a_cleanup_that_finds_nothing_to_do_asks_nobody() -> None:
    node = fresh(Operation.DELETE, rule(Point.PRE_UPDATE, short=True))
    assert stepped(node, Claimed(None)).effects == (WriteUnchanged(),)
