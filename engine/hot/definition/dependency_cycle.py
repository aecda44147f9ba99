"""Detection of circular dependencies between resources."""

from collections.abc import Iterable, Mapping


def find_cycle(requires: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names of one cycle, the first repeated at the end, or an empty list.

    Kahn's algorithm removes everything outside of cycles; only the rest is searched.
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
    # Imported here: networkx takes a third of a server's start time, and cycles are rare.
    import networkx

    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_edges_from(
        (name, one) for name in waits for one in sorted(requires[name]) if one in waits
    )
    edges = networkx.find_cycle(graph)
    return [edges[0][0], *(edge[1] for edge in edges)]
