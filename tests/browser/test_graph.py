"""The drawn graph: names and states, keyboard, breakpoints, grouping and search."""

from playwright.async_api import expect

from hub.api.dashboard import all_files
from tests.browser.conftest import Visitor
from tests.support.program import Json

DRAW_SCRIPT = """async (m, { graph, root, options }) => {
  const { html, render, signal } = await import(`${root}/vendor/preact.js`);
  const { graphModel } = await import(`${root}/graph/model.js`);
  const main = document.createElement("main");
  main.style.cssText = "height: 100vh; display: grid; grid-template-rows: auto 1fr";
  document.body.replaceChildren(main);
  const drawn = { model: graphModel(graph), selected: signal(null), calls: [] };
  window.drawn = drawn;
  const bound = {
    onSelect: (node) => drawn.calls.push(["selected", node?.path ?? null]),
    onBreakpoint: (path, side, on) => drawn.calls.push([path, side, on]),
  };
  render(html`<h1>Graph</h1><${m.Graph} model=${drawn.model} selected=${drawn.selected}
    canEdit=${true} ...${bound} ...${options} />`, main);
}"""


def node(number: int, name: str, state: str, phase: str = "pre", **more: Json) -> Json:
    usual = {
        "id": number, "resource_name": name, "path": name, "type": "OS::Nova::Server",
        "operation": "create", "direction": "forward", "state": state, "phase": phase,
        "waiting_for": [], "breakpoints": [], "reason": None, "nested_stack_id": None,
    }  # fmt: skip
    return usual | more


def graph(nodes: list[Json], edges: list[list[int]], **more: Json) -> Json:
    traversal = {"number": 1, "action": "CREATE", "state": "running"}
    return {"nodes": nodes, "edges": edges, "traversal": traversal, "sequence": 7, **more}


SMALL = graph(
    [
        node(0, "net", "done", "post"),
        node(1, "web", "parked", breakpoints=["pre-create"]),
        node(2, "db", "running", "execute"),
        node(3, "lb", "waiting", waiting_for=["web", "db"]),
        node(4, "tree", "parked", "execute", nested_stack_id="s", type="tree.yaml"),
        node(5, "bad", "failed", "execute", reason="no room"),
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


async def draw(visitor: Visitor, document: Json, **options: Json) -> None:
    root = f"{visitor.url}/dashboard/{all_files().digest}"
    argument = {"graph": document, "root": root, "options": options}
    await visitor.module("graph/graph.js", DRAW_SCRIPT, argument)


async def test_a_graph_is_drawn_labelled_and_usable_by_keyboard(visitor: Visitor) -> None:
    await draw(visitor, SMALL)
    page = visitor.page
    web = page.get_by_role("button", name="web, create, waiting for approval at pre-create")
    await expect(web).to_be_visible()
    for name in (
        "net, create, done",
        "db, create, running",
        "lb, create, waiting for dependencies",
        "bad, create, failed: no room",
        "net, cleanup, delete, waiting for dependencies",
        "tree, create, waiting for its nested stack; nested: 1 waiting for approval, 1 done",
    ):
        await expect(page.get_by_role("button", name=name)).to_be_visible()
    assert await visitor.violations() == []

    # The focus starts at the waiting node; arrows move along edges and within the layer.
    await expect(web).to_have_attribute("tabindex", "0")
    await web.focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("button", name="lb, create")).to_be_focused()
    for key in ("b", "a", "Enter"):
        await page.keyboard.press(key)
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("b")  # a hook waits there: too late
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_role("button", name="net, create, done")).to_be_focused()
    await page.keyboard.press("a")  # done: no point is left
    calls = await page.evaluate("drawn.calls")
    assert calls == [["lb", "pre", True], ["lb", "post", True], ["selected", "lb"]]
    await expect(page.get_by_role("button", name="lb, create")).to_have_attribute(
        "aria-pressed", "true"
    )

    # A breakpoint is a dot on that side; a click on it clears it.
    await page.evaluate("drawn.model.setBreakpoints('#3', ['post-create'])")
    side = page.get_by_role("button", name="Breakpoint after lb")
    await expect(side).to_have_attribute("aria-pressed", "true")
    await side.click()
    assert (await page.evaluate("drawn.calls"))[-1] == ["lb", "post", False]

    # An event changes its node and the dependents, unless the graph already includes it, or it
    # belongs to another change, or it only notifies.
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


async def test_nested_stacks_expand_and_the_search_finds_nodes_in_them(visitor: Visitor) -> None:
    await draw(visitor, SMALL)
    page = visitor.page
    tree = page.get_by_role("button", name="tree, create")
    await tree.focus()
    await page.keyboard.press("u")
    top = page.get_by_role("button", name="top, create, waiting for approval at pre-create")
    await expect(top).to_be_visible()
    await expect(page.get_by_role("button", name="Nested stack of tree")).to_have_attribute(
        "aria-expanded", "true"
    )
    assert await visitor.violations() == []
    await page.keyboard.press("i")
    await page.keyboard.press("ArrowRight")
    await expect(top).to_be_focused()
    await page.keyboard.press("o")
    await expect(tree).to_be_focused()
    await page.keyboard.press("u")
    await expect(top).to_have_count(0)

    # The node is hidden in its group again; the search expands the group. The field has the focus
    # at once, so that keys pressed right after "/" are not lost.
    assert (
        await page.evaluate("""() => {
      const options = { key: "/", bubbles: true, cancelable: true };
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", options));
      return document.activeElement.type;
    }""")
        == "search"
    )
    await page.keyboard.type("path:tree state:gate")
    await expect(page.get_by_role("status")).to_have_text("1 of 12")
    await page.keyboard.press("Enter")
    await expect(top).to_be_visible()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Critical path").click()
    way = page.locator("[data-critical]")
    # The waiting web, lb and the cleanup: the time of an answer is unknown, so this is the longest.
    await expect(way).to_have_count(3)

    # Another change begins: the graph is out of date and must be fetched.
    await page.evaluate("""drawn.model.apply({ type: "headgate.stack.update.started", sequence: 9,
      data: { traversal: 2, stack: { path: "" } } })""")
    assert await page.evaluate("drawn.model.outdated.value")


async def test_without_write_access_breakpoints_are_shown_and_cannot_be_set(
    visitor: Visitor,
) -> None:
    document = graph([node(0, "a", "waiting", breakpoints=["pre-create"])], [])
    await draw(visitor, document, canEdit=False)
    page = visitor.page
    face = page.get_by_role(
        "button", name="a, create, waiting for dependencies, breakpoints: pre-create"
    )
    await face.focus()
    await page.keyboard.press("b")
    await page.keyboard.press("a")
    await expect(page.get_by_role("button", name="Breakpoint before a")).to_be_disabled()
    await expect(page.get_by_role("button", name="Breakpoint after a")).to_have_count(0)
    assert await page.evaluate("drawn.calls") == []


async def test_a_graph_of_thousands_is_grouped_and_shows_every_waiting_node(
    visitor: Visitor,
) -> None:
    size, layers = 400, 5
    nodes = [node(n, f"r{n}", "waiting") for n in range(size * layers)]
    nodes[777] |= {"state": "parked", "breakpoints": ["pre-create"]}
    nodes[1999] |= {"state": "failed", "reason": "no room"}
    edges = [[n - size, n] for n in range(size, size * layers)]
    await draw(visitor, graph(nodes, edges))
    page = visitor.page
    boxes = page.locator(".graph-node[data-kind=group]")
    await expect(boxes).to_have_count(layers)
    await expect(boxes.nth(1)).to_have_attribute("data-sign", "gate")
    await expect(boxes.nth(1).locator(".graph-name")).to_have_text(f"r* ({size})")
    await expect(boxes.nth(1).locator(".graph-word")).to_have_text("1 waiting")
    await expect(boxes.nth(4)).to_have_attribute("data-sign", "failed")
    assert await visitor.violations() == []
    await boxes.nth(0).get_by_role("button").click()
    await expect(page.get_by_role("button", name="r0, create")).to_have_count(1)
    await page.get_by_role("button", name="1 waiting for approval").click()
    await expect(
        page.get_by_role("button", name="r777, create, waiting for approval at")
    ).to_be_visible()
    await page.get_by_role("combobox", name="Grouping").select_option("none")
    await expect(boxes).to_have_count(0)  # the new layout is shown
    # At a distance nodes are shapes: only the focused one is an element.
    await page.get_by_role("button", name="Fit the graph").click()
    await expect(page.locator(".graph-node")).to_have_count(1)


async def test_a_large_layout_is_computed_in_a_worker(visitor: Visitor) -> None:
    """The last of several layouts that are requested at once is displayed."""
    size = 400
    nodes = [node(n, f"r{n}", "waiting") for n in range(size)]
    nodes[333] |= {"state": "parked", "breakpoints": ["pre-create"]}
    page = visitor.page
    await draw(visitor, graph(nodes[:9], []))
    await expect(page.get_by_role("button", name="r8, create")).to_be_visible()
    assert page.workers == []
    await draw(visitor, graph(nodes, [[n, n + 200] for n in range(200)]))
    face = page.get_by_role("button", name="r333, create, waiting for approval")
    await expect(face).to_be_in_viewport(ratio=0.99)
    (worker,) = page.workers
    assert worker.url.endswith("/graph/layout/worker.js")
    grouping = page.get_by_role("combobox", name="Grouping")
    await grouping.evaluate("""menu => {
        for (const fold of ["type", "none", "layer"]) {
            menu.value = fold;
            menu.dispatchEvent(new Event("change"));
        }
        menu.value = "none";
        menu.dispatchEvent(new Event("change"));
    }""")
    await expect(page.locator(".graph-stage")).not_to_have_attribute("aria-busy", "true")
    await expect(face).to_be_in_viewport(ratio=0.99)
    await expect(page.locator(".graph-node[data-kind=group]")).to_have_count(0)
    # The search also finds a node that is displayed only when its group is expanded.
    await grouping.select_option("layer")
    await page.get_by_role("searchbox", name="Search nodes").fill("r399")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="r399, create")).to_be_in_viewport(ratio=0.99)


async def test_without_a_worker_the_page_computes_the_layout(visitor: Visitor) -> None:
    await visitor.page.route("**/graph/layout/worker.js", lambda route: route.abort())
    nodes = [node(n, f"r{n}", "waiting") for n in range(400)]
    await draw(visitor, graph(nodes, [[n, n + 200] for n in range(200)]))
    await expect(visitor.page.get_by_role("button", name="r0, create")).to_be_visible()
    assert visitor.page.workers == []


async def test_a_long_graph_opens_readable_at_the_node_that_waits(visitor: Visitor) -> None:
    """The chain is one line; fitting shows all of it, however small."""
    count, waiting = 40, 31
    nodes = [node(n, f"step{n}", "done") for n in range(count)]
    nodes[waiting] |= {"state": "parked", "breakpoints": ["pre-create"]}
    await draw(visitor, graph(nodes, [[n, n + 1] for n in range(count - 1)]))
    page = visitor.page
    zoom = page.get_by_role("button", name="Fit the graph")
    await expect(zoom).to_contain_text("75%")
    face = page.get_by_role("button", name=f"step{waiting}, create, waiting for approval")
    await expect(face).to_be_in_viewport(ratio=0.99)
    tops = await page.locator(".graph-node").evaluate_all(
        "all => all.map((one) => Math.round(one.getBoundingClientRect().top))"
    )
    assert len(tops) > 4
    assert len(set(tops)) == 1
    # The window becomes smaller: the node stays in it, and the scale stays readable.
    await page.set_viewport_size({"width": 500, "height": 700})
    await expect(face).to_be_in_viewport(ratio=0.99)
    await expect(zoom).to_contain_text("75%")
    await zoom.click()
    await expect(zoom).not_to_contain_text("75%")
    first = page.get_by_role("button", name="step0, create, done")
    await expect(first).to_be_in_viewport(ratio=0.99)


async def test_a_node_says_what_it_waits_for(visitor: Visitor) -> None:
    script = """(m, waiting) => waiting.map(([phase, reason, nested_stack_id, hook]) =>
        m.sentence({ nested_stack_id }, { state: "parked", phase, reason, hook }))"""
    hook = {"point": "pre-create"}
    waiting = [
        ["pre", None, None, hook], ["execute", None, "s", None], ["execute", None, None, None],
        ["execute", "its nested stack", None, None], ["execute", "it is away", None, None],
    ]  # fmt: skip
    assert await visitor.module("graph/labels.js", script, waiting) == [
        "waiting for approval at pre-create", "waiting for its nested stack", "waiting",
        "waiting for its nested stack", "waiting: it is away",
    ]  # fmt: skip


async def test_groups_are_named_by_the_pattern_of_their_names(visitor: Visitor) -> None:
    titles = await visitor.module("graph/fold/view.js", TITLES_SCRIPT)
    assert titles == {
        "net_0 net_1 net_22": "net_*",
        "a1 a2 b1": "a*, b*",
        "web-a web-b web-c": "web-*",
        "red green blue": "Server",
    }


TITLES_SCRIPT = """async (m) => {
  const { treeOf } = await import(new URL("../tree.js", address).href);
  const titles = {};
  for (const names of ["net_0 net_1 net_22", "a1 a2 b1", "web-a web-b web-c", "red green blue"]) {
    const nodes = names.split(" ").map((name, id) => ({ id, resource_name: name, path: name,
      type: "OS::Nova::Server", operation: "create", direction: "forward", state: "waiting",
      phase: "pre", waiting_for: [], breakpoints: [], reason: null, nested_stack_id: null }));
    const traversal = { number: 1, action: "CREATE", state: "running" };
    const tree = treeOf({ nodes, edges: [], traversal, sequence: 1 });
    titles[names] = m.viewOf(tree, "type", new Set()).items[0].title;
  }
  return titles;
}"""
