"""Takes the screenshots of README and docs with the shop of examples/: `make pictures`.

`test_pictures.py` compares them with the dashboard as it is."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect

from hub.cli.inputs.template_bodies import template_body
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.postgres import open_directory
from tests.support.program import Http, ServerProcess

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "shop"
IMAGES = ROOT / "docs" / "images"
SIZE = ViewportSize(width=1280, height=760)
PHONE = ViewportSize(width=390, height=844)
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
                await take_all(browser, Http(session, server.url, "demo"), IMAGES)
                await browser.close()
        finally:
            server.stop()


async def take_all(browser: Browser, http: Http, folder: Path) -> None:
    camera = Camera(browser, http, folder)
    await _create_others(http)
    shop = await _start_shop(http)
    await http.waiting_hooks("shop")
    await camera.take("stack", f"stack/shop/{shop}", prepare=_waiting_stack)
    await camera.take("stack-dark", f"stack/shop/{shop}", prepare=_waiting_stack, dark=True)
    await camera.take("stack-phone", f"stack/shop/{shop}", prepare=_graph_on_phone, size=PHONE)
    await camera.take("inbox", "inbox", prepare=_inbox_with_hook)
    await camera.take("stacks", "stacks", prepare=_stack_list)
    (hook,) = await http.waiting_hooks("shop")
    await http.signal(hook, user="ada", data=ANSWER, reason="backup is done")
    (hook,) = await http.waiting_hooks("shop")
    await camera.take("inside", f"stack/shop/{shop}", prepare=_expanded_graph)
    await camera.take("timeline", f"stack/shop/{shop}", prepare=_timeline)
    await http.signal(hook, user="ada")
    (hook,) = await http.waiting_hooks("shop")
    await http.signal(hook, user="grace")
    assert await http.until_ended("shop") == "CREATE_COMPLETE"
    await camera.take("edit", f"edit/shop/{shop}", prepare=_new_release)


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


@dataclass(frozen=True)
class Camera:
    browser: Browser
    http: Http
    folder: Path

    async def take(
        self, name: str, where: str, *, prepare: Prepare, dark: bool = False,
        size: ViewportSize = SIZE,
    ) -> None:  # fmt: skip
        """prepare: brings the page into the state to show."""
        context = await self.browser.new_context(
            viewport=size, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        page = await context.new_page()
        await page.add_init_script("localStorage.setItem('headgate.name', 'ada')")
        await page.goto(f"{self.http.url}/#/{self.http.project}/{where}")
        await expect(page.get_by_text("live", exact=True)).to_be_attached()
        await prepare(page)
        await page.screenshot(path=self.folder / f"{name}.png", caret="initial")
        await context.close()


async def _graph_on_phone(page: Page) -> None:
    await expect(page.get_by_role("button", name="database, create")).to_be_visible()


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
    # The members of the group are created after the hook has opened.
    await expect(page.get_by_role("button", name="workers, create, done")).to_be_visible()
    # The list of unfinished nodes is fetched after the events of the graph.
    unfinished = page.get_by_role("region", name="In progress or failed")
    await expect(unfinished.get_by_role("listitem")).to_have_count(1)
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
    print(f"renewed the pictures in {IMAGES.relative_to(ROOT)}")
