"""headgate graph: the graph of a stack as a tree, or for Graphviz."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hub.cli import options
from hub.cli.connection.client import (
    ApiClient,
    find_stack,
    read_waiting_hooks,
    stack_path,
)
from hub.cli.context import ask, print_result
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.consoles import standard_output
from hub.cli.printing.renderables import assemble_text, join_lines, styled_text

if TYPE_CHECKING:
    from rich.text import Text

Json = Any
#: Maximum indentation of the tree.
MAX_DEPTH = 24
#: Colors of Graphviz for the states of a node.
COLOR = {
    "done": "palegreen",
    "running": "lightblue",
    "parked": "khaki",
    "failed": "salmon",
    "stopped": "plum",
    "dropped": "lightgrey",
}


@with_options
def graph(
    server: ServerOptions,
    stack: options.Name,
    dot: Annotated[
        bool, typer.Option("--dot", help="Print in Graphviz format, for `dot -Tsvg`.")
    ] = False,
) -> None:
    """Show the graph of a stack's current traversal as a tree."""

    async def work(client: ApiClient) -> tuple[Json, str]:
        found = await find_stack(client, stack)
        document = await client.call("GET", stack_path(found, "graph"), query={"nested": "true"})
        if dot or server.format.is_document:
            return document, ""
        waiting = len(await read_waiting_hooks(client, found))
        return document, tables.status_text(found["stack_status"], waiting)

    document, status = ask(server, work)
    if dot:
        typer.echo(render_dot(stack, document))
    else:
        now = datetime.now(UTC) if standard_output().is_terminal else None
        print_result(document, server.format, lambda: tree(stack, status, document, now))


def tree(name: str, status: str, graph: Mapping[str, Json], now: datetime | None = None) -> "Text":
    """The status of the stack, and each node once, indented under the last node that it depends on;
    the others are named in its line. The nodes of its nested stack follow, with more indentation.
    now: show times relative to it.
    """
    nested = {one["stack_id"]: one for one in graph.get("stacks", ())}
    heading = assemble_text((tables.plain(name), "bold"), "  ", tables.style(status))
    return join_lines([heading, *_lines(graph, nested, 1, now)])


def _lines(
    graph: Mapping[str, Json],
    nested: Mapping[str, Mapping[str, Json]],
    base: int,
    now: datetime | None,
) -> "Iterator[Text]":
    nodes = {node["id"]: node for node in graph["nodes"]}
    before = _before(nodes, graph["edges"])
    depth = _depths(nodes, before)
    under: dict[Json, list[Json]] = {node_id: [] for node_id in (None, *nodes)}
    for node_id in sorted(nodes, key=lambda one: nodes[one]["resource_name"] or "", reverse=True):
        under[max(before[node_id], key=lambda one: depth[one], default=None)].append(node_id)
    stack = list(under[None])
    while stack:  # no recursion, because a chain can be long
        node_id = stack.pop()
        node, level = nodes[node_id], depth[node_id] + base
        above = sorted(before[node_id], key=lambda one: depth[one])[:-1]
        label = _label(node, [output.label(nodes[one]["resource_name"]) for one in above], now)
        yield styled_text("  " * min(level, MAX_DEPTH)).append_text(label)
        if (below := nested.get(node.get("nested_stack_id") or "")) is not None:
            yield from _lines(below, nested, level + 2, now)
        stack += under[node_id]


def _label(node: Json, others: Sequence[str], now: datetime | None) -> "Text":
    state = node["state"]
    text = assemble_text(
        (output.MARK.get(state, "?") + " ", tables.STYLE.get(state, "")),
        output.label(node["path"]),
        (f"  {node['operation']} {output.node_state(node, now)}", "dim"),
    )
    if node["breakpoints"]:
        text.append(f"  breaks at {', '.join(node['breakpoints'])}", "yellow")
    if others:
        text.append(f"  also after {', '.join(others)}", "dim")
    return text


def _before(nodes: Mapping[Json, Json], edges: Sequence[Json]) -> dict[Json, list[Json]]:
    before: dict[Json, list[Json]] = {node_id: [] for node_id in nodes}
    for first, then in edges:
        if first in nodes and then in nodes:
            before[then].append(first)
    return before


def _depths(nodes: Mapping[Json, Json], before: Mapping[Json, Sequence[Json]]) -> dict[Json, int]:
    """The length of the longest path to each node. No recursion, because a chain can be long."""
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


def render_dot(name: str, graph: Mapping[str, Json]) -> str:
    """The graph in Graphviz format."""
    lines = [f"digraph {_quote(name)} {{", "  rankdir=LR;", "  node [shape=box, style=filled];"]
    for node in graph["nodes"]:
        state = output.node_state(node)
        label = f"{output.label(node['resource_name'])}\n{node['operation']} {state}"
        color = COLOR.get(node["state"], "white")
        lines.append(f"  {node['id']} [label={_quote(label)}, fillcolor={color}];")
    lines += [f"  {first} -> {then};" for first, then in graph["edges"]]
    return "\n".join([*lines, "}"])


def _quote(text: str) -> str:
    escaped = tables.plain(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
