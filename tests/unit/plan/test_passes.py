"""Plans: what is in the graph, what is not, and what comes after what."""

from itertools import count
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.rule import Rule
from engine.hooks.rule_matching import Breakpoints
from engine.hooks.rule_reader import Declaration
from engine.hot.definition.stack import ResourceDefinition
from engine.plan.draft import Existing, Plan
from engine.plan.graph import bridged, downstream
from engine.plan.passes import plan
from engine.topological_order import ordered
from engine.words import (
    Direction,
    Operation,
    Phase,
    Point,
    ResourceAction,
    ResourceId,
    Status,
)


def wanted(**requires: str) -> dict[str, ResourceDefinition]:
    """``b="a"``: b reads a; a digest of its own unless changed."""
    return {
        name: ResourceDefinition(
            name, "T", {}, None, {}, frozenset(before.split()), frozenset(before.split()),
            "Delete", "", f"digest of {name}", f"resources.{name}",
        )
        for name, before in requires.items()
    }  # fmt: skip


def row(name: str, number: int, requires: tuple[int, ...] = (), **changed: object) -> Existing:
    fields: dict[str, object] = {
        "id": ResourceId(UUID(int=number)),
        "name": name,
        "type": "T",
        "action": ResourceAction.CREATE,
        "status": Status.COMPLETE,
        "digest": f"digest of {name}",
        "requires": tuple(ResourceId(UUID(int=one)) for one in requires),
    }
    return Existing(**{**fields, **changed})  # type: ignore[arg-type]


def planned(
    definition: dict[str, ResourceDefinition],
    *rows: Existing,
    rules: dict[str, Point] | None = None,
) -> Plan:
    said = [Declaration(name, Rule(point), "") for name, point in (rules or {}).items()]
    ids = count(1000)
    return plan(definition, rows, Breakpoints(said).of, lambda: ResourceId(UUID(int=next(ids))))


def shape(result: Plan) -> dict[tuple[str, str], set[tuple[str, str]]]:
    names = [(node.name, node.direction.value) for node in result.nodes]
    return {names[i]: {names[b] for b in node.after} for i, node in enumerate(result.nodes)}


def test_a_create_holds_every_resource_after_what_it_requires() -> None:
    result = planned(wanted(a="", b="a", c="a b"))
    assert shape(result) == {
        ("a", "forward"): set(),
        ("b", "forward"): {("a", "forward")},
        ("c", "forward"): {("a", "forward"), ("b", "forward")},
    }
    assert {node.phase for node in result.nodes} == {Phase.ACT}
    assert [r.name for r in result.rows] == ["a", "b", "c"]
    assert set(result.rows[2].requires) == {result.rows[0].id, result.rows[1].id}


def test_an_update_that_changes_nothing_is_empty() -> None:
    assert planned(wanted(a="", b="a"), row("a", 1), row("b", 2, (1,))).nodes == ()


def test_only_what_changed_and_what_reads_it_is_planned() -> None:
    rows = (row("a", 1), row("b", 2, (1,), digest="old"), row("c", 3, (2,)), row("d", 4))
    result = planned(wanted(a="", b="a", c="b", d=""), *rows)
    assert {node.name for node in result.nodes} == {"b", "c"}
    assert shape(result)["c", "forward"] == {("b", "forward")}
    assert shape(result)["b", "cleanup"] == {("b", "forward"), ("c", "forward"), ("c", "cleanup")}


def test_order_holds_through_resources_that_are_not_in_the_plan() -> None:
    rows = (row("a", 1, digest="old"), row("b", 2, (1,)), row("c", 3, (2,), digest="old"))
    definition = wanted(a="", b="", c="")
    definition["b"].requires = frozenset("a")
    definition["c"].requires = frozenset("b")
    result = planned(definition, *rows)
    assert ("b", "forward") not in shape(result)
    assert shape(result)["c", "forward"] == {("a", "forward")}


def test_what_nobody_wants_goes_after_whatever_used_it() -> None:
    rows = (row("a", 1), row("b", 2, (1,)), row("c", 3, (2,)))
    assert shape(planned({}, *rows)) == {
        ("a", "cleanup"): {("b", "cleanup")},
        ("b", "cleanup"): {("c", "cleanup")},
        ("c", "cleanup"): set(),
    }


def test_a_resource_that_lost_its_user_goes_after_the_user_has_moved() -> None:
    rows = (row("a", 1), row("b", 2, (1,), digest="old"))
    assert shape(planned(wanted(b=""), *rows))["a", "cleanup"] == {
        ("b", "forward"),
        ("b", "cleanup"),
    }


def test_an_unfinished_or_broken_resource_is_planned_again() -> None:
    unfinished = row("a", 1, action=ResourceAction.INIT)
    failed = row("b", 2, status=Status.FAILED)
    result = planned(wanted(a="", b=""), unfinished, failed)
    operations = {n.name: n.operation for n in result.nodes if n.direction is Direction.FORWARD}
    assert operations == {"a": Operation.CREATE, "b": Operation.UPDATE}


def test_a_short_pre_update_hook_plans_what_does_not_change() -> None:
    said = Declaration("a", Rule(Point.PRE_UPDATE, short=True), "")
    result = plan(
        wanted(a=""), [row("a", 1)], Breakpoints([said]).of, lambda: ResourceId(UUID(int=9))
    )
    assert [node.name for node in result.nodes if node.direction is Direction.FORWARD] == ["a"]


def test_a_breakpoint_before_the_operation_begins_in_the_phase_before_it() -> None:
    result = planned(wanted(a="", b=""), rules={"a": Point.PRE_CREATE})
    assert {node.name: node.phase for node in result.nodes} == {"a": Phase.PRE, "b": Phase.ACT}


def test_a_row_that_left_the_template_still_asks_before_it_is_deleted() -> None:
    kept = row("a", 1, rules=(Rule(Point.PRE_DELETE),))
    (node,) = planned({}, kept).nodes
    assert node.rules == (Rule(Point.PRE_DELETE),) and node.phase is Phase.PRE


def test_an_operation_that_runs_still_is_waited_for() -> None:
    result = planned(wanted(a=""), row("a", 1, running=(3, 7), action=ResourceAction.INIT))
    forward = next(node for node in result.nodes if node.direction is Direction.FORWARD)
    assert forward.waits_for_running == (3, 7) and forward.phase is Phase.PRE


def test_rows_that_require_each_other_can_still_be_cleared_away() -> None:
    result = planned({}, row("a", 1, (2,)), row("b", 2, (1,)))
    order = {index: node.after for index, node in enumerate(result.nodes)}
    assert len(ordered(order)) == 2


def test_the_digest_is_of_what_is_done_not_of_the_order_it_is_written_in() -> None:
    one, other = planned(wanted(a="", b="a")), planned(dict(reversed(wanted(a="", b="a").items())))
    assert one.digest == other.digest
    assert planned(wanted(a="")).digest != one.digest


@st.composite
def graphs(draw: st.DrawFn) -> dict[int, set[int]]:
    size = draw(st.integers(0, 12))
    return {
        node: draw(st.sets(st.integers(0, node - 1), max_size=4)) if node else set()
        for node in range(size)
    }


@given(graphs())
def test_a_walk_keeps_every_edge(requires: dict[int, set[int]]) -> None:
    place = {node: index for index, node in enumerate(ordered(requires))}
    assert len(place) == len(requires)
    assert all(place[b] < place[n] for n, before in requires.items() for b in before)


@given(graphs(), st.data())
def test_bridged_edges_say_what_paths_through_the_left_out_nodes_say(
    requires: dict[int, set[int]], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(sorted(requires)))) if requires else set()
    result = bridged(requires, chosen)
    for node in chosen:
        reached, queue = set(), list(requires[node])
        for one in queue:
            if one in chosen:
                reached.add(one)
            else:
                queue.extend(requires[one])
        assert result[node] == reached


@given(graphs(), st.data())
def test_downstream_is_all_that_requires_it_in_the_end(
    requires: dict[int, set[int]], data: st.DataObject
) -> None:
    start = data.draw(st.sets(st.sampled_from(sorted(requires)))) if requires else set()
    found = downstream(requires, start)
    expected = set(start)
    while more := {n for n, b in requires.items() if b & expected} - expected:
        expected |= more
    assert found == expected
