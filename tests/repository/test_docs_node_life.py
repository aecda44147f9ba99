"""The page on a node's life shows the machine as it is."""

from tools.node_life import MARKED, PAGE, PARTS, render_page


def test_the_page_is_what_the_tool_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert render_page(page) == page, "run `make node-life`"
    assert [match["name"] for match in MARKED.finditer(page)] == list(PARTS)
