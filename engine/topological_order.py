"""Topological order of a graph, and its cycles."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

Key = TypeVar("Key", bound=object)


def sort_topologically(requires: Mapping[Key, Iterable[Key]]) -> list[Key]:
    """Return all nodes, each after those it requires; ties in the order of `requires`.

    Nodes on a cycle and those behind one are omitted: a shorter result means a cycle.
    """
    sorter: TopologicalSorter[Key] = TopologicalSorter(dict.fromkeys(requires, ()))
    for key, before in requires.items():
        sorter.add(key, *before)
    with suppress(CycleError):  # the sorter still returns the nodes outside of cycles
        sorter.prepare()
    order: list[Key] = []
    while ready := sorter.get_ready():
        order += ready
        sorter.done(*ready)
    return order


def find_cycle(requires: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names of one cycle, the first repeated at the end, or an empty list.

    Only the nodes on cycles and behind them are searched.
    """
    acyclic = set(sort_topologically(requires))
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
