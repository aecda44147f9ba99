"""Plans: the nodes of the graph and their order."""

from itertools import count
from uuid import UUID

import pytest

from engine.hooks.precedence import Breakpoints
from engine.hooks.rule import Rule
from engine.hooks.rule_reader import Declaration
from engine.hot.definition.stack import ResourceDefinition
from engine.plan.cleanup import MAX_DIRECT_EDGES
from engine.plan.draft import ExistingResource, Plan
from engine.plan.passes import plan
from engine.topological_order import sort_topologically
from engine.words import (
    DeletionPolicy,
    Direction,
    Operation,
    Phase,
    Point,
    ResourceAction,
    ResourceId,
    Status,
)


def defined(**requires: str) -> dict[str, ResourceDefinition]:
    """``b="a"``: b reads a. The definition has its own digest unless changed."""
    return {
        name: ResourceDefinition(
            name, "T", {}, None, {}, frozenset(before.split()), frozenset(before.split()),
            "Delete", "", f"digest of {name}", f"resources.{name}",
        )
        for name, before in requires.items()
    }  # fmt: skip


def row(
    name: str, number: int, requires: tuple[int, ...] = (), **changed: object
) -> ExistingResource:
    fields: dict[str, object] = {
        "id": ResourceId(UUID(int=number)),
        "name": name,
        "type": "T",
        "action": ResourceAction.CREATE,
        "status": Status.COMPLETE,
        "digest": f"digest of {name}",
        "requires": tuple(ResourceId(UUID(int=one)) for one in requires),
    }
    return ExistingResource(**{**fields, **changed})  # type: ignore[arg-type]


def planned(
    definition: dict[str, ResourceDefinition],
    *rows: ExistingResource,
    rules: dict[str, Point] | None = None,
) -> Plan:
    declarations = [Declaration(name, Rule(point), "") for name, point in (rules or {}).items()]
    ids = count(1000)
    return plan(
        definition,
        rows,
        Breakpoints(declarations).find_rules,
        lambda: ResourceId(UUID(int=next(ids))),
    )


def shape(result: Plan) -> dict[tuple[str, str], set[tuple[str, str]]]:
    names = [(node.name, node.direction.value) for node in result.nodes]
    return {names[i]: {names[b] for b in node.after} for i, node in enumerate(result.nodes)}


def test_a_create_orders_resources_after_their_dependencies() -> None:
    result = planned(defined(a="", b="a", c="a b"))
    assert shape(result) == {
        ("a", "forward"): set(),
        ("b", "forward"): {("a", "forward")},
        ("c", "forward"): {("a", "forward"), ("b", "forward")},
    }
    assert {node.phase for node in result.nodes} == {Phase.EXECUTE}
    assert [r.name for r in result.rows] == ["a", "b", "c"]
    assert set(result.rows[2].requires) == {result.rows[0].id, result.rows[1].id}


def test_an_unchanged_update_has_no_nodes() -> None:
    assert planned(defined(a="", b="a"), row("a", 1), row("b", 2, (1,))).nodes == ()


def test_changed_resources_and_their_readers_are_planned() -> None:
    rows = (row("a", 1), row("b", 2, (1,), digest="old"), row("c", 3, (2,)), row("d", 4))
    result = planned(defined(a="", b="a", c="b", d=""), *rows)
    assert {node.name for node in result.nodes} == {"b", "c"}
    assert shape(result)["c", "forward"] == {("b", "forward")}
    assert shape(result)["b", "cleanup"] == {("b", "forward"), ("c", "forward"), ("c", "cleanup")}


def test_order_holds_across_resources_that_are_not_in_the_plan() -> None:
    rows = (row("a", 1, digest="old"), row("b", 2, (1,)), row("c", 3, (2,), digest="old"))
    definition = defined(a="", b="", c="")
    definition["b"].requires = frozenset("a")
    definition["c"].requires = frozenset("b")
    result = planned(definition, *rows)
    assert ("b", "forward") not in shape(result)
    assert shape(result)["c", "forward"] == {("a", "forward")}


def test_removed_resources_are_deleted_after_their_dependents() -> None:
    rows = (row("a", 1), row("b", 2, (1,)), row("c", 3, (2,)))
    assert shape(planned({}, *rows)) == {
        ("a", "cleanup"): {("b", "cleanup")},
        ("b", "cleanup"): {("c", "cleanup")},
        ("c", "cleanup"): set(),
    }


def test_a_removed_resource_is_deleted_after_its_former_reader_is_updated() -> None:
    rows = (row("a", 1), row("b", 2, (1,), digest="old"))
    assert shape(planned(defined(b=""), *rows))["a", "cleanup"] == {
        ("b", "forward"),
        ("b", "cleanup"),
    }


def test_an_incomplete_or_tainted_resource_is_planned_again() -> None:
    unfinished = row("a", 1, action=ResourceAction.INIT)
    failed = row("b", 2, status=Status.FAILED)
    result = planned(defined(a="", b=""), unfinished, failed)
    operations = {n.name: n.operation for n in result.nodes if n.direction is Direction.FORWARD}
    assert operations == {"a": Operation.CREATE, "b": Operation.UPDATE}


def test_a_pre_update_hook_in_heats_form_plans_an_unchanged_resource() -> None:
    declarations = Declaration("a", Rule(Point.PRE_UPDATE, short=True), "")
    result = plan(
        defined(a=""),
        [row("a", 1)],
        Breakpoints([declarations]).find_rules,
        lambda: ResourceId(UUID(int=9)),
    )
    assert [node.name for node in result.nodes if node.direction is Direction.FORWARD] == ["a"]


def test_a_node_with_a_breakpoint_before_its_operation_starts_in_phase_pre() -> None:
    result = planned(defined(a="", b=""), rules={"a": Point.PRE_CREATE})
    assert {node.name: node.phase for node in result.nodes} == {"a": Phase.PRE, "b": Phase.EXECUTE}


def test_a_removed_resource_keeps_its_delete_hook() -> None:
    kept = row("a", 1, rules=(Rule(Point.PRE_DELETE),))
    (node,) = planned({}, kept).nodes
    assert node.rules == (Rule(Point.PRE_DELETE),) and node.phase is Phase.PRE


def test_a_node_waits_for_a_running_operation() -> None:
    result = planned(defined(a=""), row("a", 1, running=(3, 7), action=ResourceAction.INIT))
    forward = next(node for node in result.nodes if node.direction is Direction.FORWARD)
    assert forward.waits_for_running == (3, 7) and forward.phase is Phase.PRE


def test_resources_that_require_each_other_can_be_deleted() -> None:
    result = planned({}, row("a", 1, (2,)), row("b", 2, (1,)))
    order = {index: node.after for index, node in enumerate(result.nodes)}
    assert len(sort_topologically(order)) == 2


def test_the_digest_does_not_depend_on_the_order_of_the_document() -> None:
    one, other = (
        planned(defined(a="", b="a")),
        planned(dict(reversed(defined(a="", b="a").items()))),
    )
    assert one.digest == other.digest
    assert planned(defined(a="")).digest != one.digest


def changed_and_removed(changed: int, removed: int) -> Plan:
    """Independent resources, of which an update changes some and removes the others."""
    names = [f"c{number}" for number in range(changed)]
    rows = [row(name, number, digest="old") for number, name in enumerate(names)]
    rows += [row(f"r{number}", 10_000 + number) for number in range(removed)]
    return planned(defined(**dict.fromkeys(names, "")), *rows)


def nodes_before(result: Plan) -> dict[int, set[int]]:
    """The nodes for which each node waits, directly or not."""
    found: dict[int, set[int]] = {}
    for index in sort_topologically({at: node.after for at, node in enumerate(result.nodes)}):
        after = result.nodes[index].after
        found[index] = after.union(*(found[one] for one in after))
    return found


@pytest.mark.parametrize(
    ("changed", "removed", "barriers"), [(3, 2, 0), (100, 10, 0), (100, 11, 1), (1000, 1000, 1)]
)
def test_removed_resources_are_deleted_after_everything_else(
    changed: int, removed: int, barriers: int
) -> None:
    result = changed_and_removed(changed, removed)
    before = nodes_before(result)
    forward = {at for at, node in enumerate(result.nodes) if node.direction is Direction.FORWARD}
    deletes = [at for at, node in enumerate(result.nodes) if node.name.startswith("r")]
    assert (len(forward), len(deletes)) == (changed, removed)
    assert all(before[at] >= forward for at in deletes)
    assert sum(node.operation is Operation.FINISH for node in result.nodes) == barriers
    edges = sum(len(node.after) for node in result.nodes)
    assert edges <= 2 * changed + removed + MAX_DIRECT_EDGES


def test_a_barrier_delays_nothing_but_deletes_of_removed_resources() -> None:
    result = changed_and_removed(100, 100)
    (barrier,) = [at for at, node in enumerate(result.nodes) if not node.name]
    waiting = {node.name for node in result.nodes if barrier in node.after}
    assert waiting == {f"r{number}" for number in range(100)}
    (gate,) = [node for node in result.nodes if not node.name]
    assert not gate.is_gate and not gate.rules


def test_a_replaced_resource_is_deleted_before_unrelated_changes_end() -> None:
    """As in Heat: after its users have switched."""
    result = planned(defined(a="", b=""), row("a", 1, digest="old"), row("b", 2, digest="old"))
    assert shape(result)["a", "cleanup"] == {("a", "forward")}


def added_by(result: Plan) -> dict[tuple[str, str], str | None]:
    """The forward node that adds each cleanup node; None: it is there from the start."""
    return {
        (node.name, node.operation.value):
            None if node.added_by is None else result.nodes[node.added_by].name
        for node in result.nodes if node.direction is Direction.CLEANUP
    }  # fmt: skip


def test_the_delete_of_a_resource_is_added_by_its_replacement() -> None:
    rows = (row("a", 1, digest="old"), row("b", 2))
    assert added_by(planned(defined(a=""), *rows)) == {("a", "delete"): "a", ("b", "delete"): None}


def test_a_snapshot_is_added_with_the_delete_that_follows_it() -> None:
    kept = row("a", 1, digest="old", deletion_policy=DeletionPolicy.SNAPSHOT)
    expected = {("a", "snapshot"): "a", ("a", "delete"): "a"}
    assert added_by(planned(defined(a=""), kept)) == expected


def test_what_an_earlier_operation_may_replace_is_deleted_by_a_node_from_the_start() -> None:
    """Of this change, the node of the resource may then have nothing to replace."""
    running = row("a", 1, digest="old", running=(1, 0))
    assert added_by(planned(defined(a=""), running)) == {("a", "delete"): None}


def test_what_was_replaced_before_is_deleted_by_a_node_from_the_start() -> None:
    rows = (row("a", 1, replaced_by=ResourceId(UUID(int=2))), row("a", 2, digest="old"))
    result = planned(defined(a=""), *rows)
    deletes = {node.resource_id.int: node.added_by is None for node in result.nodes
               if node.direction is Direction.CLEANUP}  # fmt: skip
    assert deletes == {1: True, 2: False}


def test_chains_of_removed_resources_wait_once() -> None:
    result = planned(defined(c=""), row("a", 1), row("b", 2, (1,)), row("c", 3, digest="old"))
    assert shape(result)["a", "cleanup"] == {("b", "cleanup")}
    assert shape(result)["b", "cleanup"] == {("c", "forward")}
