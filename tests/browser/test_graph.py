"""The graph as it is drawn: names and states, the keyboard, breakpoints, folding, search."""

from playwright.async_api import expect

from hub.dashboard.files import all_files
from tests.browser.conftest import Visitor
from tests.support.program import Json

DRAWN = """async (m, { graph, root, options }) => {
  const { html, render, signal } = await import(`${root}/vendor/preact.js`);
  const { graphModel } = await import(`${root}/graph/model.js`);
  const main = document.createElement("main");
  main.style.cssText = "height: 100vh; display: grid; grid-template-rows: auto 1fr";
  document.body.replaceChildren(main);
  const drawn = { model: graphModel(graph), selected: signal(null), said: [] };
  window.drawn = drawn;
  const bound = {
    onSelect: (node) => drawn.said.push(["selected", node?.path ?? null]),
    onBreakpoint: (path, side, on) => drawn.said.push([path, side, on]),
  };
  render(html`<h1>Graph</h1><${m.Graph} model=${drawn.model} selected=${drawn.selected}
    canEdit=${true} ...${bound} ...${options} />`, main);
}"""


def node(number: int, name: str, state: str, phase: str = "pre", **more: Json) -> Json:
    usual = {
        "id": number, "resource_name": name, "path": name, "type": "OS::Nova::Server",
        "operation": "create", "direction": "forward", "state": state, "phase": phase,
        "waiting_for": [], "breakpoints": [], "reason": None, "inside": None,
    }  # fmt: skip
    return usual | more


def graph(nodes: list[Json], edges: list[list[int]], **more: Json) -> Json:
    traversal = {"number": 1, "action": "CREATE", "state": "running"}
    return {"nodes": nodes, "edges": edges, "traversal": traversal, "sequence": 7, **more}


SMALL = graph(
    [
        node(0, "net", "done", "post"),
        node(1, "web", "parked", breakpoints=["pre-create"]),
        node(2, "db", "running", "act"),
        node(3, "lb", "waiting", waiting_for=["web", "db"]),
        node(4, "tree", "parked", "act", inside="s", type="tree.yaml"),
        node(5, "bad", "failed", "act", reason="no room"),
        node(6, "net", "waiting", operation="delete", direction="cleanup"),
        *(node(7 + n, f"step{n}", "waiting") for n in range(3)),
    ],
    [[0, 1], [0, 2], [1, 3], [2, 3], [0, 3], [0, 4], [0, 5], [3, 6], [2, 7], [7, 8], [8, 9]],
    stacks=[
        {
            "stack_id": "s",
            "path": "tree",
            **graph(
                [
                    node(0, "leaf", "done", "post", path="tree/leaf"),
                    node(1, "top", "parked", path="tree/top", breakpoints=["pre-create"]),
                ],
                [[0, 1]],
            ),
        }
    ],
)


async def drawn(visitor: Visitor, document: Json, **options: Json) -> None:
    root = f"{visitor.url}/dashboard/{all_files().digest}"
    argument = {"graph": document, "root": root, "options": options}
    await visitor.module("graph/graph.js", DRAWN, argument)


async def test_a_graph_is_seen_heard_and_worked_with_by_keys(visitor: Visitor) -> None:
    await drawn(visitor, SMALL)
    page = visitor.page
    web = page.get_by_role("button", name="web, create, waiting for approval at pre-create")
    await expect(web).to_be_visible()
    for name in (
        "net, create, done",
        "db, create, running",
        "lb, create, waiting for dependencies",
        "bad, create, failed: no room",
        "net, cleanup, delete, waiting for dependencies",
        "tree, create, parked; nested: 1 waiting for approval, 1 done",
    ):
        await expect(page.get_by_role("button", name=name)).to_be_visible()
    assert await visitor.breaks() == []

    # What waits is where the keyboard begins; arrows go along the edges and within the layer.
    await expect(web).to_have_attribute("tabindex", "0")
    await web.focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("button", name="lb, create")).to_be_focused()
    for key in ("b", "a", "Enter"):
        await page.keyboard.press(key)
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("b")  # it waits there: too late
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_role("button", name="net, create, done")).to_be_focused()
    await page.keyboard.press("a")  # done: nothing is ahead of it
    said = await page.evaluate("drawn.said")
    assert said == [["lb", "pre", True], ["lb", "post", True], ["selected", "lb"]]
    await expect(page.get_by_role("button", name="lb, create")).to_have_attribute(
        "aria-pressed", "true"
    )

    # What was set is a dot on that side, by which it is cleared again.
    await page.evaluate("drawn.model.setBreakpoints('#3', ['post-create'])")
    side = page.get_by_role("button", name="Breakpoint after lb")
    await expect(side).to_have_attribute("aria-pressed", "true")
    await side.click()
    assert (await page.evaluate("drawn.said"))[-1] == ["lb", "post", False]

    # An event changes its node, and who comes after it: not one that the graph has, nor one of
    # another change, nor what only tells.
    await page.evaluate("""() => {
      const data = { traversal: 1, node: 2, operation: "create", resource: { reason: "" } };
      const hook = { point: "pre-create", mode: "notify" };
      drawn.model.apply({ type: "headgate.hook.waiting", sequence: 8,
        data: { ...data, node: 3, hook } });
      drawn.model.apply({ type: "headgate.resource.create.started", sequence: 8,
        data: { ...data, node: 3, traversal: 2 } });
      drawn.model.apply({ type: "headgate.resource.create.completed", sequence: 7, data });
      drawn.model.apply({ type: "headgate.resource.create.failed", sequence: 8,
        data: { ...data, resource: { reason: "too late" } } });
    }""")
    await expect(page.get_by_role("button", name="db, create, failed: too late")).to_be_visible()
    await expect(
        page.get_by_role("button", name="lb, create, waiting for dependencies")
    ).to_be_visible()


async def test_stacks_inside_unfold_and_what_is_sought_is_found(visitor: Visitor) -> None:
    await drawn(visitor, SMALL)
    page = visitor.page
    tree = page.get_by_role("button", name="tree, create")
    await tree.focus()
    await page.keyboard.press("u")
    top = page.get_by_role("button", name="top, create, waiting for approval at pre-create")
    await expect(top).to_be_visible()
    await expect(page.get_by_role("button", name="Nested stack of tree")).to_have_attribute(
        "aria-expanded", "true"
    )
    assert await visitor.breaks() == []
    await page.keyboard.press("i")
    await page.keyboard.press("ArrowRight")
    await expect(top).to_be_focused()
    await page.keyboard.press("o")
    await expect(tree).to_be_focused()
    await page.keyboard.press("u")
    await expect(top).to_have_count(0)

    # It is hidden in its box again; the search unfolds it.
    await page.keyboard.press("/")
    await page.keyboard.type("path:tree state:gate")
    await expect(page.get_by_role("status")).to_have_text("1 of 12")
    await page.keyboard.press("Enter")
    await expect(top).to_be_visible()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Critical path").click()
    way = page.locator("[data-critical]")
    # Web, which waits, lb, and what is cleared away: nobody knows how long, so it is the longest.
    await expect(way).to_have_count(3)

    # Another change begins: the page is told to fetch its graph.
    await page.evaluate("""drawn.model.apply({ type: "headgate.stack.update.started", sequence: 9,
      data: { traversal: 2, stack: { path: "" } } })""")
    assert await page.evaluate("drawn.model.stale.value")


async def test_who_may_not_edit_sees_breakpoints_and_sets_none(visitor: Visitor) -> None:
    document = graph([node(0, "a", "waiting", breakpoints=["pre-create"])], [])
    await drawn(visitor, document, canEdit=False)
    page = visitor.page
    face = page.get_by_role(
        "button", name="a, create, waiting for dependencies, breakpoints: pre-create"
    )
    await face.focus()
    await page.keyboard.press("b")
    await page.keyboard.press("a")
    await expect(page.get_by_role("button", name="Breakpoint before a")).to_be_disabled()
    await expect(page.get_by_role("button", name="Breakpoint after a")).to_have_count(0)
    assert await page.evaluate("drawn.said") == []


async def test_a_graph_of_thousands_is_folded_and_nothing_that_waits_is_hidden(
    visitor: Visitor,
) -> None:
    size, layers = 400, 5
    nodes = [node(n, f"r{n}", "waiting") for n in range(size * layers)]
    nodes[777] |= {"state": "parked", "breakpoints": ["pre-create"]}
    nodes[1999] |= {"state": "failed", "reason": "no room"}
    edges = [[n - size, n] for n in range(size, size * layers)]
    await drawn(visitor, graph(nodes, edges))
    page = visitor.page
    boxes = page.locator(".graph-node[data-kind=group]")
    await expect(boxes).to_have_count(layers)
    await expect(boxes.nth(1)).to_have_attribute("data-sign", "gate")
    await expect(boxes.nth(4)).to_have_attribute("data-sign", "failed")
    assert await visitor.breaks() == []
    await boxes.nth(0).get_by_role("button").click()
    await expect(page.get_by_role("button", name="r0, create")).to_have_count(1)
    await page.get_by_role("button", name="1 waiting for approval").click()
    await expect(
        page.get_by_role("button", name="r777, create, waiting for approval at")
    ).to_be_visible()
    await page.get_by_role("combobox", name="Grouping").select_option("none")
    # From afar they are shapes: only who has the focus is an element.
    await expect(page.locator(".graph-node")).to_have_count(1)
