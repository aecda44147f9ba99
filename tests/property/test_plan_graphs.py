"""Bridged edges, descendants and walks of arbitrary graphs."""

from hypothesis import given
from hypothesis import strategies as st

from engine.plan.graph import bridge_edges, downstream
from engine.topological_order import sort_topologically


@st.composite
def graphs(draw: st.DrawFn) -> dict[int, set[int]]:
    size = draw(st.integers(0, 12))
    return {
        node: draw(st.sets(st.integers(0, node - 1), max_size=4)) if node else set()
        for node in range(size)
    }


@given(graphs())
def test_a_traversal_keeps_every_edge(requires: dict[int, set[int]]) -> None:
    place = {node: index for index, node in enumerate(sort_topologically(requires))}
    assert len(place) == len(requires)
    assert all(place[b] < place[n] for n, before in requires.items() for b in before)


@given(graphs(), st.data())
def test_bridged_edges_equal_paths_through_removed_nodes(
    requires: dict[int, set[int]], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(sorted(requires)))) if requires else set()
    result = bridge_edges(requires, chosen)
    for node in chosen:
        reached, queue = set(), list(requires[node])
        for one in queue:
            if one in chosen:
                reached.add(one)
            else:
                queue.extend(requires[one])
        assert result[node] == reached


@given(graphs(), st.data())
def test_downstream_is_the_set_of_transitive_dependents(
    requires: dict[int, set[int]], data: st.DataObject
) -> None:
    start = data.draw(st.sets(st.sampled_from(sorted(requires)))) if requires else set()
    found = downstream(requires, start)
    expected = set(start)
    while more := {n for n, b in requires.items() if b & expected} - expected:
        expected |= more
    assert found == expected
