"""The node machine, explored whole: every rule set, every input, in every state that is reached."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import NamedTuple

import pytest

from engine.hooks.rule import Rule, is_confirm
from engine.node.effects import (
    Call,
    EventKind,
    NotifyType,
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
    Claimed,
    Expired,
    Input,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustStop,
    MustWait,
    OperationFailed,
    OperationForbidden,
    Succeeded,
    Superseded,
)
from engine.node.machine import STORE_MOVES, TABLE, Place, decide, decide_superseded
from engine.node.node import BREAKING, ENDED, NOBODY, Node, Refused, Step
from engine.node.points import POINTS
from engine.words import (
    GATES,
    GOES_ON,
    REPEATED,
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
    MustStop("the stack inside was stopped"),
    OperationFailed("broken"),
    OperationForbidden("protected"),
    *(Answered(decision, "ann") for decision in Decision if decision is not Decision.REJECT),
    REJECT,
    *(Expired(on_timeout) for on_timeout in OnTimeout),
    Superseded(),
)
#: Steps inside an operation, in any order; the last again and again.
CONFIRMS = (MustConfirm("cut"), MustConfirm("join"), MustConfirm(Point.PRE_BATCH))


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
    return replace(node, state=State.RUNNING)


def usual() -> Iterator[Node]:
    points = (Point.PRE_CREATE, Point.POST_CREATE, Point.PRE_UPDATE, Point.POST_UPDATE)
    sets = [
        tuple(rule(point, mode) for point, mode in zip(points, modes, strict=True) if mode)
        for modes in product((None, *Mode), repeat=4)
    ]
    sets += [(rule(Point.PRE_DELETE, mode), rule(Point.POST_DELETE, mode)) for mode in Mode]
    sets.append((rule(Point.PRE_UPDATE, short=True),))
    for rules in sets:
        for operation in (Operation.CREATE, Operation.UPDATE, Operation.DELETE):
            yield fresh(operation, *rules)


def kinds(point: str) -> Iterator[tuple[Rule, ...]]:
    """No rule, one of each mode, and each of them tried out only."""
    yield ()
    for mode, dry in product(Mode, (False, True)):
        yield (Rule(point, mode, dry=dry),)


def confirming() -> Iterator[Node]:
    for operation in (Operation.CREATE, Operation.UPDATE, Operation.SUSPEND):
        pre, post = (POINTS[operation, phase][0] for phase in (Phase.PRE, Phase.POST))
        around = ((), (Rule(pre), Rule(post)))
        for cut, join, rules in product(
            kinds("confirm-cut"), ((), (Rule("confirm-join"), Rule(Point.PRE_BATCH))), around
        ):
            yield fresh(operation, *cut, *join, *rules)


def stepping() -> Iterator[Node]:
    for operation in Operation:
        points = POINTS[operation, Phase.PRE][:3] + POINTS[operation, Phase.POST]
        for point in points or ("pre-create",):
            for rules in kinds(point):
                yield replace(fresh(operation, *rules), stepping=True)


def replacing() -> Iterator[Node]:
    pre, post = (POINTS[Operation.REPLACE, phase] for phase in (Phase.PRE, Phase.POST))
    for points in (pre, post):
        for modes in product((None, *Mode), repeat=3):
            rules = [rule(Point(at), mode) for at, mode in zip(points, modes, strict=True) if mode]
            yield fresh(Operation.UPDATE, *rules)
    yield replace(fresh(Operation.UPDATE, *(Rule(one) for one in pre + post)), stepping=True)


def gates() -> Iterator[Node]:
    for operation, point in (
        (Operation.BEGIN, pre_stack(Action.UPDATE)),
        (Operation.FINISH, post_stack(Action.UPDATE)),
    ):
        for rules, pace in product(kinds(point), (False, True)):
            yield replace(fresh(operation, *rules), stepping=pace)


#: More nodes than these no exploration reaches.
MOST = 50_000


class Reached(NamedTuple):
    """begun: on the way here its operation was called, and has not ended yet."""

    node: Node
    begun: bool
    said: Input
    answer: Step | Refused


def explored(
    starts: Iterable[Node], inputs: Sequence[Input], *, anything: bool = False
) -> Iterator[Reached]:
    """Every answer to every input from every fresh node, through the store's moves, too.

    anything: a worker may find that anything else is to be done than what was planned.

    Without a row in the table, an input is refused whatever the node; it is tried on one node. The
    first input is tried on every node, so that every node is in the result.
    """
    queue = [(node, False) for node in starts]
    seen = set(queue)
    without_row: set[tuple[State, Phase, type[Input]]] = set()
    for node, begun in queue:
        assert len(queue) < MOST, "there is no end of nodes: some input is accepted for ever"
        for said in inputs:
            usual_claims = (None, node.operation, Operation.REPLACE)
            if isinstance(said, Claimed) and not (anything or said.operation in usual_claims):
                continue
            at = (node.state, node.phase, type(said))
            if at in without_row and said is not inputs[0]:
                continue
            if at not in TABLE:
                without_row.add(at)
            answer = decide(node, said)
            yield Reached(node, begun, said, answer)
            if isinstance(answer, Refused):
                continue
            called = any(isinstance(effect, Call) for effect in answer.effects)
            acts = called or (begun and not isinstance(said, Succeeded | MustReplace))
            after = [(answer.node, acts)]
            timer = any(isinstance(effect, WakeAt) for effect in answer.effects)
            if answer.node.state is State.READY or timer:
                after.append((claimed_again(answer.node), acts))
            queue.extend(one for one in after if one not in seen)
            seen.update(after)


WAYS: dict[str, list[Reached]] = {
    "usual": list(explored(usual(), INPUTS)),
    "odd": list(explored([fresh(Operation.CREATE, rule(Point.PRE_UPDATE))], INPUTS, anything=True)),
    "confirming": list(explored(confirming(), (*INPUTS, *CONFIRMS))),
    "stepping": list(explored(stepping(), (*INPUTS, CONFIRMS[0]))),
    "replacing": list(explored(replacing(), INPUTS)),
    "gates": list(explored(gates(), (*INPUTS, CONFIRMS[0]), anything=True)),
}
ALL = [one for reached in WAYS.values() for one in reached]


def test_the_exploration_reaches_every_state_and_phase_a_worker_sees() -> None:
    states = {(one.node.state, one.node.phase) for one in ALL}
    assert {
        (State.RUNNING, Phase.PRE),
        (State.RUNNING, Phase.ACT),
        (State.PARKED, Phase.PRE),
        (State.PARKED, Phase.ACT),
        (State.PARKED, Phase.CONFIRM),
        (State.PARKED, Phase.POST),
        (State.READY, Phase.PRE),
        (State.READY, Phase.ACT),
        (State.DONE, Phase.POST),
        (State.FAILED, Phase.PRE),
        (State.STOPPED, Phase.CONFIRM),
        (State.STOPPED, Phase.POST),
        (State.DROPPED, Phase.PRE),
    } <= states
    assert len(WAYS["usual"]) > 5_000
    assert {one.node.operation for one in ALL} == set(Operation)


def steps() -> Iterator[tuple[Reached, Step]]:
    """What was accepted, of all that was reached."""
    for one in ALL:
        if isinstance(one.answer, Step):
            yield one, one.answer


def opened(step: Step) -> list[Rule]:
    return [effect.rule for effect in step.effects if isinstance(effect, OpenHook)]


def called(step: Step) -> bool:
    return any(isinstance(effect, Call) for effect in step.effects)


def test_no_operation_is_called_while_a_breakpoint_before_it_is_unasked() -> None:
    for one, step in steps():
        if called(step):
            after = step.node
            points = POINTS[after.operation, Phase.PRE]
            held = {rule.point for rule in after.rules if rule.holds}
            if after.stepping and after.operation not in GATES:
                held.update(points[-1:])
            replaced = isinstance(one.said, MustReplace)
            again = one.node.phase is Phase.ACT and not replaced
            assert {*points} & held <= {*after.passed} or again
            assert again is (one.begun and not replaced)


def test_no_operation_is_called_in_the_step_that_opens_a_hook_that_holds() -> None:
    for _, step in steps():
        held = [rule for rule in opened(step) if rule.holds]
        assert not (called(step) and held)
        assert len(held) <= 1
        if held:
            waits = held[0].mode is Mode.WAIT
            assert step.node.state is (State.PARKED if waits else State.STOPPED)


def test_a_point_is_asked_once() -> None:
    for one, step in steps():
        asked = [rule.point for rule in opened(step)]
        if isinstance(one.said, MustConfirm):
            point = point_of(one.said.step)
            assert asked in ([], [point])
            asked = [point]
        assert len({*step.node.passed}) == len(step.node.passed)
        before = one.node.passed
        if isinstance(one.said, MustReplace):  # another operation, whose steps are its own
            before = tuple(point for point in before if not is_confirm(point))
        if asked and asked[0] in REPEATED:
            before = tuple(point for point in before if point not in asked)
        assert step.node.passed == (*before, *asked)


def test_a_step_that_was_confirmed_is_not_asked_about_again_unless_it_comes_again() -> None:
    again = [
        (one.said.step in REPEATED, one.answer)
        for one in ALL
        if isinstance(one.said, MustConfirm)
        and point_of(one.said.step) in one.node.passed
        and not isinstance(decide(one.node, Succeeded()), Refused)
    ]
    assert {repeated for repeated, _ in again} == {True, False}
    assert all(isinstance(answer, Step if repeated else Refused) for repeated, answer in again)


def test_hooks_open_for_rules_of_the_node_or_because_somebody_steps() -> None:
    for one, step in steps():
        for rule in opened(step):
            assert rule in one.node.rules or (one.node.stepping and rule.stepped)


def test_what_is_only_told_or_tried_out_holds_nothing() -> None:
    for one, step in steps():
        told = [rule for rule in opened(step) if not rule.holds]
        if told and len(told) == len(opened(step)) and one.said not in (REJECT, Superseded()):
            assert step.node.state in (State.RUNNING, State.READY, State.DONE)


def test_after_a_rejection_there_is_neither_a_call_nor_a_hook() -> None:
    for one, step in steps():
        if one.said not in (REJECT, Expired(OnTimeout.REJECT)):
            continue
        if one.node.phase is Phase.CONFIRM:
            (told,) = step.effects
            assert isinstance(told, NotifyType) and told.decision is Decision.REJECT
            assert (step.node.state, step.node.phase) == (State.READY, Phase.ACT)
        else:
            assert step.node.state is State.FAILED
            written = [] if one.node.operation in GATES else [WriteFailed, Record]
            assert [type(effect) for effect in step.effects] == written


def test_an_accepted_input_changes_the_node_unless_work_is_taken_up_again() -> None:
    for one, step in steps():
        again = isinstance(one.said, Claimed) and one.node.phase is Phase.ACT
        call = (Call(one.node.operation),)
        assert step.node != one.node or (again and step.effects == call)


def test_nothing_moves_a_node_that_has_ended() -> None:
    ended = [one.answer for one in ALL if one.node.state in ENDED]
    assert ended and all(isinstance(answer, Refused) for answer in ended)


def test_a_node_that_has_begun_to_act_is_not_dropped_and_any_other_is() -> None:
    for one in ALL:
        if not isinstance(one.said, Superseded) or one.node.state in ENDED:
            continue
        if not one.begun:
            assert isinstance(one.answer, Step)
            assert one.answer.node.state is State.DROPPED and not one.answer.effects
        elif one.node.phase is Phase.CONFIRM:
            assert isinstance(one.answer, Step)
            (told,) = one.answer.effects
            assert isinstance(told, NotifyType) and told.decision is Decision.REJECT
            assert (one.answer.node.state, one.answer.node.phase) == (State.READY, Phase.ACT)
        else:
            assert isinstance(one.answer, Refused)


def test_a_node_that_ends_in_the_middle_of_its_operation_says_so_of_its_resource() -> None:
    for one, step in steps():
        ends = step.node.state in (State.FAILED, State.STOPPED)
        midway = one.begun and not isinstance(
            one.said, OperationForbidden | Succeeded | MustReplace
        )
        if ends and midway and one.node.operation not in GATES:
            (written,) = [one for one in step.effects if isinstance(one, WriteFailed)]
            assert written.reason == step.node.reason
            assert written.broken is (one.node.operation in BREAKING)
            assert Record(EventKind.FAILED, written.reason) in step.effects


def test_nothing_is_written_or_recorded_of_a_gate_and_a_gate_it_stays() -> None:
    of_resources = (Record, WriteDone, WriteFailed, WriteUnchanged, Remove)
    for one, step in steps():
        if one.node.operation in GATES:
            assert step.node.operation is one.node.operation
            assert not any(isinstance(effect, of_resources) for effect in step.effects)
        else:
            assert step.node.operation not in GATES


def test_an_operation_that_asked_is_told_once_and_only_then() -> None:
    for one, step in steps():
        told = [effect for effect in step.effects if isinstance(effect, NotifyType)]
        inside = isinstance(one.said, MustConfirm) or one.node.phase is Phase.CONFIRM
        goes_on = step.node.state is State.READY
        assert len(told) == (inside and goes_on)
        if told:
            assert step.node.phase is Phase.ACT
            assert step.node.passed[-1] == point_of(told[0].step)


def test_every_answer_that_lets_a_node_go_on_lets_it_go_on_alike() -> None:
    asked = {one.node for one in ALL if (one.node.state, one.node.phase) in ASKING}
    for node in asked:
        first, *others = (decide(node, Answered(decision, "ann")) for decision in GOES_ON)
        assert isinstance(first, Step)
        assert all(other == first for other in others)


#: Where a node waits for somebody.
ASKING = {(State.PARKED, phase) for phase in (Phase.PRE, Phase.CONFIRM, Phase.POST)}


def test_that_somebody_is_at_it_is_no_answer() -> None:
    for one in ALL:
        if isinstance(one.said, Answered) and one.said.decision is Decision.PROGRESS:
            assert isinstance(one.answer, Refused)


def test_only_what_asks_is_answered() -> None:
    for one, _ in steps():
        if isinstance(one.said, Answered | Expired):
            assert (one.node.state, one.node.phase) in ASKING


def test_every_reachable_node_can_end() -> None:
    goes: dict[Node, set[Node]] = {}
    for one, step in steps():
        goes.setdefault(one.node, set()).add(step.node)
    nodes = {one.node for one in ALL}
    for node in nodes:
        timer = (node.state, node.phase) == (State.PARKED, Phase.ACT)
        if node.state is State.READY or timer:
            goes.setdefault(node, set()).add(claimed_again(node))
    can_end = {node for node in nodes if node.state in ENDED}
    while fresh_ones := {n for n in nodes - can_end if goes.get(n, set()) & can_end}:
        can_end |= fresh_ones
    assert nodes == can_end


def place(node: Node) -> Place:
    return Place(node.state, node.phase)


def test_each_row_of_the_table_leads_where_it_says_and_nowhere_else() -> None:
    """Nodes that wait are nobody's to reach here: the store makes them ready."""
    led: dict[tuple[State, Phase, type[Input]], set[Place]] = {}
    waiting = [Node(Operation.CREATE, State.WAITING, phase) for phase in (Phase.PRE, Phase.ACT)]
    ready = Node(Operation.CREATE, State.READY, Phase.ACT)
    planned = [Reached(node, False, Superseded(), decide(node, Superseded())) for node in waiting]
    planned.append(Reached(ready, False, Superseded(), decide(ready, Superseded())))
    for one in (*ALL, *planned):
        if isinstance(one.answer, Step):
            at = (*place(one.node), type(one.said))
            led.setdefault(at, set()).add(place(one.answer.node))
    assert led == {at: set(row.leads_to) for at, row in TABLE.items()}


def test_moves_of_the_store_are_between_places_of_the_table() -> None:
    known = {Place(state, phase) for state, phase, _ in TABLE}
    known.update(to for row in TABLE.values() for to in row.leads_to)
    for move in STORE_MOVES:
        assert move.origin in known and move.to in known and move.origin.state not in ENDED


#: A step is decided for what a worker has: nothing else can meet a traversal that has ended.
IN_HANDS = [one for one in ALL if one.node.state is State.RUNNING and one.said != Superseded()]
ENDED_WITH = Superseded(reason="cancelled")


def test_in_a_traversal_that_has_ended_no_hook_opens_and_nothing_stays_at_one() -> None:
    for one in IN_HANDS:
        again = decide_superseded(one.node, one.said, ENDED_WITH)
        assert isinstance(again, Refused) is isinstance(one.answer, Refused)
        if not isinstance(again, Step) or not isinstance(one.answer, Step):
            continue
        assert not opened(again) and again.node.rules == one.node.rules
        assert again.node.state is not State.PARKED or again.node.phase is Phase.ACT
        if not opened(one.answer):
            assert again == one.answer
        elif not any(rule.holds for rule in opened(one.answer)):
            assert again.node == one.answer.node


def test_what_an_operation_has_made_is_in_the_step_that_is_decided_again() -> None:
    made = (WriteDone, WriteUnchanged, Record)
    for one in IN_HANDS:
        again = decide_superseded(one.node, one.said, ENDED_WITH)
        if isinstance(one.said, Succeeded) and isinstance(again, Step):
            assert isinstance(one.answer, Step)
            before, after = (
                [effect for effect in step.effects if isinstance(effect, made)]
                for step in (one.answer, again)
            )
            assert before == after
            held = one.answer.node.state is not State.DONE
            assert again.node.state is (State.DROPPED if held else State.DONE)
            assert again.node.reason == ("cancelled" if held else None)


@pytest.mark.parametrize("mode", [Mode.WAIT, Mode.STOP])
@pytest.mark.parametrize("step", ["cut", Point.PRE_BATCH, Point.PRE_SCALE_IN])
def test_a_step_that_is_held_in_a_traversal_that_has_ended_is_refused_by_its_name(
    step: str, mode: Mode
) -> None:
    held = Node(Operation.UPDATE, State.RUNNING, Phase.ACT, (Rule(point_of(step), mode),))
    again = decide_superseded(held, MustConfirm(step), ENDED_WITH)
    assert isinstance(again, Step)
    assert (again.node.state, again.node.phase) == (State.READY, Phase.ACT)
    assert again.effects == (NotifyType(step, Decision.REJECT, NOBODY, "cancelled"),)


@pytest.mark.parametrize("step", ["cut", Point.PRE_BATCH, Point.PRE_SCALE_IN])
def test_a_step_that_waits_when_its_traversal_ends_is_refused_by_its_name(step: str) -> None:
    acting = Node(Operation.UPDATE, State.RUNNING, Phase.ACT, (Rule(point_of(step)),))
    held = stepped(acting, MustConfirm(step)).node
    told = stepped(held, Superseded("ann", "cancelled")).effects
    assert told == (NotifyType(step, Decision.REJECT, "ann", "cancelled"),)
    assert told[0].as_json() == {
        "step": step, "accepted": False, "by": "ann", "reason": "cancelled",
    }  # fmt: skip


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
    assert stepped(acting, OperationFailed("x")).effects[0] == WriteFailed("x", True)


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


@pytest.mark.parametrize("said", [Succeeded(), OperationFailed("x"), CONTINUE, MustWait(UNTIL)])
def test_what_does_not_fit_is_refused_with_a_reason(said: Input) -> None:
    answer = decide(Node(Operation.CREATE, State.DONE, Phase.POST), said)
    assert isinstance(answer, Refused) and "is not valid for" in answer.reason


def test_a_retry_parks_the_node_and_says_why() -> None:
    acting = stepped(fresh(Operation.CREATE), Claimed(Operation.CREATE)).node
    step = stepped(acting, MustRetry(UNTIL, "busy"))
    assert (step.node.state, step.node.phase) == (State.PARKED, Phase.ACT)
    assert step.effects == (WakeAt(UNTIL), Record(EventKind.RETRYING, "busy"))


def test_what_is_denied_fails_the_node_and_leaves_the_resource() -> None:
    step = stepped(fresh(Operation.UPDATE), OperationForbidden("protected"))
    assert step.node.state is State.FAILED
    assert step.effects == (Record(EventKind.FAILED, "protected"),)


@pytest.mark.parametrize("operation", sorted(set(Operation) - GATES))
def test_only_what_leaves_a_doubt_breaks_a_resource(operation: Operation) -> None:
    acting = stepped(fresh(operation), Claimed(operation)).node
    (written,) = [
        effect
        for effect in stepped(acting, OperationFailed("no")).effects
        if isinstance(effect, WriteFailed)
    ]
    harmless = {Operation.ADOPT, Operation.SUSPEND, Operation.RESUME, Operation.SNAPSHOT}
    assert written.broken is (operation not in harmless)


def test_a_cleanup_that_finds_nothing_to_do_asks_nobody() -> None:
    node = fresh(Operation.DELETE, rule(Point.PRE_UPDATE, short=True))
    assert stepped(node, Claimed(None)).effects == (WriteUnchanged(),)


def confirmed(rule: Rule | None, operation: Operation = Operation.UPDATE) -> Step:
    """What follows when an operation that acts asks to confirm its step `cut`."""
    acting = Node(operation, State.RUNNING, Phase.ACT, (rule,) if rule else ())
    return stepped(acting, MustConfirm("cut"))


CUT = "confirm-cut"


@pytest.mark.parametrize(
    "rule",
    [None, Rule(CUT, Mode.NOTIFY), Rule(CUT, dry=True), Rule(CUT, Mode.STOP, dry=True),
     Rule("confirm-other")],
)  # fmt: skip
def test_a_step_that_nobody_holds_goes_on_at_once(rule: Rule | None) -> None:
    step = confirmed(rule)
    assert (step.node.state, step.node.phase) == (State.READY, Phase.ACT)
    told = NotifyType("cut", Decision.CONTINUE, NOBODY, "no breakpoint blocks it")
    hook = (OpenHook(rule),) if rule and rule.point == CUT else ()
    assert step.effects == (*hook, told)
    again = stepped(claimed_again(step.node), Claimed(Operation.UPDATE))
    assert again.effects == (Call(Operation.UPDATE),)


def test_a_step_that_waits_is_told_what_was_answered() -> None:
    held = confirmed(Rule(CUT))
    assert (held.node.state, held.node.phase) == (State.PARKED, Phase.CONFIRM)
    assert held.effects == (OpenHook(Rule(CUT)),)
    for decision in GOES_ON:
        step = stepped(held.node, Answered(decision, "ann", "fine"))
        assert step.effects == (NotifyType("cut", Decision.CONTINUE, "ann", "fine"),)
    assert stepped(held.node, REJECT).effects == (NotifyType("cut", Decision.REJECT, "ann", "no"),)


@pytest.mark.parametrize(
    ("said", "decision"),
    [
        (Expired(OnTimeout.CONTINUE), Decision.CONTINUE),
        (Expired(OnTimeout.REJECT), Decision.REJECT),
        (Superseded(), Decision.REJECT),
    ],
)
def test_a_step_that_nobody_answered_is_told_so(said: Input, decision: Decision) -> None:
    step = stepped(confirmed(Rule(CUT)).node, said)
    (told,) = step.effects
    assert isinstance(told, NotifyType)
    assert (told.step, told.decision, told.by) == ("cut", decision, NOBODY) and told.reason
    assert (step.node.state, step.node.phase) == (State.READY, Phase.ACT)
    assert isinstance(decide(step.node, Superseded()), Refused)


@pytest.mark.parametrize("operation", [Operation.UPDATE, Operation.SUSPEND])
def test_who_stops_in_the_middle_of_an_operation_leaves_a_resource_that_failed(
    operation: Operation,
) -> None:
    expired = stepped(confirmed(Rule(CUT), operation).node, Expired(OnTimeout.STOP))
    at_once = confirmed(Rule(CUT, Mode.STOP), operation)
    for step, hooks in ((expired, ()), (at_once, (OpenHook(Rule(CUT, Mode.STOP)),))):
        assert (step.node.state, step.node.phase) == (State.STOPPED, Phase.CONFIRM)
        why = step.node.reason or ""
        assert CUT in why
        failed = WriteFailed(why, operation in BREAKING)
        assert step.effects == (*hooks, failed, Record(EventKind.FAILED, why))


@pytest.mark.parametrize("operation", Operation)
def test_who_steps_is_asked_before_each_operation_that_can_be_asked_about(
    operation: Operation,
) -> None:
    step = stepped(replace(fresh(operation), stepping=True), Claimed(operation))
    asked = operation not in GATES | {Operation.ADOPT, Operation.SNAPSHOT}
    assert [rule.stepped for rule in opened(step)] == [True] * asked
    assert step.node.state is (State.PARKED if asked else State.RUNNING)
    if asked:
        on = stepped(claimed_again(stepped(step.node, CONTINUE).node), Claimed(operation))
        assert called(on)


def test_who_steps_is_not_asked_twice_where_a_rule_asks_already() -> None:
    ruled = Rule(Point.PRE_UPDATE, answer_by=("user:bob",))
    node = replace(fresh(Operation.UPDATE, ruled), stepping=True)
    assert stepped(node, Claimed(Operation.UPDATE)).effects == (OpenHook(ruled),)
    assert stepped(node, Claimed(None)).effects == (WriteUnchanged(),)


def test_a_replacement_passes_its_points_in_order_both_ways() -> None:
    before, after = (POINTS[Operation.REPLACE, phase] for phase in (Phase.PRE, Phase.POST))
    node = fresh(Operation.REPLACE, *(Rule(point) for point in (*after, *before)))
    asked: list[str] = []
    step = stepped(node, Claimed(Operation.REPLACE))
    while not called(step):
        asked += [rule.point for rule in opened(step)]
        ready = stepped(step.node, CONTINUE).node
        step = stepped(claimed_again(ready), Claimed(Operation.REPLACE))
    step = stepped(step.node, Succeeded())
    while step.node.state is not State.DONE:
        asked += [rule.point for rule in opened(step)]
        step = stepped(step.node, CONTINUE)
    assert asked == [
        "pre-update", "pre-replace", "pre-create", "post-create", "post-replace", "post-update",
    ]  # fmt: skip


def test_a_gate_is_asked_called_and_done_without_a_word_of_a_resource() -> None:
    guard = Rule(pre_stack(Action.DELETE))
    held = stepped(fresh(Operation.BEGIN, guard), Claimed(Operation.BEGIN))
    assert held.effects == (OpenHook(guard),)
    ready = stepped(held.node, CONTINUE).node
    acting = stepped(claimed_again(ready), Claimed(Operation.BEGIN))
    assert acting.effects == (Call(Operation.BEGIN),)
    done = stepped(acting.node, Succeeded())
    assert done.node.state is State.DONE and done.effects == ()
    refused = stepped(acting.node, OperationFailed("Quota refused it: too many"))
    assert refused.node.reason == "Quota refused it: too many" and refused.effects == ()


def test_an_adoption_asks_where_a_rule_of_the_operator_holds_creates() -> None:
    mine, operators = Rule(Point.PRE_CREATE), Rule(Point.PRE_CREATE, by_operator=True)
    assert not opened(stepped(fresh(Operation.ADOPT, mine), Claimed(Operation.ADOPT)))
    step = stepped(fresh(Operation.ADOPT, operators), Claimed(Operation.ADOPT))
    assert (opened(step), step.node.state) == ([operators], State.PARKED)
    after = Rule(Point.POST_CREATE, by_operator=True)
    acting = replace(fresh(Operation.ADOPT, after), state=State.RUNNING, phase=Phase.ACT)
    assert opened(stepped(acting, Succeeded())) == [after]
