"""A graph as a tree and as a drawing."""

from typing import Any

from hub.cli import graphs


def node(node_id: int, name: str, state: str = "done", **more: Any) -> dict[str, Any]:
    base = {"id": node_id, "resource_name": name, "operation": "create", "state": state}
    return base | {"path": name, "breakpoints": []} | more


def graph(nodes: list[dict[str, Any]], edges: list[list[int]]) -> dict[str, Any]:
    return {"nodes": nodes, "edges": edges, "traversal": {"action": "CREATE", "state": "running"}}


DIAMOND = graph(
    [node(0, "net"), node(1, "db"), node(2, "cache", "parked", breakpoints=["pre-create"]),
     node(3, "web", "waiting")],
    [[0, 1], [0, 2], [1, 3], [2, 3]],
)  # fmt: skip


def test_each_node_is_there_once_under_what_it_comes_after() -> None:
    lines = graphs.tree("shop", DIAMOND).plain.splitlines()
    assert lines[0] == "shop  CREATE running"
    indents = {line.split()[1]: len(line) - len(line.lstrip()) for line in lines[1:]}
    assert indents == {"net": 2, "db": 4, "cache": 4, "web": 6}
    (web,) = (line for line in lines if " web " in line)
    assert "also after" in web
    assert "breaks at pre-create" in graphs.tree("shop", DIAMOND).plain


def test_a_long_chain_is_drawn_whole() -> None:
    count = 3000
    nodes = [node(i, f"n{i}") for i in range(count)]
    said = graphs.tree("long", graph(nodes, [[i, i + 1] for i in range(count - 1)])).plain
    assert [line.split()[1] for line in said.splitlines()[1:]] == [f"n{i}" for i in range(count)]
    assert max(map(len, said.splitlines())) < 100


def test_what_is_inside_comes_deeper_behind_what_holds_it() -> None:
    shop = graph([node(0, "web", inside="s1"), node(1, "after")], [[0, 1]])
    inner = graph([node(0, "db", path="web/db"), node(1, "app", path="web/app")], [[0, 1]])
    said = graphs.tree("shop", shop | {"stacks": [{"stack_id": "s1", "path": "web", **inner}]})
    lines = said.plain.splitlines()[1:]
    assert [(line.split()[1], len(line) - len(line.lstrip())) for line in lines] == [
        ("web", 2), ("web/db", 6), ("web/app", 8), ("after", 4),
    ]  # fmt: skip


def test_an_empty_graph_is_a_line() -> None:
    assert graphs.tree("s", graph([], [])).plain == "s  CREATE running"


def test_the_gates_of_the_stack_have_a_name_too() -> None:
    gates = graph([node(0, "", operation="begin"), node(1, "db"), node(2, "", operation="finish")],
                  [[0, 1], [0, 2], [1, 2]])  # fmt: skip
    lines = graphs.tree("s", gates).plain.splitlines()
    assert "(stack)  begin done" in lines[1] and "also after (stack)" in lines[3]
    assert '0 [label="(stack)\\nbegin done"' in graphs.dot("s", gates)


def test_a_drawing_quotes_names() -> None:
    said = graphs.dot('sh"op', graph([node(7, 'a"\\b', "failed"), node(8, "c")], [[7, 8]]))
    assert said.startswith('digraph "sh\\"op" {') and said.endswith("}")
    assert '7 [label="a\\"\\\\b\\ncreate failed", fillcolor=salmon];' in said
    assert "  7 -> 8;" in said
