"""The page of a stack: graph, debugger, actions, live updates and errors."""

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser.conftest import Visitor
from tests.support.access import insert_credential
from tests.support.postgres import TestServer
from tests.support.program import Http, Json, Program, ServerProcess, resource
from tests.support.receiver import until

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}
INNER = """
heat_template_version: 2018-08-31
resources:
  one: {type: OS::Heat::TestResource, properties: {value: x}}
  two: {type: OS::Heat::TestResource, properties: {value: {get_attr: [one, output]}}}
"""


def node(page: Page, name: str) -> Locator:
    """A node of the graph; its label contains its state."""
    return page.locator(
        ".graph-node:not([data-cleanup]) .graph-face",
        has=page.locator(f".graph-name:text-is('{name}')"),
    )


def status(page: Page) -> Locator:
    return page.get_by_role("status", name="Status")


async def expect_state(page: Page, name: str, how: str) -> None:
    await expect(node(page, name)).to_have_accessible_name(re.compile(how))


async def press_key(page: Page, key: str, button: str) -> None:
    """Press the key of a button of the debugger. The key has an effect only while the button is enabled."""
    debugger = page.get_by_role("region", name="Debugger")
    await expect(debugger.get_by_role("button", name=button, exact=True)).to_be_enabled()
    await page.keyboard.press(key)


async def create_waiting(http: Http, name: str, *rules: Json, **body: Json) -> str:
    """A stack with the chain `a`, `b`, `c`; one of their properties is a secret."""
    hidden = {"type": "string", "default": "s3cr3t-value", "hidden": True}
    body.setdefault("environment", {"hooks": list(rules)})
    document = {
        "stack_name": name,
        "template": {
            "heat_template_version": "2018-08-31",
            "parameters": {"word": hidden},
            "resources": {
                "a": resource("first"),
                "b": resource({"get_param": "word"}, depends_on="a"),
                "c": resource("last", depends_on="b"),
            },
            "outputs": {"last": {"value": {"get_attr": ["c", "output"]}}},
        },
        **body,
    }
    code, response = await http.call("POST", "/stacks", document)
    assert code == 201, response
    return str(response["stack"]["id"])


async def test_a_stack_is_stepped_through_while_another_user_watches(
    visitor: Visitor, visit: Callable[..., Any], http: Http
) -> None:
    """A stack waits at a breakpoint; inspect it, and set breakpoints by click and by key."""
    stack = await create_waiting(http, "shop", {"at": "a", "on": "pre-create"})
    other = await visit(http, viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page, beside = (
        await visitor.open("stack", "shop", stack),
        await other.open("stack", "shop", stack),
    )
    debugger = page.get_by_role("region", name="Debugger")
    await expect(debugger).to_contain_text("a at pre-create")
    await expect(status(page)).to_have_text("Waiting for approval")
    await expect(status(page).locator("svg")).to_be_visible()  # a shape in addition to the color
    await expect(status(page).locator("[data-state=gate]")).to_be_visible()
    await expect(page.locator(".stack-facts")).to_contain_text(
        re.compile(r"Create #1 by anonymous, .* ago, 1 waiting")
    )
    waiting = page.get_by_role("region", name="Waiting for approval")
    await expect(waiting.get_by_role("img", name="waiting for approval")).to_be_visible()
    await expect(waiting).to_contain_text("a at pre-create")
    await expect(waiting.get_by_role("button", name="Continue")).to_be_enabled()
    # Times are relative; the tooltip has the date.
    year = datetime.now(UTC).year
    await expect(waiting.locator("time").first).to_have_attribute(
        "title", re.compile(f"{year}|{year + 1}|{year - 1}")
    )
    assert not re.search(r"\d{4}", await waiting.inner_text())
    await page.get_by_text("2 not started").click()
    behind = page.get_by_role("listitem").filter(has_text="b (create) waits for a")
    await expect(behind).to_be_visible()
    assert await visitor.violations() == []
    await expect_state(beside, "a", "waiting for approval at pre-create")
    assert await other.violations() == []

    await node(page, "b").click()
    panel = page.get_by_role("complementary", name="b")
    await expect(panel.get_by_text("hidden", exact=True)).to_be_visible()
    await expect(panel.get_by_role("button", name="a", exact=True)).to_be_visible()
    assert "s3cr3t-value" not in await page.content()
    assert await visitor.violations() == []
    # By click on the left edge of the node, then by key at the focused node.
    await page.get_by_role("button", name="Breakpoint after b").click()
    await expect_state(page, "b", "breakpoints: post-create")
    await node(page, "c").focus()
    await page.keyboard.press("b")
    await expect_state(page, "c", "breakpoints: pre-create")
    response = await http.stack_request("GET", "shop", "/breakpoints")
    assert {(one["at"], one["on"]) for one in response["breakpoints"]} == {
        ("b", "post-create"), ("c", "pre-create"),
    }  # fmt: skip

    await debugger.get_by_role("button", name="Step", exact=True).click()
    await expect(debugger).to_contain_text("b at pre-create")
    await expect_state(beside, "a", "done")
    await expect_state(beside, "b", "waiting for approval at pre-create")
    await expect(beside.get_by_role("region", name="Debugger")).to_contain_text("b at pre-create")
    await press_key(page, "k", "Continue")
    await expect(debugger).to_contain_text("b at post-create")
    await press_key(page, "k", "Continue")
    await expect(debugger).to_contain_text("c at pre-create")
    await expect_state(beside, "c", "waiting for approval at pre-create")
    await node(page, "c").click()
    panel = page.get_by_role("complementary", name="c")
    await expect(panel.get_by_text("set on the live stack")).to_be_visible()
    await panel.get_by_role("textbox", name="Reason").fill("looks right")
    await panel.get_by_role("button", name="Continue").click()
    for one in (page, beside):
        await expect(status(one)).to_have_text(re.compile("CREATE_COMPLETE"))
        await expect_state(one, "c", "done")
    await panel.get_by_text("Earlier hooks").click()
    await expect(panel.get_by_text("looks right")).to_be_visible()
    # For later changes; then remove it.
    await panel.get_by_label("Point of the new breakpoint").select_option("post-update")
    await panel.get_by_role("button", name="Set breakpoint").click()
    taken = panel.get_by_role("button", name="Remove post-update")
    await taken.click()
    await expect(taken).to_have_count(0)
    await page.get_by_role("button", name="Outputs").click()
    await expect(page.get_by_role("row", name="last")).to_contain_text("last")


async def test_a_stack_is_deleted_while_it_is_shown(
    visitor: Visitor, visit: Callable[..., Any], http: Http
) -> None:
    """Another user deletes the stack; the graph stays. A stack that never existed."""
    stack = await create_waiting(http, "shop")
    assert await http.until_ended("shop") == "CREATE_COMPLETE"
    page = await visitor.open("stack", "shop", stack)
    await expect_state(page, "c", "done")
    await http.call("DELETE", f"/stacks/shop/{stack}", headers={"X-Auth-User": "grace"})
    gone = page.get_by_role("alert").filter(has_text="was deleted by grace")
    await expect(gone).to_be_visible()
    await expect(status(page)).to_have_text(re.compile("DELETE_COMPLETE"))
    await expect(page.get_by_role("button", name="a, cleanup, delete, done")).to_be_visible()
    for word in ("Delete…", "Stop…", "Check"):
        await expect(page.get_by_role("button", name=word)).to_have_count(0)
    assert await visitor.violations() == []
    await gone.get_by_role("link", name="All stacks").click()
    await expect(page.get_by_role("heading", name="Stacks")).to_be_visible()
    # A page that is opened later shows the same.
    await visitor.open("stack", "shop", stack)
    await expect(page.get_by_role("alert").filter(has_text="was deleted by grace")).to_be_visible()
    stack = await create_waiting(http, "kept")
    assert await http.until_ended("kept") == "CREATE_COMPLETE"
    await visitor.open("stack", "kept", stack)
    await expect_state(page, "c", "done")
    await http.stack_request("DELETE", "kept", "/abandon")
    abandoned = page.get_by_role("alert").filter(has_text="was abandoned")
    await expect(abandoned).to_contain_text("without deleting its physical resources")
    await expect(node(page, "c")).to_be_visible()
    await visitor.open("stack", "shop", "00000000-0000-4000-8000-000000000000")
    missing = page.get_by_role("alert").filter(has_text="has no stack shop")
    await expect(missing.get_by_role("link", name="All stacks")).to_be_visible()


async def test_a_stack_is_stopped_resumed_and_deleted(visitor: Visitor, http: Http) -> None:
    """Stop with a confirmation, resume, delete; a refusal is shown in the dialog."""
    stack = await create_waiting(http, "shop", {"at": "b", "on": "pre-create"})
    page = await visitor.open("stack", "shop", stack)
    await expect_state(page, "b", "waiting for approval at pre-create")
    await page.get_by_role("button", name="Stop…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("waiting hooks are superseded")
    assert await visitor.violations() == []
    await dialog.get_by_role("button", name="Stop").click()
    await expect(status(page)).to_have_text(re.compile("CREATE_STOPPED"))
    await expect(page.get_by_text("No change in progress.")).to_be_visible()
    await page.get_by_role("button", name="Resume change").click()
    await expect_state(page, "b", "waiting for approval at pre-create")
    debugger = page.get_by_role("region", name="Debugger")
    await debugger.get_by_role("button", name="Continue").press("Enter")
    await expect(status(page)).to_have_text(re.compile("COMPLETE"))
    await page.get_by_role("button", name="Versions").click()
    await expect(page.get_by_role("row", name=re.compile("create to version 1"))).to_contain_text(
        "stopped"
    )
    await page.get_by_role("button", name="Delete…").click()
    await expect(dialog).to_contain_text("The stack has 3 resources.")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="Delete…").click()
    delete = dialog.get_by_role("button", name="Delete shop")
    await dialog.get_by_label("Type shop to confirm").fill("sho")
    await expect(delete).to_be_disabled()
    assert await visitor.violations() == []
    await dialog.get_by_label("Type shop to confirm").fill("shop")
    await delete.press("Enter")
    deleted = page.get_by_role("alert").filter(has_text="was deleted by anonymous")
    await expect(deleted).to_be_visible()


@pytest.mark.parametrize("progress", ["STOPPED", "FAILED"])
async def test_the_buttons_continue_the_action_that_has_ended(
    visitor: Visitor, progress: str
) -> None:
    """An update would not continue a suspend, but resume the resources that it changes."""
    script = """(m, statuses) => statuses.map((stack_status) =>
        m.actionsFor({ stack_status, root: null, id: "1" }).map(({ name, request }) =>
            [name, request("/s")[0], Object.keys(request("/s")[2] ?? {}).join()]))"""
    updated = ["CREATE", "UPDATE", "ROLLBACK", "RESTORE", "ADOPT"]
    continued = {
        **{action: ["resume-change", "PATCH", ""] for action in updated},
        "DELETE": ["delete", "DELETE", ""],
        "CHECK": ["check", "POST", "check"],
        "SUSPEND": ["suspend", "POST", "suspend"],
        "RESUME": ["resume", "POST", "resume"],
        "SNAPSHOT": ["snapshot", "POST", ""],
    }
    statuses = [f"{action}_{progress}" for action in continued]
    shown = await visitor.module("stack/actions.js", script, statuses)
    found = dict(zip(continued, shown, strict=True))
    for action, button in continued.items():
        assert button in found[action]
    assert [one for one in found if continued["CREATE"] in found[one]] == updated
    replaced = [action for action, buttons in found.items() if buttons[0][0] == "replace-failed"]
    assert replaced == (["CHECK"] if progress == "FAILED" else [])


async def test_a_stack_is_checked_suspended_and_restored(visitor: Visitor, http: Http) -> None:
    """Check, suspend and resume; create, restore and delete a snapshot."""
    stack = await create_waiting(http, "shop")
    page = await visitor.open("stack", "shop", stack)
    await expect_state(page, "c", "done")
    dialog = page.get_by_role("dialog")
    await page.get_by_role("button", name="Check").click()
    await expect(status(page)).to_have_text(re.compile("CHECK_COMPLETE"))
    await page.get_by_role("button", name="Suspend…").click()
    await dialog.get_by_role("button", name="Suspend").click()
    await expect(status(page)).to_have_text(re.compile("SUSPEND_COMPLETE"))
    await expect(page.get_by_role("button", name="Suspend…")).to_have_count(0)
    await page.get_by_role("button", name="Resume").click()
    await expect(status(page)).to_have_text(re.compile("RESUME_COMPLETE"))

    await page.get_by_role("button", name="Snapshots").click()
    await expect(page.get_by_text("No snapshots yet.")).to_be_visible()
    await page.get_by_role("button", name="Snapshot", exact=True).click()
    made = page.get_by_role("region", name="Snapshots").get_by_role("row").nth(1)
    await expect(made).to_contain_text("SNAPSHOT_COMPLETE")
    assert await visitor.violations() == []
    await http.update("shop", parameters={"word": "another"}, existing=True)
    await expect(status(page)).to_have_text(re.compile("UPDATE_COMPLETE"))
    await made.get_by_role("button", name="Restore…").click()
    await dialog.get_by_role("button", name="Restore").click()
    await expect(status(page)).to_have_text(re.compile("RESTORE_COMPLETE"))
    await made.get_by_role("button", name="Delete…").click()
    await expect(dialog).to_contain_text("The stack does not change")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No snapshots yet.")).to_be_visible()

    await page.get_by_role("button", name="Snapshot", exact=True).click()
    await expect(made).to_contain_text("SNAPSHOT_COMPLETE")
    # The page reads the list again at the end of the action: wait before the stack is deleted.
    await expect(status(page)).to_have_text(re.compile("SNAPSHOT_COMPLETE"))
    await expect(page.get_by_text("Stack SNAPSHOT completed successfully")).to_be_visible()
    await http.stack_request("DELETE", "shop", "/abandon")
    await expect(page.get_by_role("alert").filter(has_text="was abandoned")).to_be_visible()
    await expect(made).to_be_visible()
    await expect(page.get_by_role("button", name="Restore…")).to_have_count(0)


async def test_a_step_focuses_the_first_missing_field(visitor: Visitor, http: Http) -> None:
    """The step is sent with the data of the form once it is complete."""
    schema = {
        "type": "object",
        "properties": {"note": {"type": "string"}, "ticket": {"type": "string"}},
        "required": ["ticket"],
    }
    rule = {"at": "b", "on": "pre-create", "ask": {"schema": schema}}
    stack = await create_waiting(http, "shop", rule)
    (hook,) = await http.waiting_hooks("shop")
    page = await visitor.open("stack", "shop", stack)
    debugger = page.get_by_role("region", name="Debugger")
    await expect(debugger).to_contain_text("b at pre-create")
    await press_key(page, "s", "Step")
    ticket = page.get_by_role("complementary", name="b").get_by_label("ticket")
    await expect(ticket).to_be_focused()
    await expect(ticket).to_have_attribute("aria-invalid", "true")
    await ticket.fill("OPS-17")
    await debugger.get_by_role("button", name="Step", exact=True).press("Enter")
    await expect_state(page, "c", "waiting for approval at pre-create")
    _, answered = await http.call("GET", f"/hooks/{hook['id']}")
    assert answered["decision"] == "step"  # the server requires the ticket


async def test_ids_are_copied(visitor: Visitor, http: Http) -> None:
    stack = await create_waiting(http, "shop")
    page = await visitor.open("stack", "shop", stack)
    await page.evaluate(
        """() => {
            window.copied = [];
            navigator.clipboard.writeText = async (text) => { window.copied.push(text); };
        }"""
    )
    await page.get_by_role("button", name="Copy the ID of the stack").click()
    await expect_state(page, "c", "done")
    await node(page, "c").click()
    await page.get_by_role("button", name="Copy the physical ID").click()
    await expect(page.get_by_text("Copied the physical ID.")).to_be_visible()
    resources = await http.resources("shop")
    assert await page.evaluate("copied") == [stack, resources["c"]["physical_resource_id"]]


async def test_the_page_says_at_once_what_it_loads(visitor: Visitor, http: Http) -> None:
    """Large stacks take a while: the graph, and why each node waits."""
    may_answer = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_answer.wait()
        await route.continue_()

    stack = await create_waiting(http, "shop", {"at": "b", "on": "pre-create"})
    await visitor.page.route("**/graph?nested=true", hold)
    await visitor.page.route("**/why", hold)
    page = await visitor.open("stack", "shop", stack)
    loading = page.get_by_role("status").filter(has_text="Loading the graph…")
    await expect(loading.locator(".spinner")).to_be_visible()
    assert await visitor.violations() == []
    await page.unroute("**/graph?nested=true")
    may_answer.set()
    await expect_state(page, "b", "waiting for approval at pre-create")
    await expect(page.get_by_text("1 not started")).to_be_visible()
    await expect(page.locator(".spinner")).to_have_count(0)


async def test_on_a_phone_the_graph_gets_the_screen(visit: Callable[..., Any], http: Http) -> None:
    """Actions, tabs and the tools of the graph are folded."""
    visitor = await visit(http, viewport={"width": 390, "height": 844}, has_touch=True)
    stack = await create_waiting(http, "shop", {"at": "b", "on": "pre-create"})
    page = await visitor.open("stack", "shop", stack)
    await expect_state(page, "b", "waiting for approval at pre-create")
    debugger = page.get_by_role("region", name="Debugger")
    await expect(debugger.get_by_role("button", name="Continue")).to_be_visible()
    box = await page.locator(".graph-stage").bounding_box()
    assert box
    assert box["y"] < 380
    assert box["height"] > 400
    await expect(page.get_by_role("searchbox", name="Search nodes")).to_have_count(0)
    await page.get_by_role("button", name="Search and group").click()
    await expect(page.get_by_role("searchbox", name="Search nodes")).to_be_visible()
    actions = page.get_by_role("button", name="Actions")
    await actions.click()
    await expect(page.get_by_role("link", name="Edit")).to_be_visible()
    assert await visitor.violations() == []
    await page.keyboard.press("Escape")
    await expect(actions).to_be_focused()
    await expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    await actions.click()
    await page.get_by_role("button", name="Stop…").click()
    await expect(page.get_by_role("dialog")).to_contain_text("waiting hooks are superseded")


async def test_an_update_is_cancelled(visitor: Visitor, http: Http) -> None:
    """The stack rolls back to the last version, and its hook does not wait any more."""
    stack = await create_waiting(http, "shop", {"at": "b", "on": "pre-update"})
    assert await http.until_ended("shop") == "CREATE_COMPLETE"
    page = await visitor.open("stack", "shop", stack)
    await expect(page.get_by_role("button", name="Roll back…")).to_have_count(0)
    await http.update("shop", parameters={"word": "another"}, existing=True)
    await expect_state(page, "b", "waiting for approval at pre-update")
    await page.get_by_role("button", name="Roll back…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("the last version it reached")
    await dialog.get_by_role("button", name="Roll back").click()
    await expect(status(page)).to_have_text(re.compile("ROLLBACK_COMPLETE"))
    _, response = await http.call("GET", "/hooks?state=waiting&stack=shop")
    assert response["hooks"] == []


async def test_a_nested_stack_by_keyboard_on_a_phone(visit: Callable[..., Any], http: Http) -> None:
    """Step into, expand in place, run to a resource; no element is wider than the window."""
    visitor = await visit(http, **PHONE)
    resources = {"web": {"type": "inner.yaml"}, "last": resource("x", depends_on="web")}
    rules = [{"at": "web", "on": "pre-create"}]
    stack = await http.create(
        "tree", resources, files={"inner.yaml": INNER}, environment={"hooks": rules}
    )
    page = await visitor.open("stack", "tree", stack)
    debugger = page.get_by_role("region", name="Debugger")
    await expect(debugger).to_contain_text("web at pre-create")
    await press_key(page, "d", "Step into")
    await expect(debugger).to_contain_text("web/one at pre-create")
    await expect(page.get_by_role("button", name="Nested stack of web")).to_be_visible()
    await node(page, "web").focus()
    await page.keyboard.press("u")
    await expect_state(page, "one", "waiting for approval at pre-create")
    await page.keyboard.press("i")
    await page.keyboard.press("ArrowRight")
    await expect(node(page, "two")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("complementary", name="two")).to_contain_text("web/two")
    await press_key(page, "t", "Run to two")
    await expect(debugger).to_contain_text("web/two at pre-create")
    await expect_state(page, "one", "done")
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await page.evaluate("scrollTo(0, 0)")  # the header covers no button
    assert await visitor.violations() == []
    await press_key(page, "r", "Run to end")
    await expect(status(page)).to_have_text(re.compile("CREATE_COMPLETE"))
    await expect_state(page, "last", "done")
    await page.get_by_role("combobox", name="View of the stack").select_option("Resources")
    await expect(page.get_by_role("button", name="web/two", exact=True)).to_be_visible()
    await page.get_by_role("searchbox", name="Search").fill("web/o")
    await expect(page.get_by_role("button", name="web/two")).to_have_count(0)
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert await visitor.violations() == []


async def test_the_page_reconnects_after_a_restart_of_the_server(
    visit: Callable[..., Any], postgres: TestServer, tmp_path: Path
) -> None:
    """Changes during a restart of the server are on the page afterwards."""
    async with postgres.new_database() as url:
        await restart_and_reconnect(visit, ServerProcess(tmp_path, database_url=url))


async def restart_and_reconnect(visit: Callable[..., Any], process: ServerProcess) -> None:
    process.start()
    try:
        async with aiohttp.ClientSession() as session:
            http = Http(session, process.url, "p")
            stack = await create_waiting(http, "shop", {"at": "b", "on": "pre-create"})
            visitor = await visit(http)
            page = await visitor.open("stack", "shop", stack)
            await expect_state(page, "b", "waiting for approval at pre-create")
            process.stop()
            await expect(page.get_by_text("The event stream disconnected")).to_be_visible()
            box = await page.locator(".bar").bounding_box()
            assert box and box["height"] < 60  # one or two lines with a small icon
            await expect_state(page, "b", "waiting for approval at pre-create")
            process.start()
            (hook,) = await http.waiting_hooks("shop")
            assert (await http.signal(hook))[0] == 200
            await expect(page.get_by_text("The event stream disconnected")).to_have_count(0)
            await expect(status(page)).to_have_text(re.compile("CREATE_COMPLETE"))
            await expect_state(page, "c", "done")
            await page.close()
    finally:
        process.stop()


async def test_the_help_of_the_keyboard_shortcuts_begins_at_its_title(
    visitor: Visitor, http: Http
) -> None:
    """The list is longer than the window, and its focused button is at the end."""
    stack = await create_waiting(http, "shop", {"at": "*", "on": "pre-create"})
    page = await visitor.open("stack", "shop", stack)
    await expect(page.get_by_role("region", name="Debugger")).to_contain_text("a at pre-create")
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    await expect(dialog.get_by_role("heading", name="Keyboard shortcuts")).to_be_in_viewport()


async def test_the_timeline_shows_the_graphs_that_were_shown_live(
    visitor: Visitor, http: Http
) -> None:
    """Record the graph at each stop; the timeline shows the same graphs."""
    stack = await create_waiting(http, "shop", {"at": "*", "on": "pre-create"})
    page = await visitor.open("stack", "shop", stack)
    debugger = page.get_by_role("region", name="Debugger")
    seen = []
    for name in ("a", "b", "c"):
        await expect(debugger).to_contain_text(f"{name} at pre-create")
        await expect_state(page, name, "waiting for approval at pre-create")
        seen.append(await labels(page))
        await press_key(page, "k", "Continue")
    await expect_state(page, "c", "done")
    assert len({str(one) for one in seen}) == 3
    # A graph that was not moved is in the window on the timeline, too.
    await page.get_by_role("button", name="Timeline").click()
    await expect(page.get_by_role("region", name="Past graph of shop")).to_be_visible()
    await expect(node(page, "a")).to_be_in_viewport(ratio=0.99)
    await page.get_by_role("button", name="Back to live").click()
    await expect(page.get_by_role("region", name="Past graph of shop")).to_have_count(0)
    await expect(node(page, "a")).to_be_in_viewport(ratio=0.99)
    before = await drawn_places(page)
    await page.get_by_role("button", name="Zoom in").click()

    async def zoomed() -> list[str]:
        return places if (places := await drawn_places(page)) != before else []

    places = await until(zoomed, "the graph is zoomed")
    await page.get_by_role("button", name="Timeline").click()
    slider = page.get_by_role("slider", name="Event")
    await expect(slider).to_have_attribute("aria-valuetext", re.compile("create completed$"))
    assert await visitor.violations() == []
    assert await drawn_places(page) == places
    for name, labelled in reversed(list(zip(("a", "b", "c"), seen, strict=True))):
        await page.get_by_role("button", name="Previous marker").click()
        text = re.compile(f"{name} is waiting for approval at pre-create$")
        await expect(slider).to_have_attribute("aria-valuetext", text)
        await expect_state(page, name, "waiting for approval at pre-create")
        assert await labels(page) == labelled
    await slider.focus()
    await page.keyboard.press("ArrowLeft")
    await expect(node(page, "a")).not_to_have_accessible_name(re.compile("waiting for approval at"))
    await page.keyboard.press("ArrowRight")
    await expect_state(page, "a", "waiting for approval at pre-create")
    await page.keyboard.press("h")
    await expect(slider).to_have_count(0)
    await expect_state(page, "a", "done")
    # An earlier traversal has its graph and every stop, too.
    await http.update("shop", parameters={"word": "another"}, existing=True)
    await expect_state(page, "b", "update")
    assert await http.until_ended("shop") == "UPDATE_COMPLETE"
    await page.get_by_role("button", name="Versions").click()
    await page.get_by_role("button", name="Timeline of 1").click()
    await expect(slider).to_have_attribute("aria-valuetext", re.compile("create completed$"))
    await page.get_by_role("button", name="Previous marker").click()
    await expect_state(page, "c", "waiting for approval at pre-create")
    await page.get_by_role("combobox", name="Traversal").select_option(label="2: update, complete")
    await expect(slider).to_have_attribute("aria-valuetext", re.compile("update completed$"))
    await expect_state(page, "b", "update")


async def labels(page: Page) -> list[str]:
    found = await page.locator(".graph-face").evaluate_all("all => all.map((one) => one.title)")
    return sorted(found)


async def drawn_places(page: Page) -> list[str]:
    """Where the graph and each of its nodes are drawn."""
    found: list[str] = await page.locator(".graph-world, .graph-node").evaluate_all(
        "all => all.map((one) => `${one.dataset.key}: ${one.style.transform}`)"
    )
    return sorted(found)


async def test_the_stack_page_of_a_reader(visit: Callable[..., Any], token_server: Program) -> None:
    """A reader sees everything and no button that changes anything."""
    author = await insert_credential(token_server.database, "look", "ann", ["author"])
    reader = await insert_credential(token_server.database, "look", "rita", ["reader"])
    async with aiohttp.ClientSession(headers={"X-Auth-Token": author}) as session:
        http = Http(session, token_server.url, "look")
        stack = await create_waiting(http, "shop", {"at": "b", "on": "pre-create"})
        visitor = await visit(http)
        page = await visitor.open("stack", "shop", stack)
        await page.get_by_label("Token", exact=True).fill(reader)
        await page.get_by_role("button", name="Sign in").click()
        await expect_state(page, "b", "waiting for approval at pre-create")
        await node(page, "b").click()
        panel = page.get_by_role("complementary", name="b")
        await expect(panel).to_contain_text("You do not have permission")
        await expect(panel.get_by_text("No breakpoints.")).to_have_count(0)
        debugger = page.get_by_role("region", name="Debugger")
        await expect(debugger.get_by_role("button", name="Timeline")).to_be_visible()
        for word in ("Step", "Continue", "Run to", "Stop…", "Delete…", "Set", "Protect"):
            await expect(page.get_by_role("button", name=word)).to_have_count(0)
        await expect(page.get_by_role("link", name="Edit")).to_have_count(0)
        await page.keyboard.press("s")
        await expect(debugger).to_contain_text("b at pre-create")
        assert await visitor.violations() == []
        assert len(await http.waiting_hooks("shop")) == 1
