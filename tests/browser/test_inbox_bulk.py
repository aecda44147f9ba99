"""The inbox: the order of its rows, several answers at once, drafts, and desktop notifications."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from playwright.async_api import Page, expect

from tests.browser.inbox import audit_entries, card, hook_rule, inbox_of
from tests.support.program import Http, Json, Program, eventually, resource

Visit = Callable[..., Any]
CHANGE_DIGEST = "update hook set digest = repeat('0', 64) where id = $1"
#: Records notifications in place of showing them: a browser without a screen shows none.
RECORD_NOTIFICATIONS = """
window.shown = [];
document.hasFocus = () => false;
window.Notification = class {
  static permission = "default";
  static async requestPermission() { return (this.permission = "granted"); }
  constructor(title, { body, tag }) { Object.assign(this, { title, body, tag }); shown.push(this); }
  close() {}
};
"""


def ask(**properties: Json) -> Json:
    return {"schema": {"type": "object", "properties": properties, "required": [*properties]}}


def paths(page: Page) -> Any:
    return page.locator("article.hook .hook-opens code")


async def test_the_next_deadline_comes_first(visit: Visit, http: Http) -> None:
    rules = [
        {"at": "slow", "on": "pre-create"},
        {"at": "soon", "on": "pre-create", "timeout": "10m"},
        {"at": "later", "on": "pre-create", "timeout": "2h"},
    ]
    names = dict.fromkeys(("slow", "later", "soon"), resource())
    await http.create("web", names, environment={"hooks": rules})
    await http.waiting_hooks("web", 3)
    ann = await inbox_of(visit, http, "ann")
    await expect(paths(ann.page)).to_have_text(["soon", "later", "slow"])
    times = card(ann.page, "soon").locator("time").first
    await expect(times).to_have_text(re.compile(r"^(9 min.* left|10 min left)$"))


async def test_several_hooks_are_answered_with_one_confirmation(
    visit: Visit, http: Http, server: Program
) -> None:
    """A hook that has changed since it was shown is not answered."""
    names = {f"mon{number}": resource() for number in range(4)} | {"db": resource()}
    rules = [
        {"at": "mon*", "on": "pre-create"},
        {"at": "db", "on": "pre-create", "ask": ask(ticket={"type": "string"})},
    ]
    await http.create("web", names, environment={"hooks": rules})
    hooks = {one["resource_name"]: one for one in await http.waiting_hooks("web", 5)}
    ann = await inbox_of(visit, http, "ann")
    page = ann.page
    # The answer to db needs data of its own.
    every = page.get_by_role("checkbox", name="Select all 4")
    await expect(every).to_be_visible()
    await expect(card(page, "db").get_by_role("checkbox", name="Select")).to_have_count(0)
    await every.check()
    await page.get_by_role("checkbox", name="Select mon3 before create in web").uncheck()
    await expect(page.get_by_text("3 selected")).to_be_visible()
    await expect(page.get_by_role("button", name="Reject 3…")).to_be_visible()
    await page.get_by_role("button", name="Continue 3…").click()
    dialog = page.get_by_role("dialog", name="Continue 3 hooks?")
    await expect(dialog.get_by_role("listitem")).to_have_count(3)
    assert await ann.violations() == []
    async with server.database.connection() as conn:
        await conn.execute(CHANGE_DIGEST, UUID(hooks["mon1"]["id"]))
    await dialog.get_by_label("Reason").fill("all fine")
    await dialog.get_by_role("button", name="Continue 3 hooks").press("Enter")
    failed = page.get_by_role("dialog", name="Continue 1 hook?")
    await expect(failed.get_by_role("alert")).to_contain_text("1 not answered")
    await expect(failed.get_by_role("listitem")).to_contain_text("mon1")
    await failed.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    left = {one["resource_name"] for one in await http.waiting_hooks("web", 3)}
    assert left == {"mon1", "mon3", "db"}
    (entry,) = await audit_entries(http, hooks["mon0"])
    assert (entry["by"], entry["reason"]) == ("ann", "all fine")


async def test_a_draft_survives_a_reload_without_its_secrets(visit: Visit, http: Http) -> None:
    schema = ask(ticket={"type": "string"}, pin={"type": "string", "format": "password"})
    await http.create("web", {"a": resource()}, environment=hook_rule(ask=schema))
    await http.waiting_hooks("web")
    ann = await inbox_of(visit, http, "ann")
    page, row = ann.page, card(ann.page, "a before create")
    await row.get_by_label("ticket").fill("OPS-17")
    await row.get_by_label("pin").fill("s3cret-pin")
    await row.get_by_label("Reason").fill("looked at it")
    assert "s3cret-pin" not in await page.evaluate("JSON.stringify(sessionStorage)")
    await page.reload()
    await expect(row.get_by_label("ticket")).to_have_value("OPS-17")
    await expect(row.get_by_label("Reason")).to_have_value("looked at it")
    await expect(row.get_by_label("pin")).to_have_value("")
    await row.get_by_label("pin").fill("s3cret-pin")
    await row.get_by_role("button", name="Continue").press("Enter")
    await expect(row.get_by_text("ann approved.").first).to_be_visible()
    forgotten = "!JSON.stringify(sessionStorage).includes('OPS-17')"
    await eventually(lambda: page.evaluate(forgotten))


async def test_the_desktop_notifies_about_new_hooks(visit: Visit, http: Http) -> None:
    """Only about hooks that the user may answer, while the page is not in front."""
    ann = await visit(http, viewport={"width": 1280, "height": 800})
    page: Page = ann.page
    await page.add_init_script("localStorage.setItem('headgate.name', 'ann')")
    await page.add_init_script(RECORD_NOTIFICATIONS)
    await ann.open("inbox")
    button = page.get_by_role("button", name="Desktop notifications")
    await expect(button).to_have_attribute("aria-pressed", "false")
    await button.click()
    await expect(button).to_have_attribute("aria-pressed", "true")
    await expect(page.get_by_text("live", exact=True)).to_be_visible()
    # Hooks of the first list are not new.
    await expect(page.get_by_text("No hooks are waiting for approval.")).to_be_visible()
    rules = [
        {"at": "other", "on": "pre-create", "answer_by": ["user:bob"]},
        {"at": "mine", "on": "pre-create"},
    ]
    await http.create(
        "web", {"other": resource(), "mine": resource()}, environment={"hooks": rules}
    )
    hooks = {one["resource_name"]: one for one in await http.waiting_hooks("web", 2)}
    await expect(page.get_by_text("2 waiting, 1 for you")).to_be_visible()
    await eventually(lambda: page.evaluate("shown.length > 0"))
    shown = "shown.map(({ title, body, tag }) => [title, body, tag])"
    assert await page.evaluate(shown) == [
        ["mine waits before create", "Stack web, requested by anonymous", hooks["mine"]["id"]]
    ]
    await page.evaluate("shown[0].onclick()")
    await expect(page.get_by_role("heading", name="mine before create")).to_be_visible()
    await page.get_by_role("link", name="Inbox").first.click()
    await button.click()
    await expect(button).to_have_attribute("aria-pressed", "false")
    await http.create("two", {"a": resource()}, environment=hook_rule())
    await expect(page.get_by_text("3 waiting, 2 for you")).to_be_visible()
    assert len(await page.evaluate(shown)) == 1
