"""Detection of circular dependencies between resources."""

from collections.abc import Iterable, Mapping

from engine.topological_order import ordered


def find_cycle(requires: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names of one cycle, the first repeated at the end, or an empty list.

    Only the nodes on cycles and behind them are searched.
    """
    acyclic = set(ordered(requires))
    waits = dict.fromkeys(name for name in requires if name not in acyclic)
    if not waits:
        return []
    # Imported here: networkx takes a third of a server's start time, and cycles are rare.
    import networkx

    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_edges_from(
        (name, one) for name in waits for one in sorted(requires[name]) if one in waits
    )
    edges = networkx.find_cycle(graph)
    return [edges[0][0], *(edge[1] for edge in edges)]
