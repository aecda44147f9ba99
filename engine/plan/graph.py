"""Graph algorithms: topological order, reachability, and edges through omitted nodes.

Edges are given as `requires`: for each node the nodes it comes after.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=object)


def ordered(requires: Mapping[Key, Collection[Key]]) -> list[Key]:
    """Return all nodes, each after those it requires; ties in the given order (Kahn's algorithm).

    Nodes on a cycle and those behind one are omitted: a shorter result means a cycle.
    """
    waits = {key: len(before) for key, before in requires.items()}
    required_by: dict[Key, list[Key]] = {key: [] for key in requires}
    for key, before in requires.items():
        for one in before:
            required_by[one].append(key)
    done = [key for key, count in waits.items() if count == 0]
    for key in done:
        for after in required_by[key]:
            waits[after] -= 1
            if waits[after] == 0:
                done.append(after)
    return done


def bridged(
    requires: Mapping[Key, Collection[Key]], chosen: Collection[Key]
) -> dict[Key, set[Key]]:
    """Return for each chosen node the nearest chosen nodes that it requires, through other nodes.

    `requires` must be acyclic and contain all chosen nodes.
    """
    wanted = frozenset(chosen)
    if len(wanted) == len(requires):
        return {key: set(before) for key, before in requires.items()}
    nearest: dict[Key, set[Key]] = {}
    for key in ordered(requires):
        found: set[Key] = set()
        for one in requires[key]:
            if one in wanted:
                found.add(one)
            else:
                found |= nearest[one]
        nearest[key] = found
    return {key: nearest[key] for key in requires if key in wanted}


def upstream(
    requires: Mapping[Key, Collection[Key]], start: Iterable[Key]
) -> dict[Key, Collection[Key]]:
    """Return the part of the graph that `start` requires, directly or not, in the order of the
    whole.
    """
    reached = set(start)
    queue = list(reached)
    for key in queue:
        fresh = [one for one in requires[key] if one not in reached]
        reached.update(fresh)
        queue.extend(fresh)
    if len(reached) == len(requires):
        return dict(requires)
    return {key: requires[key] for key in requires if key in reached}


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
