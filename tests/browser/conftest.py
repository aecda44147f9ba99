"""The dashboard in a real browser: Chromium, a server in this process, a project for each test."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    async_playwright,
    expect,
)

from hub.dashboard.files import all_files
from tests.support.postgres import TestServer
from tests.support.program import Http, Program, program

Json = Any
#: Milliseconds until what must come is given up.
PATIENCE = 60_000
#: The rules of accessibility, as a script; `make setup` does not bring it, `make tests` does.
AXE = Path(__file__).parents[2] / "hub" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
#: What is looked for: WCAG 2.2 up to AA, and what axe holds to be good besides.
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN_AXE = """async (rules) => {
    const {violations} = await axe.run(document, {runOnly: rules, preload: false});
    return violations.map(
        (one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(" | ")}`);
}"""
#: The first that is there; the first of all has nothing of what only a screen shows.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: What Chromium writes of answers that are no success, which pages are there to tell of.
_OF_ANSWERS = "Failed to load resource"
_OF_AXE = "console: Applying inline style violates"
#: As root there is no sandbox; the others keep it from asking hosts of its own.
FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update")
_projects = count(1)
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser and the servers are of the whole run, and so is the loop."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert path, (
        "the tests need Chromium; install it (Debian: apt-get install chromium-headless-shell)"
    )
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        yield started
        await started.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(postgres: TestServer) -> AsyncIterator[Program]:
    """One that asks nobody who they are."""
    async with postgres.new_database() as url, program(url) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded(postgres: TestServer) -> AsyncIterator[Program]:
    """One with tokens and passwords, behind a proxy: X-Forwarded-For says where somebody is."""
    said = {"auth.mode": "tokens", "server.trusted_proxies": ["127.0.0.0/8"]}
    async with postgres.new_database() as url, program(url, said) as made:
        yield made


@pytest.fixture
def http(server: Program) -> Http:
    """Requests to a project of the test's own."""
    return Http(server.session, server.url, f"p{next(_projects)}")


class Visitor:
    """Somebody before the dashboard. wrong: what went wrong in the page, in words."""

    def __init__(self, page: Page, url: str, project: str) -> None:
        self.page, self.url, self.project = page, url, project
        self.wrong: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("console", lambda said: self._said(said.type, f"{said.text} ({said.location})"))
        page.on("request", lambda request: self._asked(request.url))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not text.startswith(_OF_ANSWERS):
            self.wrong.append(f"console: {text}")

    def _asked(self, url: str) -> None:
        if not url.startswith((self.url, "blob:" + self.url)):
            self.wrong.append(f"asked of another origin: {url}")

    async def open(self, *path: str) -> Page:
        """Go to a page: open("stack", name, id)."""
        where = "/".join((self.project, *path))
        await self.page.goto(f"{self.url}/#/{where}")
        return self.page

    async def breaks(self) -> list[str]:
        """The rules of accessibility that the page breaks as it is now, in words."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE.read_text())
        before = len(self.wrong)
        found: list[str] = await self.page.evaluate(_RUN_AXE, _RULES)
        # It tries out colours by itself, in ways that a page of ours may not.
        mine = [one for one in self.wrong[before:] if not one.startswith(_OF_AXE)]
        self.wrong[before:] = mine
        return found

    async def module(self, path: str, script: str, argument: Json = None) -> Json:
        """What a function makes of a module of the page, which is run by the browser.

        path: such as "api/event_parser.js". script: ``(m, argument) => ...``.
        """
        if self.page.url == "about:blank":
            await self.page.goto(f"{self.url}/")
        address = f"{self.url}/dashboard/{all_files().digest}/{path}"
        asked = f"async ([address, argument]) => ({script})(await import(address), argument)"
        return await self.page.evaluate(asked, [address, argument])


class Windows:
    """Contexts of the browser, each for one visitor at a time. The next one finds in it the files
    that were loaded, and nothing else of whoever was there before."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[str, list[BrowserContext]] = {}

    async def take(self, options: Mapping[str, Any]) -> BrowserContext:
        free = self._free.setdefault(repr(sorted(options.items())), [])
        return free.pop() if free else await self._browser.new_context(**options)

    async def give_back(self, options: Mapping[str, Any], context: BrowserContext) -> None:
        for page in context.pages:
            with suppress(Error):  # there is none where nothing was opened
                await page.evaluate("localStorage.clear()")
            await page.close()
        await context.clear_cookies()
        self._free[repr(sorted(options.items()))].append(context)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def windows(browser: Browser) -> Windows:
    return Windows(browser)


#: A visitor of a server, as its requests name it; more: what the browser is to be like.
Visit = Callable[..., Awaitable[Visitor]]


@pytest_asyncio.fixture(loop_scope="session")
async def visit(windows: Windows) -> AsyncIterator[Visit]:
    """Call with a server's requests, and what a browser is to be like: ``visit(http, **options)``
    (see Playwright's new_context). At the end nothing may have gone wrong in any page."""
    taken: list[tuple[dict[str, Any], BrowserContext]] = []
    visitors: list[Visitor] = []

    async def begin(http: Http, **options: Any) -> Visitor:
        # What pulses is drawn sixty times a second, which the processor does here.
        options.setdefault("reduced_motion", "reduce")
        context = await windows.take(options)
        taken.append((options, context))
        visitors.append(Visitor(await context.new_page(), http.url, http.project))
        return visitors[-1]

    yield begin
    for options, context in taken:
        await windows.give_back(options, context)
    assert [one for visitor in visitors for one in visitor.wrong] == []


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(visit: Visit, http: Http) -> Visitor:
    """Somebody in the test's own project, with a window of usual size."""
    return await visit(http, viewport={"width": 1280, "height": 800})
