"""Gates of the whole stack: one node before all others and one after them, if a rule needs it."""

from dataclasses import replace
from uuid import UUID

import pytest

from engine.hooks.rule import Rule
from engine.plan.draft import STACK_TYPE, Plan, PlannedNode
from engine.plan.gates import add_gates
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
            ResourceId(UUID(int=position)), f"n{position}", "T", Operation.UPDATE,
            Direction.FORWARD,
            after=set(before), waits_for_running=(3, position) if position in running else None,
        )
        for position, before in enumerate(after)
    ]  # fmt: skip
    return Plan(tuple(nodes), (), "d" * 64, ("stale",))


def with_gates(
    planned: Plan, *rules: Rule, action: Action = Action.UPDATE, lifecycle_plugins: bool = False
) -> Plan:
    return add_gates(planned, STACK, action, rules, lifecycle_plugins=lifecycle_plugins)


def shape(planned: Plan) -> dict[str, set[str]]:
    """Names of nodes, with the operation as the name of gates, and the nodes that they wait for."""
    names = [node.name or node.operation.value for node in planned.nodes]
    return {names[at]: {names[b] for b in one.after} for at, one in enumerate(planned.nodes)}


DIAMOND = plan(set(), {0}, {0}, {1, 2}, set())


def test_nodes_without_dependencies_wait_for_the_first_gate() -> None:
    assert shape(with_gates(DIAMOND, BEFORE)) == {
        "n0": {"begin"}, "n1": {"n0"}, "n2": {"n0"}, "n3": {"n1", "n2"}, "n4": {"begin"},
        "begin": set(),
    }  # fmt: skip


def test_the_last_gate_waits_for_nodes_without_dependents() -> None:
    found = shape(with_gates(DIAMOND, AFTER))
    assert found["finish"] == {"n3", "n4"}
    assert found["n0"] == set()


def test_both_gates_enclose_all_nodes() -> None:
    found = shape(with_gates(DIAMOND, AFTER, BEFORE))
    assert found["begin"] == set()
    assert found["finish"] == {"n3", "n4"}


@pytest.mark.parametrize(
    ("rules", "lifecycle_plugins", "found"),
    [
        ((), False, {}),
        ((), True, {"begin": set()}),
        ((BEFORE,), False, {"begin": set()}),
        ((AFTER,), False, {"finish": set()}),
        ((BEFORE, AFTER), True, {"begin": set(), "finish": {"begin"}}),
        ((AFTER,), True, {"begin": set(), "finish": {"begin"}}),
    ],
)
def test_an_empty_plan_has_gates(
    rules: tuple[Rule, ...], lifecycle_plugins: bool, found: dict[str, set[str]]
) -> None:
    assert shape(with_gates(plan(), *rules, lifecycle_plugins=lifecycle_plugins)) == found


def test_without_rules_or_plugins_the_plan_is_unchanged() -> None:
    assert with_gates(DIAMOND) is DIAMOND


@pytest.mark.parametrize("action", Action)
def test_rules_of_other_actions_are_ignored(action: Action) -> None:
    rules = [Rule(point) for point in STACK_POINTS]
    nodes = add_gates(DIAMOND, STACK, action, rules, lifecycle_plugins=False).nodes[
        len(DIAMOND.nodes) :
    ]
    assert [[rule.point for rule in node.rules] for node in nodes] == [
        [pre_stack(action)], [post_stack(action)],
    ]  # fmt: skip
    others = [rule for rule in rules if not rule.point.endswith(f"-{action.lower()}")]
    assert add_gates(DIAMOND, STACK, action, others, lifecycle_plugins=False) is DIAMOND


def test_a_gate_is_a_node_without_a_resource_and_starts_with_its_hooks() -> None:
    begin, finish = with_gates(plan(), BEFORE, AFTER, lifecycle_plugins=True).nodes
    for node, operation, rule in (
        (begin, Operation.BEGIN, BEFORE),
        (finish, Operation.FINISH, AFTER),
    ):
        assert (node.resource_id, node.name, node.type) == (ResourceId(STACK), "", STACK_TYPE)
        assert (node.operation, node.phase, node.rules) == (operation, Phase.PRE, (rule,))
        assert node.direction is Direction.FORWARD


def test_a_gate_for_plug_ins_alone_has_no_rules() -> None:
    (begin,) = with_gates(plan(), lifecycle_plugins=True).nodes
    assert begin.operation is Operation.BEGIN and begin.rules == ()


def test_nodes_that_wait_for_running_ones_wait_for_the_gate() -> None:
    found = with_gates(plan(set(), {0}, running=(0, 1)), BEFORE)
    first, second, begin = found.nodes
    assert (first.after, first.waits_for_running) == ({2}, (3, 0))
    assert (second.after, second.waits_for_running) == ({0}, (3, 1))
    assert begin.waits_for_running is None


def test_the_given_plan_is_not_modified() -> None:
    before = [set(node.after) for node in DIAMOND.nodes]
    found = with_gates(DIAMOND, BEFORE, AFTER, lifecycle_plugins=True)
    assert [node.after for node in DIAMOND.nodes] == before
    assert (found.rows, found.out_of_date, found.problems) == ((), ("stale",), ())


def test_the_digest_depends_on_the_gates() -> None:
    rule_sets = [
        (BEFORE,), (AFTER,), (BEFORE, AFTER), (replace(BEFORE, mode=Mode.STOP),),
        (replace(BEFORE, on_timeout=OnTimeout.CONTINUE),),
    ]  # fmt: skip
    digests = [with_gates(DIAMOND, *rules).digest for rules in rule_sets]
    assert len({DIAMOND.digest, *digests}) == len(rule_sets) + 1
    assert with_gates(DIAMOND, AFTER, BEFORE).digest == digests[2]
    assert with_gates(replace(DIAMOND, digest="e" * 64), BEFORE).digest not in digests


@pytest.mark.parametrize("rules", [(), (BEFORE,), (BEFORE, AFTER)])
def test_the_digest_does_not_depend_on_plugins(rules: tuple[Rule, ...]) -> None:
    assert (
        with_gates(DIAMOND, *rules, lifecycle_plugins=True).digest
        == with_gates(DIAMOND, *rules).digest
    )


@pytest.mark.parametrize("by_operator", [True, False])
def test_operator_rules_for_creates_apply_to_an_adoption(by_operator: bool) -> None:
    rules = [
        Rule(point, by_operator=by_operator)
        for point in (pre_stack(Action.CREATE), post_stack(Action.CREATE))
    ]
    planned = with_gates(DIAMOND, *rules, action=Action.ADOPT)
    gates = [node.operation for node in planned.nodes if node.type == STACK_TYPE]
    assert gates == ([Operation.BEGIN, Operation.FINISH] if by_operator else [])
