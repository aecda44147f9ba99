"""The audit log of a project: live updates, filters and hashes."""

import re

from playwright.async_api import expect

from tests.browser.conftest import Visit
from tests.support.program import Http, resource

HOOKS = {"hooks": [{"at": "*", "on": ["pre-create"]}]}


async def test_decisions_appear_live(visit: Visit, http: Http) -> None:
    await http.create("shop", {"a": resource(), "b": resource(depends_on="a")}, environment=HOOKS)
    (first,) = await http.waiting_hooks("shop")
    granted = ["clipboard-read", "clipboard-write"]
    visitor = await visit(http, permissions=granted)
    page = await visitor.open("audit")
    await expect(page.get_by_text("No entries yet")).to_be_visible()
    await http.signal(first, user="ann", reason="looked at it")
    entries = page.locator(".audit > li")
    await expect(entries).to_have_count(1)
    await expect(entries).to_contain_text("ann approved")
    await expect(entries).to_contain_text("a before create, in shop")
    await expect(entries).to_contain_text("looked at it")
    await expect(entries).to_contain_text("via api from 127.0.0.1")

    await entries.hover()
    (second,) = await http.waiting_hooks("shop")
    await http.signal(second, "reject", user="bob", reason="not on a Friday")
    await page.get_by_role("button", name="Show 1 newer").press("Enter")
    await expect(entries.nth(0)).to_contain_text("bob rejected")
    await expect(entries.nth(1)).to_contain_text("ann approved")
    audit_entries = (await http.stack_request("GET", "shop", "/decisions"))["decisions"]
    await entries.nth(1).get_by_role("button", name="Copy the hash").click()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == audit_entries[0]["hash"]
    await expect(entries.nth(1)).to_contain_text(copied[:12])
    assert await visitor.violations() == []

    await page.get_by_label("User").fill("ann")
    await page.keyboard.press("Enter")
    await expect(entries).to_have_count(1)
    await expect(entries).to_contain_text("ann")
    await expect(page).to_have_url(re.compile("by=ann"))
    stack = page.get_by_label("Stack", exact=True)
    await stack.fill("no-such")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Stack", exact=True)).to_have_attribute("aria-invalid", "true")
    about = page.get_by_role("link", name="About EntityNotFound")
    await expect(about).to_have_attribute("href", f"{http.url}/errors/EntityNotFound")
    await page.get_by_role("button", name="Clear filters").click()
    await expect(entries).to_have_count(2)
    await page.set_viewport_size({"width": 360, "height": 700})
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await entries.nth(0).get_by_role("link", name="Hook details").click()
    await expect(page).to_have_url(re.compile(f"/inbox/{second['id']}"))
