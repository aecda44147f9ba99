"""Takes the screenshots of README and docs with the shop of examples/: `make pictures`."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect

from hub.cli.request_bodies import template_body
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.postgres import open_directory
from tests.support.program import Http, ServerProcess

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "shop"
IMAGES = ROOT / "docs" / "images"
SIZE = ViewportSize(width=1280, height=760)
Prepare = Callable[[Page], Awaitable[None]]
ANSWER = {"backup": True, "ticket": "OPS-17"}


async def main() -> None:
    with open_directory() as folder:
        server = ServerProcess(folder)
        server.start()
        try:
            async with aiohttp.ClientSession() as session, async_playwright() as playwright:
                path = next(filter(None, map(shutil.which, CHROMIUM)), None)
                browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])
                await _take_all(browser, Http(session, server.url, "demo"))
                await browser.close()
        finally:
            server.stop()


async def _take_all(browser: Browser, http: Http) -> None:
    await _create_others(http)
    shop = await _start_shop(http)
    await http.waiting_hooks("shop")
    await _take_picture(browser, http, "stack", f"stack/shop/{shop}", prepare=_waiting_stack)
    await _take_picture(
        browser, http, "stack-dark", f"stack/shop/{shop}", prepare=_waiting_stack, dark=True
    )
    await _take_picture(browser, http, "inbox", "inbox", prepare=_inbox_with_hook)
    await _take_picture(browser, http, "stacks", "stacks", prepare=_stack_list)
    (hook,) = await http.waiting_hooks("shop")
    await http.signal(hook, user="ada", data=ANSWER, reason="backup is done")
    (hook,) = await http.waiting_hooks("shop")
    await _take_picture(browser, http, "inside", f"stack/shop/{shop}", prepare=_expanded_graph)
    await _take_picture(browser, http, "timeline", f"stack/shop/{shop}", prepare=_timeline)
    await http.signal(hook, user="ada")
    (hook,) = await http.waiting_hooks("shop")
    await http.signal(hook, user="grace")
    assert await http.until_ended("shop") == "CREATE_COMPLETE"
    await _take_picture(browser, http, "edit", f"edit/shop/{shop}", prepare=_new_release)


async def _create_others(http: Http) -> None:
    """Other stacks for the list."""
    simple = {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}
    await http.create("billing", {"ledger": simple, "mailer": simple}, tags=["finance"])
    await http.create("staging", {"web": {**simple, "properties": {"fail": True}}, "db": simple})
    await http.create("reports", dict.fromkeys("abcdefgh", simple))
    for name in ("billing", "staging", "reports"):
        await http.until_ended(name)


async def _start_shop(http: Http) -> str:
    body = template_body(SHOP / "shop.yaml") | {
        "stack_name": "shop",
        "environment": (SHOP / "env.yaml").read_text(),
        "tags": ["production"],
    }
    status, response = await http.call("POST", "/stacks", body, headers={"X-Auth-User": "ada"})
    assert status == 201, response
    return str(response["stack"]["id"])


async def _take_picture(
    browser: Browser, http: Http, name: str, where: str, *, prepare: Prepare, dark: bool = False
) -> None:
    """prepare: brings the page into the state to show."""
    context = await browser.new_context(
        viewport=SIZE, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    page = await context.new_page()
    await page.add_init_script("localStorage.setItem('headgate.name', 'ada')")
    await page.goto(f"{http.url}/#/demo/{where}")
    await expect(page.get_by_text("live", exact=True)).to_be_visible()
    await prepare(page)
    await page.screenshot(path=IMAGES / f"{name}.png", caret="initial")
    await context.close()
    print(f"docs/images/{name}.png")


async def _waiting_stack(page: Page) -> None:
    await page.get_by_role("button", name="database, create").click()
    await expect(page.get_by_role("complementary", name="database")).to_contain_text("Ticket")
    await expect(page.get_by_role("complementary", name="database")).to_contain_text("Physical ID")


async def _stack_list(page: Page) -> None:
    await expect(page.get_by_role("row", name="shop")).to_contain_text("1 hook waiting")


async def _inbox_with_hook(page: Page) -> None:
    await page.get_by_label("Ticket").fill("OPS-17")


async def _expanded_graph(page: Page) -> None:
    debugger = page.get_by_role("region", name="Debugger")
    await expect(debugger.get_by_role("button", name="app/server at pre-create")).to_be_visible()
    await page.get_by_role("button", name="app, create").press("u")
    await expect(page.get_by_role("button", name="server, create")).to_be_visible()
    await page.keyboard.press("f")


async def _timeline(page: Page) -> None:
    await expect(page.get_by_role("button", name="database, create")).to_be_visible()
    await page.get_by_role("button", name="Timeline").click()
    slider = page.get_by_role("slider")
    await expect(slider).to_be_visible()
    for _ in range(6):
        await slider.press("ArrowLeft")


async def _new_release(page: Page) -> None:
    await expect(page.get_by_role("textbox", name="Template")).to_contain_text("network")
    await page.get_by_role("tab", name="Parameters").click()
    await page.get_by_role("textbox", name="release").fill("1.1")
    plan = page.get_by_role("region", name="Plan", exact=True)
    await expect(plan).to_contain_text("updated")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    asyncio.run(main())
