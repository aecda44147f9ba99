"""Whether what resources require of each other can be put in an order."""

from collections.abc import Iterable, Mapping


def find_circle(requires: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names of one circle, the first again at the end, or an empty list.

    Walks away whatever waits for nothing (Kahn); only what is left is searched for the circle.
    """
    waits: dict[str, int] = {}
    dependents: dict[str, list[str]] = {}
    ready: list[str] = []
    for name, needed in requires.items():
        count = 0
        for one in needed:
            dependents.setdefault(one, []).append(name)
            count += 1
        if count:
            waits[name] = count
        else:
            ready.append(name)
    while ready:
        for dependent in dependents.get(ready.pop(), ()):
            waits[dependent] -= 1
            if not waits[dependent]:
                del waits[dependent]
                ready.append(dependent)
    if not waits:
        return []
    # Only here: it takes a third of a server's start to read, and nearly nobody writes a circle.
    import networkx

    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_edges_from(
        (name, one) for name in waits for one in sorted(requires[name]) if one in waits
    )
    edges = networkx.find_cycle(graph)
    return [edges[0][0], *(edge[1] for edge in edges)]
