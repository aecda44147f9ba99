"""Errors of the server in the dashboard."""

import json

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser.conftest import Visitor
from tests.support.program import Http, resource


async def delete_shop(page: Page) -> Locator:
    """Confirms the delete of the stack in its dialog; returns the dialog."""
    await page.get_by_role("button", name="Actions on shop").click()
    dialog = page.get_by_role("dialog", name="shop")
    await dialog.get_by_role("button", name="Delete…").click()
    await dialog.get_by_label("Type shop to confirm").fill("shop")
    await dialog.get_by_role("button", name="Delete shop").click()
    return dialog


async def error_of(route: Route, **error: str) -> None:
    """Answers a delete with an error."""
    if route.request.method != "DELETE":
        return await route.fallback()
    body = json.dumps({"code": 409, "error": {"message": "no", "remedy": "Wait.", **error}})
    await route.fulfill(status=409, content_type="application/json", body=body)


async def test_an_error_links_to_the_page_about_its_type(visitor: Visitor, http: Http) -> None:
    await http.create("shop", {"a": resource()})
    await http.until_ended("shop")
    page = await visitor.open("stacks")
    await expect(page.get_by_role("button", name="Actions on shop")).to_be_visible()
    stack = await http.stack("shop")

    async def refuse(route: Route) -> None:
        if route.request.method != "DELETE":
            return await route.fallback()
        missing = route.request.url.replace(stack["id"], f"{'0' * 8}{stack['id'][8:]}")
        response = await route.fetch(url=missing)
        await route.fulfill(response=response)

    await page.route("**/stacks/shop/*", refuse)
    dialog = await delete_shop(page)
    await expect(dialog.get_by_role("alert")).to_contain_text("could not be found")
    link = dialog.get_by_role("link", name="About EntityNotFound")
    assert await link.get_attribute("href") == f"{http.url}/errors/EntityNotFound"
    async with page.context.expect_page() as opened:
        await link.click()
    about = await opened.value
    await expect(about.get_by_role("heading", level=1)).to_have_text("EntityNotFound")
    # The page with the error is as it was.
    await expect(dialog.get_by_label("Type shop to confirm")).to_have_value("shop")
    assert await visitor.violations() == []


async def test_commands_in_an_error_are_shown_as_code(visitor: Visitor, http: Http) -> None:
    await http.create("shop", {"a": resource()})
    page = await visitor.open("stacks")
    remedy = "Run `headgate stack stop shop`, then delete it."
    await page.route("**/stacks/shop/*", lambda route: error_of(route, remedy=remedy))
    alert = (await delete_shop(page)).get_by_role("alert")
    await expect(alert).to_contain_text("Run headgate stack stop shop, then delete it.")
    await expect(alert.locator("code")).to_have_text("headgate stack stop shop")


@pytest.mark.parametrize("more", [{}, {"help": "javascript:alert(1)"}], ids=["none", "script"])
async def test_an_error_without_a_page_has_no_link(
    visitor: Visitor, http: Http, more: dict[str, str]
) -> None:
    await http.create("shop", {"a": resource()})
    await http.until_ended("shop")
    page = await visitor.open("stacks")
    await page.route("**/stacks/shop/*", lambda route: error_of(route, type="Strange", **more))
    dialog = await delete_shop(page)
    await expect(dialog.get_by_role("alert")).to_contain_text("Wait.")
    await expect(dialog.get_by_role("link")).to_have_count(0)
