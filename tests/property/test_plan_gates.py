"""The graph between the gates of a stack."""

from hypothesis import given
from hypothesis import strategies as st

from engine.plan.draft import Plan
from engine.topological_order import sort_topologically
from tests.unit.plan.test_gates import AFTER, BEFORE, plan, with_gates


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    return plan(*(
        draw(st.sets(st.integers(0, place - 1), max_size=3)) if place else set()
        for place in range(draw(st.integers(0, 10)))
    ))  # fmt: skip


@given(plans(), st.booleans())
def test_all_nodes_are_between_the_gates_in_their_order(
    planned: Plan, lifecycle_plugins: bool
) -> None:
    found = with_gates(planned, BEFORE, AFTER, lifecycle_plugins=lifecycle_plugins)
    order = sort_topologically({place: node.after for place, node in enumerate(found.nodes)})
    begin, finish = len(planned.nodes), len(planned.nodes) + 1
    assert (order[0], order[-1]) == (begin, finish)
    for place, node in enumerate(planned.nodes):
        assert found.nodes[place].after - {begin} == node.after
