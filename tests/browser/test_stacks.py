"""The list of stacks: live updates, filters, keyboard and actions."""

import asyncio
import re
from functools import partial
from typing import Any

from playwright.async_api import Locator, Page, Route, expect

from tests.browser.conftest import Visit, Visitor
from tests.support.access import insert_credential
from tests.support.program import Http, Program, eventually, resource

HOOKS = {"hooks": [{"at": "a", "on": ["pre-create"]}]}


async def is_created(http: Http, name: str) -> bool:
    found = await http.stack_request("GET", "shop", f"/resources/{name}")
    return bool(found["resource"]["resource_status"] == "CREATE_COMPLETE")


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def names(page: Page) -> Locator:
    return page.locator(".stacks-name")


async def test_the_list_is_live_and_does_not_move_under_the_pointer(
    visitor: Visitor, http: Http
) -> None:
    await http.create("web", {"a": resource(), "b": resource()}, environment=HOOKS, tags=["prod"])
    fails = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    await http.create("bad", {"a": fails})
    await http.create("old", {"a": resource()})
    await http.waiting_hooks("web")
    for name in ("bad", "old"):
        await http.until_ended(name)
    page = await visitor.open("stacks")
    await expect(names(page)).to_have_text(["old", "bad", "web"])
    await expect(row(page, "web")).to_contain_text("Waiting for approval")
    bar = row(page, "web").get_by_role("img", name=re.compile(r"\b1 waiting, (of|1).* 2 nodes"))
    await expect(bar).to_be_visible()
    await expect(row(page, "bad")).to_contain_text("Resource CREATE failed")
    for word, many in (
        ("In progress", 1),
        ("Failed", 1),
        ("Complete", 1),
        ("Waiting for approval", 1),
    ):
        await expect(
            page.get_by_role("button", name=re.compile(f"^{word}.* {many}$"))
        ).to_be_visible()

    await names(page).nth(1).hover()
    await http.signal((await http.waiting_hooks("web"))[0])
    await expect(row(page, "web")).to_contain_text("CREATE_COMPLETE")
    await expect(page.get_by_role("button", name="Complete 2")).to_be_visible()
    await http.create("new", {"a": resource()})
    show = page.get_by_role("button", name="Show 1 new stack")
    await expect(show).to_be_visible()
    await expect(names(page)).to_have_text(["old", "bad", "web"])
    await http.stack_request("DELETE", "old")
    await expect(row(page, "old")).to_contain_text("This stack was deleted")
    await expect(row(page, "old").get_by_role("button", name="Actions")).to_have_count(0)
    await expect(names(page)).to_have_text(["old", "bad", "web"])
    await show.press("Enter")
    await page.mouse.move(2, 2)
    await expect(names(page)).to_have_text(["new", "old", "bad", "web"])
    # The list is not in use now: new stacks appear by themselves.
    await http.create("newer", {"a": resource()})
    await expect(names(page)).to_have_text(["newer", "new", "old", "bad", "web"])
    await page.get_by_role("button", name="Refresh list").click()
    await expect(names(page)).to_have_text(["newer", "new", "bad", "web"])


async def test_changes_before_the_stream_opens_are_shown(visitor: Visitor, http: Http) -> None:
    may_open = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_open.wait()
        await route.continue_()

    await visitor.page.route("**/events/stream", hold)
    page = await visitor.open("stacks")
    await expect(page.get_by_text("No stacks in")).to_be_visible()
    await http.create("web", {"a": resource()})
    await http.until_ended("web")
    may_open.set()
    await expect(row(page, "web")).to_contain_text("CREATE_COMPLETE")


async def test_filters_are_in_the_address_and_keys_move_the_focus(
    visitor: Visitor, visit: Visit, http: Http
) -> None:
    for name, tags in (("shop", ["prod", "web"]), ("shelf", ["prod"]), ("desk", [])):
        await http.create(name, {"a": resource()}, tags=tags)
    await http.create("shut", {"a": resource()}, environment=HOOKS, tags=["prod"])
    await http.waiting_hooks("shut")
    page = await visitor.open("stacks")
    await expect(names(page)).to_have_count(4)
    await page.keyboard.press("/")
    await page.keyboard.type("SH")
    await expect(names(page)).to_have_text(["shut", "shelf", "shop"])
    await page.get_by_role("button", name="Filter by tag web").click()
    await expect(names(page)).to_have_text(["shop"])
    await expect(page).to_have_url(re.compile(r"search=SH.*tags=web"))
    await page.get_by_role("button", name="Clear filters").click()
    waits = page.get_by_role("button", name=re.compile("^Waiting for approval"))
    await waits.click()
    await expect(names(page)).to_have_text(["shut"])
    await expect(waits).to_have_attribute("aria-pressed", "true")

    other = await visit(http)
    await other.page.goto(page.url)
    await expect(names(other.page)).to_have_text(["shut"])
    await other.page.close()

    await http.signal((await http.waiting_hooks("shut"))[0])
    await expect(row(page, "shut")).to_contain_text("No longer matches the filters")
    await waits.click()
    await expect(names(page)).to_have_count(4)
    await page.locator("main").focus()
    for key in "jjk":
        await page.keyboard.press(key)
    await expect(page.get_by_role("link", name="shut", exact=True)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/stack/shut/"))


async def test_a_stack_is_stopped_and_deleted_by_keyboard(visitor: Visitor, http: Http) -> None:
    await http.create("shop", {"a": resource(), "b": resource()}, environment=HOOKS)
    await http.waiting_hooks("shop")
    await eventually(partial(is_created, http, "b"))
    page = await visitor.open("stacks")
    actions = page.get_by_role("button", name="Actions on shop")
    dialog = page.get_by_role("dialog", name="shop")
    await actions.focus()
    await page.keyboard.press("Enter")
    await expect(dialog).to_contain_text("no new operations start")
    await dialog.get_by_role("button", name="Stop").focus()
    await page.keyboard.press("Enter")
    await expect(row(page, "shop")).to_contain_text("CREATE_STOPPED")
    await expect(actions).to_be_focused()

    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    await dialog.get_by_role("button", name="Delete…").press("Enter")
    await expect(dialog).to_contain_text("The stack has 1 resource.")  # "a" was not created
    await dialog.get_by_label("Type shop to confirm").focus()
    await page.keyboard.type("sho")
    await expect(dialog.get_by_role("button", name="Delete shop")).to_be_disabled()
    # Another user is faster: the dialog shows the server's error.
    await http.stack_request("DELETE", "shop")
    await expect(row(page, "shop")).to_contain_text("DELETED")
    await page.keyboard.type("p")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("could not be found")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


#: Closes a dialog and opens the next one before the browser draws a frame.
REOPEN = """async () => {
    const button = (name) => [...document.querySelectorAll("button")].find(
        (one) => (one.getAttribute("aria-label") ?? one.textContent).trim() === name);
    button("Close").click();
    while (document.querySelector("dialog")) await new Promise((done) => setTimeout(done));
    button("Actions on shop").click();
    for (let frame = 0; frame < 5; frame++) await new Promise(requestAnimationFrame);
}"""


async def test_a_closed_dialog_does_not_close_the_next_one(visitor: Visitor, http: Http) -> None:
    await http.create("shop", {"a": resource()})
    page = await visitor.open("stacks")
    dialog = page.get_by_role("dialog", name="shop")
    await page.get_by_role("button", name="Actions on shop").click()
    await expect(dialog).to_be_visible()
    for _ in range(5):
        await page.evaluate(REOPEN)
        await expect(dialog).to_be_visible()
        await expect(dialog.get_by_role("button", name="Close")).to_be_visible()


async def test_pages_on_a_phone(visit: Visit, http: Http) -> None:
    await asyncio.gather(*(http.create(f"stack-{one:02}", {}) for one in range(53)))
    visitor = await visit(http, viewport={"width": 360, "height": 700}, color_scheme="dark")
    page = await visitor.open("stacks")
    await expect(names(page)).to_have_count(50)
    first = await names(page).first.inner_text()
    assert await visitor.violations() == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("button", name="Older").click()
    await expect(names(page)).to_have_count(3)
    await page.get_by_role("button", name="Newer").click()
    await expect(names(page)).to_have_count(50)
    await expect(names(page).first).to_have_text(first)
    await page.get_by_role("button", name=f"Actions on {first}").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await visitor.violations() == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_reader_sees_the_stacks_and_no_buttons(visit: Visit, token_server: Program) -> None:
    project = "lists"
    token = await insert_credential(token_server.database, project, "rita", ["reader"])
    author = await insert_credential(token_server.database, project, "ann", ["author"])
    http = Http(token_server.session, token_server.url, project)
    sent = {"stack_name": "shop", "template": {"heat_template_version": "2018-08-31"}}
    target = {"target": "http://127.0.0.1:9/", "events": ["headgate.hook.*"]}
    for path, body in (("/stacks", sent), ("/subscriptions", target)):
        status, response = await http.call("POST", path, body, headers={"X-Auth-Token": author})
        assert status == 201, response
    visitor = await visit(http)
    page = await visitor.open("stacks")
    await page.get_by_label("Token", exact=True).fill(token)
    await page.keyboard.press("Enter")
    await expect(row(page, "shop")).to_be_visible()
    main = page.get_by_role("main")
    for name in ("Actions", "New stack"):
        await expect(main.get_by_text(name)).to_have_count(0)
    await visitor.open("subscriptions")
    await main.get_by_role("link", name="http://127.0.0.1:9/").click()
    await expect(main.get_by_text("No deliveries yet")).to_be_visible()
    await expect(main.get_by_role("button")).to_have_count(0)
    await visitor.open("usage")
    await expect(main.get_by_text("1 of ").first).to_be_visible()
    await expect(main.get_by_role("heading", level=2)).to_have_text(
        ["Quotas of lists", "Requests to providers", "Your account"]
    )
    await expect(main.get_by_role("button")).to_have_count(0)


async def test_progress_names_what_waits_in_the_words_of_the_graph(visitor: Visitor) -> None:
    script = "(m, nodes) => m.progress(nodes).words"
    words = await visitor.module("stacks/row.js", script, {"parked": 1, "waiting": 2, "done": 3})
    assert words == "3 done, 1 waiting, 2 waiting for dependencies, of 6 nodes"


async def test_rows_of_changed_deleted_and_new_stacks(visitor: Visitor) -> None:
    """Also of stacks that are created and deleted between two fetches."""
    line = {"action": "CREATE", "status": "FAILED", "tags": ["prod"], "hooks_waiting": 1}

    def row_of(name: str, started: str = "1") -> dict[str, Any]:
        return {"id": name, "name": name, "traversal": {"started_at": started}, **line}

    shown = {"rows": [row_of("a"), row_of("b")], "deleted": [], "added": [row_of("new")]}
    query = {"search": "", "statuses": ["CREATE_FAILED"], "waiting": True, "tags": ["prod"]}
    found = await visitor.module(
        "stacks/merge.js",
        """(m, [shown, ids, lines, query]) => {
            const next = m.mergeStacks({...shown, deleted: new Set()}, ids, lines, query);
            return [next.rows.map((one) => one.tags.length), [...next.deleted],
                    next.added.map((one) => one.id)];
        }""",
        [
            shown,
            ["a", "b", "new", "other", "c", "d"],
            [
                {**row_of("a"), "tags": []},
                {**row_of("other"), "tags": []},
                row_of("c"),
                row_of("d", "2"),
            ],
            {**query, "from": ""},
        ],
    )
    assert found == [[0, 1], ["b"], ["d", "c"]]
    response = await visitor.module(
        "parts/stable_rows.js",
        "(m, [old, fresh]) => [m.stableRows(old, fresh, true), m.stableRows(old, fresh, false)]",
        [[{"id": "a"}, {"id": "b"}], [{"id": "c"}, {"id": "a", "now": 1}]],
    )
    assert response[0] == {"rows": [{"id": "a", "now": 1}, {"id": "b"}], "held": 1}
    assert response[1] == {"rows": [{"id": "c"}, {"id": "a", "now": 1}], "held": 0}
