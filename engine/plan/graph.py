"""Graphs and nothing else: order, and what comes before what through nodes left out.

Edges are given as ``requires``: for each node the nodes it comes after.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=object)


def ordered(requires: Mapping[Key, Collection[Key]]) -> list[Key]:
    """All nodes, each after those it requires; ties in the order given (Kahn's walk).

    Nodes on a cycle, and those behind one, are left out: a shorter answer means a cycle.
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
    """For each chosen node the nearest chosen ones it requires, through those not chosen.

    ``requires`` must be free of cycles. Chosen nodes must be keys of it.
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
    """The part of the graph that `start` rests on, directly or not, in the order of the whole."""
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
    """`start` and everything that requires any of it, directly or not."""
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
