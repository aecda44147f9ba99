"""A stack's graph as text: a tree, or a drawing for Graphviz. Formatting only."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from hub.cli import show

Json = Any
#: Indentation ends here, not the tree.
DEEPEST = 24
#: Graphviz's colours for the states of a node.
COLOUR = {
    "done": "palegreen",
    "running": "lightblue",
    "parked": "khaki",
    "failed": "salmon",
    "stopped": "plum",
    "dropped": "lightgrey",
}


def tree(name: str, graph: Mapping[str, Json]) -> Text:
    """A node is indented under the last one it comes after, with the others named beside it:
    each node is there once. What is inside of its stack comes behind it, deeper.
    """
    inside = {one["stack_id"]: one for one in graph.get("stacks", ())}
    traversal = graph["traversal"]
    lines = [Text(show.plain(f"{name}  {traversal['action']} {traversal['state']}"), "bold")]
    return Text("\n").join([*lines, *_lines(graph, inside, 1)])


def _lines(
    graph: Mapping[str, Json], inside: Mapping[str, Mapping[str, Json]], depth_of_all: int
) -> Iterator[Text]:
    nodes = {node["id"]: node for node in graph["nodes"]}
    before = _before(nodes, graph["edges"])
    depth = _depths(nodes, before)
    under: dict[Json, list[Json]] = {node_id: [] for node_id in (None, *nodes)}
    for node_id in sorted(nodes, key=lambda one: nodes[one]["resource_name"] or "", reverse=True):
        under[max(before[node_id], key=lambda one: depth[one], default=None)].append(node_id)
    stack = list(under[None])
    while stack:  # not by recursion: a chain may be long
        node_id = stack.pop()
        node, deep = nodes[node_id], depth[node_id] + depth_of_all
        above = sorted(before[node_id], key=lambda one: depth[one])[:-1]
        label = _label(node, [show.named(nodes[one]["resource_name"]) for one in above])
        yield Text("  " * min(deep, DEEPEST)).append_text(label)
        if (below := inside.get(node.get("inside") or "")) is not None:
            yield from _lines(below, inside, deep + 2)
        stack += under[node_id]


def _label(node: Json, others: Sequence[str]) -> Text:
    state = node["state"]
    said = Text.assemble(
        (show.MARK.get(state, "?") + " ", show.STYLE.get(state, "")),
        show.named(node["path"]),
        (f"  {node['operation']} {state}", "dim"),
    )
    if node["breakpoints"]:
        said.append(f"  breaks at {', '.join(node['breakpoints'])}", "yellow")
    if others:
        said.append(f"  also after {', '.join(others)}", "dim")
    return said


def _before(nodes: Mapping[Json, Json], edges: Sequence[Json]) -> dict[Json, list[Json]]:
    before: dict[Json, list[Json]] = {node_id: [] for node_id in nodes}
    for first, then in edges:
        if first in nodes and then in nodes:
            before[then].append(first)
    return before


def _depths(nodes: Mapping[Json, Json], before: Mapping[Json, Sequence[Json]]) -> dict[Json, int]:
    """The length of the longest way to each node, without recursion: chains may be long."""
    after: dict[Json, list[Json]] = {node_id: [] for node_id in nodes}
    missing = {node_id: len(firsts) for node_id, firsts in before.items()}
    for node_id, firsts in before.items():
        for first in firsts:
            after[first].append(node_id)
    depth = dict.fromkeys(nodes, 0)
    ready = [node_id for node_id, count in missing.items() if count == 0]
    while ready:
        node_id = ready.pop()
        for then in after[node_id]:
            depth[then] = max(depth[then], depth[node_id] + 1)
            missing[then] -= 1
            if missing[then] == 0:
                ready.append(then)
    return depth


def dot(name: str, graph: Mapping[str, Json]) -> str:
    """For `dot -Tsvg`."""
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR;", "  node [shape=box, style=filled];"]
    for node in graph["nodes"]:
        label = f"{show.named(node['resource_name'])}\n{node['operation']} {node['state']}"
        colour = COLOUR.get(node["state"], "white")
        lines.append(f"  {node['id']} [label={_quoted(label)}, fillcolor={colour}];")
    lines += [f"  {first} -> {then};" for first, then in graph["edges"]]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = show.plain(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
