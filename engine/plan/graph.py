"""Graph algorithms: reachability, and edges through omitted nodes.

`requires` has the edges: for each node, the nodes that precede it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from engine.topological_order import sort_topologically

Key = TypeVar("Key", bound=object)


def bridge_edges(
    requires: Mapping[Key, Collection[Key]], chosen: Collection[Key]
) -> dict[Key, set[Key]]:
    """Return for each chosen node the nearest chosen nodes that it requires, through other nodes.

    `requires` must be acyclic and contain all chosen nodes.
    """
    desired = frozenset(chosen)
    if len(desired) == len(requires):
        return {key: set(before) for key, before in requires.items()}
    nearest: dict[Key, set[Key]] = {}
    for key in sort_topologically(requires):
        found: set[Key] = set()
        for one in requires[key]:
            if one in desired:
                found.add(one)
            else:
                found |= nearest[one]
        nearest[key] = found
    return {key: nearest[key] for key in requires if key in desired}


def upstream(
    requires: Callable[[Key], Collection[Key]], start: Iterable[Key], order: Iterable[Key]
) -> dict[Key, Collection[Key]]:
    """Return the part of the graph that `start` requires, directly or not, in this order of all
    nodes.
    """
    reached = set(start)
    queue = list(reached)
    for key in queue:
        fresh = [one for one in requires(key) if one not in reached]
        reached.update(fresh)
        queue.extend(fresh)
    return {key: requires(key) for key in order if key in reached}


def downstream(requires: Mapping[Key, Iterable[Key]], start: Iterable[Key]) -> set[Key]:
    """Return `start` and all nodes that require any of it, directly or not."""
    required_by: dict[Key, list[Key]] = {}
    for key, before in requires.items():
        for one in before:
            required_by.setdefault(one, []).append(key)
    reached = set(start)
    queue = list(reached)
    for key in queue:
        fresh = [after for after in required_by.get(key, ()) if after not in reached]
        reached.update(fresh)
        queue.extend(fresh)
    return reached
