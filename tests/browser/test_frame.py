"""The frame of all pages: opening a project, navigation, the stream and themes."""

import re

from playwright.async_api import expect

from tests.browser.conftest import Visitor


async def test_a_project_is_opened_and_navigated_by_keyboard(visitor: Visitor) -> None:
    page = visitor.page
    await page.goto(visitor.url)
    await expect(page.get_by_role("heading", name="Open a project")).to_be_visible()
    assert await visitor.violations() == []
    await page.get_by_role("textbox", name="Project").fill(visitor.project)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    await expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert await visitor.violations() == []
    await page.keyboard.press("g")
    await page.keyboard.press("s")
    await expect(page.get_by_role("heading", name="Stacks")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("button", name="Switch to the dark theme").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert await visitor.violations() == []
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(page).to_have_title(re.compile("Stacks"))


async def test_clients_other_than_browsers_get_the_versions(visitor: Visitor) -> None:
    answer = await visitor.page.request.get(visitor.url, headers={"Accept": "*/*"})
    assert answer.status == 300
    assert (await answer.json())["versions"]
    response = await visitor.page.request.get(f"{visitor.url}/dashboard/0/main.js")
    assert (await response.json())["error"]["type"] == "FileNotFound"


async def test_equal_notices_are_displayed_once(visitor: Visitor) -> None:
    page = await visitor.open("stacks")
    notices = page.locator(".notice")
    await page.evaluate(
        """async () => {
            const main = document.querySelector('script[type="module"]').src;
            const { notify } = await import(new URL("app/notices.js", main).href);
            for (const text of ["first", "second", "first"]) notify(text, "bad");
        }"""
    )
    await expect(notices).to_have_text(["second", "first"])


async def test_the_navigation_shows_where_a_page_belongs(visitor: Visitor) -> None:
    page = await visitor.open("stacks")
    stacks = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Stacks")
    await expect(stacks).to_have_attribute("aria-current", "page")
    await visitor.open("new")
    await expect(page.get_by_role("heading", name="New stack")).to_be_visible()
    await expect(stacks).to_have_attribute("aria-current", "true")
    assert await visitor.violations() == []


async def test_a_time_that_has_passed_is_shown_in_one_unit(visitor: Visitor) -> None:
    script = "(m, seconds) => seconds.map(m.formatAge)"
    shown = {
        0: "0 s", 59.4: "59 s", 59.6: "1 min", 121: "2 min", 3599: "59 min", 3600: "1 h",
        2 * 86_400 - 1: "47 h", 2 * 86_400: "2 days", 40 * 86_400: "40 days",
    }  # fmt: skip
    assert await visitor.module("parts/ago.js", script, [*shown]) == [*shown.values()]
