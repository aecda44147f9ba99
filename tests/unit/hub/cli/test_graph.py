"""The graph as a tree and in Graphviz format."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hub.cli.commands import graph

RUNNING = "CREATE_IN_PROGRESS"


def node(node_id: int, name: str, state: str = "done", **more: Any) -> dict[str, Any]:
    base = {"id": node_id, "resource_name": name, "operation": "create", "state": state,
            "phase": "pre"}  # fmt: skip
    return base | {"path": name, "breakpoints": []} | more


def document(nodes: list[dict[str, Any]], edges: list[list[int]]) -> dict[str, Any]:
    return {"nodes": nodes, "edges": edges, "traversal": {"action": "CREATE", "state": "running"}}


DIAMOND = document(
    [node(0, "net"), node(1, "db"), node(2, "cache", "parked", breakpoints=["pre-create"]),
     node(3, "web", "waiting")],
    [[0, 1], [0, 2], [1, 3], [2, 3]],
)  # fmt: skip


def test_each_node_is_shown_once_below_a_node_that_it_waits_for() -> None:
    lines = graph.tree("shop", RUNNING, DIAMOND).plain.splitlines()
    assert lines[0] == "shop  CREATE_IN_PROGRESS"
    indents = {line.split()[1]: len(line) - len(line.lstrip()) for line in lines[1:]}
    assert indents == {"net": 2, "db": 4, "cache": 4, "web": 6}
    (web,) = (line for line in lines if " web " in line)
    assert "also after" in web
    assert "breaks at pre-create" in graph.tree("shop", RUNNING, DIAMOND).plain


def test_states_are_shown_in_words_for_users() -> None:
    waiting = [
        node(0, "gate", "parked"), node(1, "after", "parked", phase="post"),
        node(2, "nest", "parked", phase="execute", nested_stack_id="2"),
        node(3, "retry", "parked", phase="execute", until="2026-11-20T20:16:36Z"),
        node(4, "poll", "parked", phase="execute"), node(5, "last", "waiting"),
    ]  # fmt: skip
    words = {
        "gate": "waiting for approval", "after": "waiting for approval",
        "nest": "waiting for its nested stack", "retry": "waiting until 2026-11-20T20:16:36Z",
        "poll": "waiting", "last": "waiting for dependencies",
    }  # fmt: skip
    tree = graph.tree("s", RUNNING, document(waiting, [])).plain.splitlines()[1:]
    assert [line.split(maxsplit=1)[1] for line in tree] == [
        f"{name}  create {state}" for name, state in sorted(words.items())
    ]
    now = datetime(2026, 11, 20, 20, 15, tzinfo=UTC)
    on_terminal = graph.tree("s", RUNNING, document(waiting, []), now).plain
    assert "retry  create waiting, 1m36s left" in on_terminal
    late = graph.tree("s", RUNNING, document(waiting, []), now + timedelta(days=1)).plain
    assert "retry  create waiting\n" in f"{late}\n"
    dot = graph.render_dot("s", document(waiting, []))
    assert all(f"{name}\\ncreate {state}" in dot for name, state in words.items())
    assert "parked" not in "".join([*tree, dot])


def test_a_long_chain_is_drawn_completely() -> None:
    count = 3000
    nodes = [node(i, f"n{i}") for i in range(count)]
    text = graph.tree(
        "long", RUNNING, document(nodes, [[i, i + 1] for i in range(count - 1)])
    ).plain
    assert [line.split()[1] for line in text.splitlines()[1:]] == [f"n{i}" for i in range(count)]
    assert max(map(len, text.splitlines())) < 100


def test_nested_nodes_are_indented_below_their_parent() -> None:
    shop = document([node(0, "web", nested_stack_id="s1"), node(1, "after")], [[0, 1]])
    inner = document([node(0, "db", path="web/db"), node(1, "app", path="web/app")], [[0, 1]])
    text = graph.tree(
        "shop", RUNNING, shop | {"stacks": [{"stack_id": "s1", "path": "web", **inner}]}
    )
    lines = text.plain.splitlines()[1:]
    assert [(line.split()[1], len(line) - len(line.lstrip())) for line in lines] == [
        ("web", 2), ("web/db", 6), ("web/app", 8), ("after", 4),
    ]  # fmt: skip


def test_an_empty_graph_is_one_line() -> None:
    assert graph.tree("s", RUNNING, document([], [])).plain == "s  CREATE_IN_PROGRESS"


def test_nodes_of_the_whole_stack_have_a_name() -> None:
    begin, finish = node(0, "", operation="begin"), node(2, "", operation="finish")
    gates = document([begin, node(1, "db"), finish], [[0, 1], [0, 2], [1, 2]])
    lines = graph.tree("s", RUNNING, gates).plain.splitlines()
    assert "(stack)  begin done" in lines[1] and "also after (stack)" in lines[3]
    assert '0 [label="(stack)\\nbegin done"' in graph.render_dot("s", gates)


def test_a_drawing_quotes_names() -> None:
    text = graph.render_dot('sh"op', document([node(7, 'a"\\b', "failed"), node(8, "c")], [[7, 8]]))
    assert text.startswith('digraph "sh\\"op" {') and text.endswith("}")
    assert '7 [label="a\\"\\\\b\\ncreate failed", fillcolor=salmon];' in text
    assert "  7 -> 8;" in text
