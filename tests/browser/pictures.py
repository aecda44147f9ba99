"""The pictures of README and docs, taken anew of the shop of examples/: `make pictures`."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect

from hub.cli.files import template_body
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.postgres import open_directory
from tests.support.program import Http, ServerProcess

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "shop"
IMAGES = ROOT / "docs" / "images"
SIZE = ViewportSize(width=1280, height=760)
Look = Callable[[Page], Awaitable[None]]
ANSWER = {"backup": True, "ticket": "OPS-17"}


async def main() -> None:
    with open_directory() as folder:
        server = ServerProcess(folder)
        server.start()
        try:
            async with aiohttp.ClientSession() as session, async_playwright() as playwright:
                path = next(filter(None, map(shutil.which, CHROMIUM)), None)
                browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])
                await _taken(browser, Http(session, server.url, "demo"))
                await browser.close()
        finally:
            server.stop()


async def _taken(browser: Browser, http: Http) -> None:
    await _others(http)
    shop = await _begun(http)
    await http.waiting("shop")
    await _picture(browser, http, "stack", f"stack/shop/{shop}", look=_at_the_gate)
    await _picture(browser, http, "stack-dark", f"stack/shop/{shop}", look=_at_the_gate, dark=True)
    await _picture(browser, http, "inbox", "inbox", look=_in_the_inbox)
    await _picture(browser, http, "stacks", "stacks", look=_listed)
    (hook,) = await http.waiting("shop")
    await http.signal(hook, user="ada", data=ANSWER, reason="backup is done")
    (hook,) = await http.waiting("shop")
    await _picture(browser, http, "inside", f"stack/shop/{shop}", look=_unfolded)
    await _picture(browser, http, "timeline", f"stack/shop/{shop}", look=_back_then)
    await http.signal(hook, user="ada")
    (hook,) = await http.waiting("shop")
    await http.signal(hook, user="grace")
    assert await http.until_ended("shop") == "CREATE_COMPLETE"
    await _picture(browser, http, "edit", f"edit/shop/{shop}", look=_another_release)


async def _others(http: Http) -> None:
    """Stacks that the list of them has besides."""
    simple = {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}
    await http.create("billing", {"ledger": simple, "mailer": simple}, tags=["finance"])
    await http.create("staging", {"web": {**simple, "properties": {"fail": True}}, "db": simple})
    await http.create("reports", dict.fromkeys("abcdefgh", simple))
    for name in ("billing", "staging", "reports"):
        await http.until_ended(name)


async def _begun(http: Http) -> str:
    body = template_body(SHOP / "shop.yaml") | {
        "stack_name": "shop",
        "environment": (SHOP / "env.yaml").read_text(),
        "tags": ["production"],
    }
    status, made = await http.call("POST", "/stacks", body, headers={"X-Auth-User": "ada"})
    assert status == 201, made
    return str(made["stack"]["id"])


async def _picture(
    browser: Browser, http: Http, name: str, where: str, *, look: Look, dark: bool = False
) -> None:
    """look: what is done on the page first."""
    context = await browser.new_context(
        viewport=SIZE, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    page = await context.new_page()
    await page.add_init_script("localStorage.setItem('headgate.name', 'ada')")
    await page.goto(f"{http.url}/#/demo/{where}")
    await expect(page.get_by_text("live", exact=True)).to_be_visible()
    await look(page)
    await page.screenshot(path=IMAGES / f"{name}.png", caret="initial")
    await context.close()
    print(f"docs/images/{name}.png")


async def _at_the_gate(page: Page) -> None:
    await page.get_by_role("button", name="database, create").click()
    await expect(page.get_by_role("complementary", name="database")).to_contain_text("Ticket")


async def _listed(page: Page) -> None:
    await expect(page.get_by_role("row", name="shop")).to_contain_text("1 hook waiting")


async def _in_the_inbox(page: Page) -> None:
    await page.get_by_label("Ticket").fill("OPS-17")


async def _unfolded(page: Page) -> None:
    await expect(page.get_by_role("button", name="app/server at pre-create")).to_be_visible()
    await page.get_by_role("button", name="app, create").press("u")
    await expect(page.get_by_role("button", name="server, create")).to_be_visible()
    await page.keyboard.press("f")


async def _back_then(page: Page) -> None:
    await expect(page.get_by_role("button", name="database, create")).to_be_visible()
    await page.get_by_role("button", name="Timeline").click()
    slider = page.get_by_role("slider")
    await expect(slider).to_be_visible()
    for _ in range(6):
        await slider.press("ArrowLeft")


async def _another_release(page: Page) -> None:
    await expect(page.get_by_role("textbox", name="Template")).to_contain_text("network")
    await page.get_by_role("tab", name="Parameters").click()
    await page.get_by_role("textbox", name="release").fill("1.1")
    plan = page.get_by_role("region", name="Plan", exact=True)
    await expect(plan).to_contain_text("updated")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    asyncio.run(main())
