"""Topological order of a graph, by the standard library."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

Key = TypeVar("Key", bound=object)


def ordered(requires: Mapping[Key, Iterable[Key]]) -> list[Key]:
    """Return all nodes, each after those it requires; ties in the given order.

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
