"""The stack's own gates: one node before everything else, one after, where it is asked for."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.rule import Rule
from engine.plan.draft import Plan, PlannedNode
from engine.plan.gates import STACK_TYPE, gated
from engine.topological_order import ordered
from engine.words import (
    STACK_POINTS,
    Action,
    Direction,
    Mode,
    OnTimeout,
    Operation,
    Phase,
    ResourceId,
    StackId,
    post_stack,
    pre_stack,
)

STACK = StackId(UUID(int=77))
BEFORE = Rule(pre_stack(Action.UPDATE))
AFTER = Rule(post_stack(Action.UPDATE))


def plan(*after: set[int], running: tuple[int, ...] = ()) -> Plan:
    """A node for each set of nodes that it waits for."""
    nodes = [
        PlannedNode(
            ResourceId(UUID(int=place)), f"n{place}", "T", Operation.UPDATE, Direction.FORWARD,
            after=set(before), waits_for_running=(3, place) if place in running else None,
        )
        for place, before in enumerate(after)
    ]  # fmt: skip
    return Plan(tuple(nodes), (), "d" * 64, ("stale",))


def gate(
    planned: Plan, *rules: Rule, action: Action = Action.UPDATE, watched: bool = False
) -> Plan:
    return gated(planned, STACK, action, rules, watched=watched)


def shape(planned: Plan) -> dict[str, set[str]]:
    """Names of nodes, those of gates by what they do, and whom they wait for."""
    names = [node.name or node.operation.value for node in planned.nodes]
    return {names[at]: {names[b] for b in one.after} for at, one in enumerate(planned.nodes)}


DIAMOND = plan(set(), {0}, {0}, {1, 2}, set())


def test_what_could_begin_at_once_waits_for_the_gate() -> None:
    assert shape(gate(DIAMOND, BEFORE)) == {
        "n0": {"begin"}, "n1": {"n0"}, "n2": {"n0"}, "n3": {"n1", "n2"}, "n4": {"begin"},
        "begin": set(),
    }  # fmt: skip


def test_the_last_gate_waits_for_what_nobody_else_waits_for() -> None:
    found = shape(gate(DIAMOND, AFTER))
    assert found["finish"] == {"n3", "n4"}
    assert found["n0"] == set()


def test_both_gates_stand_around_everything() -> None:
    found = shape(gate(DIAMOND, AFTER, BEFORE))
    assert found["begin"] == set()
    assert found["finish"] == {"n3", "n4"}


@pytest.mark.parametrize(
    ("rules", "watched", "found"),
    [
        ((), False, {}),
        ((), True, {"begin": set()}),
        ((BEFORE,), False, {"begin": set()}),
        ((AFTER,), False, {"finish": set()}),
        ((BEFORE, AFTER), True, {"begin": set(), "finish": {"begin"}}),
        ((AFTER,), True, {"begin": set(), "finish": {"begin"}}),
    ],
)
def test_an_empty_plan_asks_all_the_same(
    rules: tuple[Rule, ...], watched: bool, found: dict[str, set[str]]
) -> None:
    assert shape(gate(plan(), *rules, watched=watched)) == found


def test_without_rules_or_plug_ins_the_plan_stays_as_it_is() -> None:
    assert gate(DIAMOND) is DIAMOND


@pytest.mark.parametrize("action", Action)
def test_rules_of_other_actions_are_left_out(action: Action) -> None:
    rules = [Rule(point) for point in STACK_POINTS]
    nodes = gated(DIAMOND, STACK, action, rules, watched=False).nodes[len(DIAMOND.nodes) :]
    assert [[rule.point for rule in node.rules] for node in nodes] == [
        [pre_stack(action)], [post_stack(action)],
    ]  # fmt: skip
    others = [rule for rule in rules if not rule.point.endswith(f"-{action.lower()}")]
    assert gated(DIAMOND, STACK, action, others, watched=False) is DIAMOND


def test_a_gate_is_a_node_of_no_resource_that_asks_first() -> None:
    begin, finish = gate(plan(), BEFORE, AFTER, watched=True).nodes
    for node, operation, rule in (
        (begin, Operation.BEGIN, BEFORE),
        (finish, Operation.FINISH, AFTER),
    ):
        assert (node.resource_id, node.name, node.type) == (ResourceId(STACK), "", STACK_TYPE)
        assert (node.operation, node.phase, node.rules) == (operation, Phase.PRE, (rule,))
        assert node.direction is Direction.FORWARD


def test_a_gate_for_plug_ins_alone_has_no_rules() -> None:
    (begin,) = gate(plan(), watched=True).nodes
    assert begin.operation is Operation.BEGIN and begin.rules == ()


def test_nodes_that_wait_for_running_ones_wait_for_the_gate_as_well() -> None:
    found = gate(plan(set(), {0}, running=(0, 1)), BEFORE)
    first, second, begin = found.nodes
    assert (first.after, first.waits_for_running) == ({2}, (3, 0))
    assert (second.after, second.waits_for_running) == ({0}, (3, 1))
    assert begin.waits_for_running is None


def test_the_plan_that_is_given_is_left_as_it_is() -> None:
    before = [set(node.after) for node in DIAMOND.nodes]
    found = gate(DIAMOND, BEFORE, AFTER, watched=True)
    assert [node.after for node in DIAMOND.nodes] == before
    assert (found.rows, found.stale, found.problems) == ((), ("stale",), ())


def test_the_digest_tells_where_the_plan_stops() -> None:
    said = [
        (BEFORE,), (AFTER,), (BEFORE, AFTER), (replace(BEFORE, mode=Mode.STOP),),
        (replace(BEFORE, on_timeout=OnTimeout.CONTINUE),),
    ]  # fmt: skip
    digests = [gate(DIAMOND, *rules).digest for rules in said]
    assert len({DIAMOND.digest, *digests}) == len(said) + 1
    assert gate(DIAMOND, AFTER, BEFORE).digest == digests[2]
    assert gate(replace(DIAMOND, digest="e" * 64), BEFORE).digest not in digests


@pytest.mark.parametrize("rules", [(), (BEFORE,), (BEFORE, AFTER)])
def test_the_digest_is_the_same_whether_plug_ins_watch_or_not(rules: tuple[Rule, ...]) -> None:
    assert gate(DIAMOND, *rules, watched=True).digest == gate(DIAMOND, *rules).digest


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    return plan(*(
        draw(st.sets(st.integers(0, place - 1), max_size=3)) if place else set()
        for place in range(draw(st.integers(0, 10)))
    ))  # fmt: skip


@given(plans(), st.booleans())
def test_everything_comes_between_the_gates_and_in_its_own_order(
    planned: Plan, watched: bool
) -> None:
    found = gate(planned, BEFORE, AFTER, watched=watched)
    order = ordered({place: node.after for place, node in enumerate(found.nodes)})
    begin, finish = len(planned.nodes), len(planned.nodes) + 1
    assert (order[0], order[-1]) == (begin, finish)
    for place, node in enumerate(planned.nodes):
        assert found.nodes[place].after - {begin} == node.after


@pytest.mark.parametrize("by_operator", [True, False])
def test_an_adoption_passes_the_operators_gates_of_a_create(by_operator: bool) -> None:
    rules = [
        Rule(point, by_operator=by_operator)
        for point in (pre_stack(Action.CREATE), post_stack(Action.CREATE))
    ]
    planned = gate(DIAMOND, *rules, action=Action.ADOPT)
    gates = [node.operation for node in planned.nodes if node.type == STACK_TYPE]
    assert gates == ([Operation.BEGIN, Operation.FINISH] if by_operator else [])
