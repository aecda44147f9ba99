"""The editor of existing and new stacks: texts, plan and apply."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from playwright.async_api import Dialog, Page, Route, expect

from tests.browser.conftest import PATIENCE, Visitor
from tests.support.access import insert_credential
from tests.support.program import Http, Json, Program, eventually, identity_headers, resource

Visit = Callable[..., Awaitable[Visitor]]
TEMPLATE: Json = {
    "heat_template_version": "2018-08-31",
    "parameters": {
        "size": {"type": "number", "default": 1, "constraints": [{"range": {"min": 1, "max": 5}}]},
        "tier": {"type": "string", "default": "test", "constraints": [
            {"allowed_values": ["test", "prod"]}]},
        "password": {"type": "string", "hidden": True},
    },
    "resources": {
        "db": resource({"get_param": "size"}, hooks={"on": "post-create", "mode": "stop"}),
        "web": {"type": "OS::Heat::TestResource", "depends_on": "db", "properties": {
            "value": {"get_param": "password"}, "update_replace_value": {"get_param": "tier"}}},
    },
    "outputs": {"password": {"value": {"get_param": "password"}}},
}  # fmt: skip
NEW = """\
heat_template_version: 2018-08-31
resources:
  first:
    type: OS::Heat::TestResource
    properties: {valu: 1}
"""


async def create_complete(http: Http, name: str = "s", **more: Json) -> str:
    body = {"stack_name": name, "template": TEMPLATE, "parameters": {"password": "s3cret"}, **more}
    status, response = await http.call("POST", "/stacks", body, headers=identity_headers("ada"))
    assert status == 201, response
    return str(response["stack"]["id"])


async def until_planned(page: Page, text: str | re.Pattern[str]) -> None:
    """Wait until the plan contains a text."""
    plan = page.get_by_role("region", name="Plan", exact=True)
    await expect(plan).not_to_have_attribute("aria-busy", "true")
    await expect(plan).to_contain_text(text)


async def nested(http: Http) -> list[Json]:
    """All stacks with nested stacks."""
    _, response = await http.call("GET", "/stacks?show_nested=true")
    return list(response["stacks"])


async def check_width(page: Page) -> None:
    """No element is wider than the window."""
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


async def test_a_new_stack_is_written_corrected_and_created_by_keyboard(
    visitor: Visitor, http: Http
) -> None:
    page = await visitor.open("new")
    await expect(page.get_by_role("textbox", name="Stack name")).to_be_focused()
    await page.keyboard.type("shop")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("tab", name="Template")).to_be_focused()
    await page.keyboard.press("Tab")
    text = page.get_by_role("textbox", name="Template")
    await expect(text).to_be_focused()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(NEW)
    wrong = page.get_by_role("button", name="template 5")
    await expect(wrong).to_contain_text('Unknown Property valu Did you mean "value"?')
    await expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    await until_planned(page, "No plan: 1 error.")
    assert await visitor.violations() == []
    # Tab leaves the text, and the list of errors leads back to the line.
    await page.keyboard.press("Tab")
    await expect(wrong).to_be_focused()
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("Fix the listed errors first")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(text).to_be_focused()
    await expect(page.locator(".cm-activeLine")).to_contain_text("valu")
    await page.keyboard.insert_text("value")
    await expect(wrong).to_have_count(0)
    await until_planned(page, "1 added.")
    # Fast typing while the page renders late: no character is lost.
    await page.keyboard.press("Control+End")
    await page.keyboard.type("outputs: {a: {value: {get_attr: [first, output]}}}")
    await expect(text).to_contain_text("outputs: {a: {value: {get_attr: [first, output]}}}")
    await until_planned(page, "1 added.")
    await page.keyboard.press("Control+Enter")
    await expect(page).to_have_url(re.compile(r"/stack/shop/"))
    assert await http.until_ended("shop") == "CREATE_COMPLETE"
    outputs = (await http.stack("shop"))["outputs"]
    assert [one["output_value"] for one in outputs] == ["1"]


async def test_a_stopped_stack_is_changed_and_resumed(visitor: Visitor, http: Http) -> None:
    stack = await create_complete(http, timeout_mins=30, tags=["old"])
    assert await http.until_ended("s") == "CREATE_STOPPED"
    page = await visitor.open("edit", "s", stack)
    await expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    await until_planned(page, "1 added, 1 unchanged.")
    await page.get_by_role("tab", name="Parameters").click()
    await expect(page.get_by_text("Hidden value, unchanged.")).to_be_visible()
    size = page.get_by_role("textbox", name="size")
    await size.fill("9")
    await expect(page.get_by_text("out of range").first).to_be_visible()
    assert await visitor.violations() == []
    # The response to the last request counts, in any order of responses.
    blocked, released = asyncio.Event(), asyncio.Event()

    async def respond_later(route: Route) -> None:
        if blocked.is_set() or "size: 2" not in (route.request.post_data or ""):
            return await route.continue_()
        blocked.set()
        answer = await route.fetch()
        await expect(page.get_by_role("region", name="Updated resources")).to_contain_text("→ 3")
        await route.fulfill(response=answer)
        released.set()

    await page.route("**/preview?*", respond_later)
    await size.fill("2")
    async with asyncio.timeout(PATIENCE / 1000):
        await blocked.wait()
    await size.fill("3")
    async with asyncio.timeout(PATIENCE / 1000):
        await released.wait()
    await page.evaluate("fetch(document.baseURI).then((answer) => answer.text())")
    await until_planned(page, "1 updated, 1 added.")
    changed = page.get_by_role("region", name="Updated resources")
    await expect(changed).to_contain_text("1 → 3")
    added = page.get_by_role("region", name="Added resources")
    await added.get_by_text("properties").click()
    await expect(added).to_contain_text("hidden")
    await expect(page.locator("body")).not_to_contain_text("s3cret")
    # Add a breakpoint for this change, and skip another one.
    await page.get_by_role("button", name="Stop before db").click()
    await page.get_by_role("button", name="Stop before web").click()
    stops = page.get_by_role("region", name="Breakpoints")
    await expect(stops).to_contain_text("anyone in the project")
    await stops.get_by_role("button", name="Skip db:pre-update").click()
    await expect(stops.get_by_role("listitem")).to_have_count(1)
    await page.get_by_role("tab", name="Options").click()
    await page.get_by_role("textbox", name="Tags").fill("new, newer")
    await expect(page.get_by_text("Stop at web:pre-create")).to_be_visible()
    assert await visitor.violations() == []
    await page.get_by_role("tab", name="Environment").click()
    await expect(page.get_by_role("textbox", name="Environment")).to_contain_text("size: 3")
    await until_planned(page, "1 updated, 1 added.")
    await page.get_by_role("button", name="Resume with changes").click()
    await expect(page).to_have_url(re.compile(rf"/stack/s/{stack}"))
    (hook,) = await http.waiting_hooks("s")
    assert hook["point"] == "pre-create" and hook["resource_name"] == "web"
    await http.signal(hook)
    assert await http.until_ended("s") == "UPDATE_COMPLETE"
    found = await http.stack("s")
    assert found["tags"] == ["new", "newer"] and found["timeout_mins"] == 30
    assert {one["output_value"] for one in found["outputs"]} == {"s3cret"}


async def test_the_editor_shows_that_the_stack_waits_for_approval(
    visitor: Visitor, http: Http
) -> None:
    rule = {"hooks": [{"at": "web", "on": "pre-create"}]}
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {"web": resource()},
    }
    body = {"stack_name": "s", "template": template, "environment": rule}
    status, response = await http.call("POST", "/stacks", body)
    assert status == 201, response
    (hook,) = await http.waiting_hooks("s")
    page = await visitor.open("edit", "s", str(response["stack"]["id"]))
    badge = page.locator(".edit-head .badge")
    await expect(badge).to_have_text("Waiting for approval")
    answer = {"decision": "continue"}
    assert (await http.call("POST", f"/hooks/{hook['id']}/signal", answer))[0] == 200
    await expect(badge).to_have_text("CREATE_COMPLETE")


async def test_another_user_changes_the_stack_during_editing(visitor: Visitor, http: Http) -> None:
    stack = await create_complete(http)
    assert await http.until_ended("s") == "CREATE_STOPPED"
    await http.update("s")
    assert await http.until_ended("s") == "UPDATE_COMPLETE"
    page = await visitor.open("edit", "s", stack)
    await page.get_by_role("tab", name="Parameters").click()
    await page.get_by_role("combobox", name="tier").select_option("prod")
    await until_planned(page, "1 replaced, 1 unchanged.")
    body = {"parameters": {"size": 2}}
    path = f"/stacks/s/{stack}"
    assert (await http.call("PATCH", path, body, headers=identity_headers("bob")))[0] == 202
    notice = page.get_by_role("alert", name="Stack changed")
    await expect(notice).to_contain_text("bob changed this stack")
    await expect(notice).to_contain_text("environment.parameters.size: 2")
    assert await visitor.violations() == []
    assert await http.until_ended("s") == "UPDATE_COMPLETE"
    # The update replaces the other change, as the plan shows.
    await notice.get_by_role("button", name="Keep my changes").click()
    await until_planned(page, re.compile("1 replaced, 1 updated"))
    # A new breakpoint causes no event, but changes the plan.
    rules = {"breakpoints": ["db:pre-update"]}
    assert (await http.call("POST", f"{path}/breakpoints", rules))[0] == 201
    await page.keyboard.press("Control+Enter")
    dialog = page.get_by_role("dialog", name="Update?")
    await expect(dialog).to_contain_text("web")
    await dialog.get_by_role("button", name="Update").click()
    await expect(page.get_by_role("alert")).to_contain_text(
        "the plan changed since you reviewed it"
    )
    stops = page.get_by_role("region", name="Breakpoints")
    await expect(stops).to_contain_text("pre-update db")
    await stops.get_by_role("button", name="Skip db:pre-update").click()
    await expect(stops.get_by_role("listitem")).to_have_count(0)
    await stops.get_by_role("button", name="Restore").click()
    await expect(stops.get_by_role("listitem")).to_have_count(1)
    # Leaving the page requires confirmation; stay.
    await page.get_by_role("link", name="Inbox").click()
    await page.get_by_role("button", name="Stay").click()
    await expect(page.get_by_role("heading", name="Edit s")).to_be_visible()
    await expect(page.get_by_role("combobox", name="tier")).to_have_value("prod")
    await page.get_by_role("button", name="Update", exact=True).click()
    await expect(page).to_have_url(re.compile(rf"/stack/s/{stack}"))
    (hook,) = await http.waiting_hooks("s")
    assert hook["path"] == "db"


TWICE = NEW.replace("{valu: 1}", "{value: 1}\n    properties: {value: 2}")


async def test_warnings_are_listed_lead_to_their_lines_and_allow_a_create(
    visitor: Visitor, http: Http
) -> None:
    page = await visitor.open("new")
    await page.get_by_role("textbox", name="Stack name").fill("shop")
    text = page.get_by_role("textbox", name="Template")
    await text.click()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(TWICE)
    await until_planned(page, "1 added")
    warnings = page.get_by_role("region", name="Warnings")
    await expect(warnings).to_contain_text('The key "properties" is given twice')
    quote = warnings.locator("code.quote")
    assert await quote.text_content() == "    properties: {value: 2}\n    ^"
    await expect(page.get_by_role("region", name="Errors").get_by_role("button")).to_have_count(0)
    assert await visitor.violations() == []
    await warnings.get_by_role("button", name="template 6").click()
    await expect(page.locator(".cm-activeLine")).to_contain_text("value: 2")
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page).to_have_url(re.compile(r"/stack/shop/"))
    assert await http.until_ended("shop") == "CREATE_COMPLETE"


async def test_a_refused_template_shows_its_warnings_beside_the_errors(visitor: Visitor) -> None:
    page = await visitor.open("new")
    await page.get_by_role("textbox", name="Stack name").fill("shop")
    await page.get_by_role("textbox", name="Template").click()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(TWICE.replace("{value: 2}", "{value: 2, valu: 3}"))
    errors = page.get_by_role("region", name="Errors")
    await expect(errors).to_contain_text("Unknown Property valu")
    warnings = page.get_by_role("region", name="Warnings")
    await expect(warnings).to_contain_text('The key "properties" is given twice')


async def test_a_stack_is_deleted_during_editing_and_created_again_from_the_draft(
    visit: Visit, http: Http
) -> None:
    stack = await create_complete(http)
    assert await http.until_ended("s") == "CREATE_STOPPED"
    visitor = await visit(http, viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = await visitor.open("edit", "s", stack)
    await until_planned(page, "1 added, 1 unchanged.")
    await check_width(page)
    await page.get_by_role("tab", name="Files").click()
    await page.get_by_role("textbox", name="New file").fill("inside.yaml")
    await page.keyboard.press("Enter")
    text = page.get_by_role("textbox", name="File inside.yaml")
    await text.click()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(NEW.replace("valu:", "value:"))
    assert await visitor.violations() == []
    await check_width(page)
    await http.stack_request("DELETE", "s")
    await expect(page.get_by_text("The stack was deleted.")).to_be_visible()
    await page.get_by_role("button", name="Create a new stack from it").click()
    await page.get_by_role("textbox", name="Stack name").fill("again")
    await page.get_by_role("tab", name="Parameters").click()
    await page.get_by_role("textbox", name="password").fill("other")
    await page.get_by_role("tab", name="Template").click()
    await page.get_by_role("textbox", name="Template").click()
    await page.keyboard.press("Control+a")
    template = "heat_template_version: 2018-08-31\nresources: {in: {type: inside.yaml}}\n"
    await page.keyboard.insert_text(template)
    await expect(page.get_by_role("button", name="environment")).to_be_visible()
    await page.get_by_role("tab", name="Environment").click()
    await page.get_by_role("textbox", name="Environment").click()
    await page.keyboard.press("Control+a")
    await page.keyboard.press("Delete")
    await until_planned(page, "2 added.")
    await expect(page.get_by_role("region", name="Added resources")).to_contain_text("in/first")
    await check_width(page)
    await page.get_by_role("button", name="Create").click()
    await expect(page).to_have_url(re.compile(r"/stack/again/"))
    assert await http.until_ended("again") == "CREATE_COMPLETE"
    # Its nested stack changes with it.
    inside = (await http.resources("again"))["in"]["physical_resource_id"]
    name = next(one["stack_name"] for one in await nested(http) if one["id"] == inside)
    await visitor.open("edit", name, inside)
    await page.get_by_role("link", name="edit again").click()
    await expect(page.get_by_role("heading", name="Edit again")).to_be_visible()
    await until_planned(page, "No changes: 2 unchanged.")


async def test_a_draft_survives_a_reload_without_its_secrets(visitor: Visitor, http: Http) -> None:
    stack = await create_complete(http)
    assert await http.until_ended("s") == "CREATE_STOPPED"
    page = await visitor.open("edit", "s", stack)
    warnings: list[str] = []

    async def accept(dialog: Dialog) -> None:
        warnings.append(dialog.type)
        await dialog.accept()

    page.on("dialog", accept)
    text = page.get_by_role("textbox", name="Template")
    await text.click()
    await page.keyboard.press("Control+Home")
    await page.keyboard.insert_text("# mine\n")
    await page.get_by_role("tab", name="Parameters").click()
    await page.get_by_role("combobox", name="tier").select_option("prod")
    await page.get_by_role("button", name="Change password").click()
    await page.get_by_role("textbox", name="password").fill("0ther-s3cret")
    # While the template has errors, it is not known which parameters are hidden.
    await page.get_by_role("tab", name="Template").click()
    await text.click()
    await page.keyboard.press("Control+Home")
    await page.keyboard.insert_text("[\n")
    stored = "JSON.stringify(sessionStorage)"
    await eventually(lambda: page.evaluate(f"{stored}.includes('[')"))
    assert "0ther-s3cret" not in await page.evaluate(stored)
    await page.keyboard.press("Control+z")
    await until_planned(page, "1 added, 1 unchanged.")
    # A reload loses the hidden value, so the browser asks.
    await page.reload()
    notice = page.get_by_role("note").filter(has_text="Your changes were restored")
    await expect(notice).to_contain_text("Hidden values are not stored: enter them again.")
    assert warnings == ["beforeunload"]
    assert "0ther-s3cret" not in await page.evaluate(stored)
    await expect(text).to_contain_text("# mine")
    await page.get_by_role("tab", name="Parameters").click()
    await expect(page.get_by_role("combobox", name="tier")).to_have_value("prod")
    await until_planned(page, "1 added, 1 unchanged.")
    assert await visitor.violations() == []
    # Nothing is lost now. Another user's change is shown, although it came before the page.
    body = {"parameters": {"size": 2}}
    status, _ = await http.call(
        "PATCH", f"/stacks/s/{stack}", body, headers=identity_headers("bob")
    )
    assert status == 202
    await page.reload()
    await expect(page.get_by_role("alert", name="Stack changed")).to_contain_text("bob changed")
    assert warnings == ["beforeunload"]
    await notice.get_by_role("button", name="Discard my changes").click()
    await expect(notice).to_have_count(0)
    await expect(text).not_to_contain_text("# mine")
    await expect(page.get_by_role("alert", name="Stack changed")).to_have_count(0)
    assert await page.evaluate("Object.keys(sessionStorage)") == []


async def test_the_draft_of_a_new_stack_survives_a_reload_and_ends_with_it(
    visitor: Visitor, http: Http
) -> None:
    page = await visitor.open("new")
    await page.get_by_role("textbox", name="Stack name").fill("shop")
    text = page.get_by_role("textbox", name="Template")
    await text.click()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text("resources: [")
    await page.get_by_role("tab", name="Environment").click()
    await page.get_by_role("textbox", name="Environment").click()
    await page.keyboard.insert_text("parameters: {pin: 0ther-s3cret}")
    page.on("dialog", lambda dialog: dialog.accept())
    await page.reload()
    await expect(page.get_by_role("note")).to_contain_text("Hidden values are not stored")
    assert "0ther-s3cret" not in await page.evaluate("JSON.stringify(sessionStorage)")
    await expect(page.get_by_role("textbox", name="Stack name")).to_have_value("shop")
    await expect(text).to_contain_text("resources: [")
    await text.click()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(NEW.replace("valu:", "value:"))
    await until_planned(page, "1 added.")
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page).to_have_url(re.compile(r"/stack/shop/"))
    assert await http.until_ended("shop") == "CREATE_COMPLETE"
    await visitor.open("new")
    await expect(page.get_by_role("textbox", name="Stack name")).to_have_value("")
    await expect(text).to_contain_text("OS::Heat::Value")
    assert await page.evaluate("Object.keys(sessionStorage)") == []


async def test_a_session_ends_during_editing_and_a_reader_cannot_edit(
    visit: Visit, token_server: Program
) -> None:
    async def token(name: str, role: str) -> str:
        return await insert_credential(token_server.database, "team", name, [role])

    async def signed_in(page: Page, token_text: str) -> None:
        await page.get_by_label("Token", exact=True).last.fill(token_text)
        await page.get_by_role("button", name="Sign in").click()

    author, other, reader = (
        await token("a", "author"),
        await token("o", "author"),
        await token("r", "reader"),
    )
    http = Http(token_server.session, token_server.url, "team")
    token_server.session.headers["X-Auth-Token"] = author
    stack = await create_complete(http)
    assert await http.until_ended("s") == "CREATE_STOPPED"
    visitor = await visit(http)
    page = await visitor.open("edit", "s", stack)
    await signed_in(page, author)
    await until_planned(page, "1 added, 1 unchanged.")
    text = page.get_by_role("textbox", name="Template")
    await text.click()
    await page.context.clear_cookies()
    await page.keyboard.press("Control+Home")
    await page.keyboard.insert_text("# mine\n")  # at once: the dialog takes later keys
    dialog = page.get_by_role("dialog", name="Your session has ended")
    await expect(dialog).to_be_visible()
    await signed_in(page, other)
    await expect(dialog).to_have_count(0)
    await expect(text).to_contain_text("# mine")
    await until_planned(page, "1 added, 1 unchanged.")
    await expect(page.get_by_role("button", name="Resume with changes")).to_be_visible()
    # Unsaved changes require a confirmation for a link and for signing out.
    unsaved = page.get_by_role("dialog", name="Leave without saving?")
    await page.get_by_role("link", name="Stacks", exact=True).click()
    await unsaved.get_by_role("button", name="Stay").click()
    await expect(text).to_contain_text("# mine")
    sign_out = page.get_by_role("button", name="Sign out")
    await page.route("**/session", lambda route: route.abort())
    await sign_out.click()
    await unsaved.get_by_role("button", name="Leave").click()
    await expect(page.get_by_text("Could not sign out")).to_be_visible()
    await expect(text).to_contain_text("# mine")
    await page.unroute("**/session")
    # As the draft of an answer is stored.
    await page.evaluate("sessionStorage.setItem('headgate.drafts', '{}')")
    await sign_out.click()
    await unsaved.get_by_role("button", name="Leave").click()
    await expect(page.get_by_label("Token", exact=True)).to_be_visible()
    assert await page.evaluate("Object.keys(sessionStorage)") == []

    watcher = await visit(http)
    page = await watcher.open("edit", "s", stack)
    await signed_in(page, reader)
    await expect(
        page.get_by_text("You do not have permission to change this stack")
    ).to_be_visible()
    text = page.get_by_role("textbox", name="Template")
    await expect(text).to_contain_text("OS::Heat::TestResource")
    await text.click()
    await page.keyboard.type("zz")
    await expect(text).not_to_contain_text("zz")
    await expect(page.get_by_role("button", name=re.compile("Resume|Update"))).to_have_count(0)
    await page.get_by_role("tab", name="Parameters").click()
    await expect(page.get_by_role("textbox", name="size")).not_to_be_editable()
    assert await watcher.violations() == []
    await watcher.open("new")
    await expect(page.get_by_text("You do not have permission to create stacks.")).to_be_visible()
