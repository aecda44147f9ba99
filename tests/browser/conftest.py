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

from hub.api.dashboard import all_files
from tests.support.postgres import TestServer
from tests.support.program import Http, Program, program

Json = Any
#: Timeout of an expectation in milliseconds.
PATIENCE = 60_000
#: The accessibility rules as a script, which `make tests` installs.
AXE = Path(__file__).parents[2] / "hub" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
#: The rules to check: WCAG 2.2 up to AA, and the best practices of axe.
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN_AXE = """async (rules) => {
    const {violations} = await axe.run(document, {runOnly: rules, preload: false});
    return violations.map(
        (one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(" | ")}`);
}"""
#: Chromium programs in order of preference; the first one has no user interface.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: Console messages of Chromium about error responses, which pages handle.
_ERROR_RESPONSE = "Failed to load resource"
_AXE_MESSAGE = "console: Applying inline style violates"
#: As root there is no sandbox; the other flags prevent requests of Chromium itself.
FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update")
_projects = count(1)
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser, the servers and their event loop last for the whole run."""
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
    """A server without authentication."""
    async with postgres.new_database() as url, program(url) as run:
        yield run


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def token_server(postgres: TestServer) -> AsyncIterator[Program]:
    """A server with tokens and passwords behind a proxy that sends X-Forwarded-For."""
    settings = {"auth.mode": "tokens", "server.trusted_proxies": ["127.0.0.0/8"]}
    async with postgres.new_database() as url, program(url, settings) as run:
        yield run


@pytest.fixture
def http(server: Program) -> Http:
    """Requests to a separate project for each test."""
    return Http(server.session, server.url, f"p{next(_projects)}")


class Visitor:
    """A user of the dashboard. wrong: errors of the page, as texts."""

    def __init__(self, page: Page, url: str, project: str) -> None:
        self.page, self.url, self.project = page, url, project
        self.wrong: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: self._on_console(message.type, f"{message.text} ({message.location})"),
        )
        page.on("request", lambda request: self._on_request(request.url))

    def _on_console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not text.startswith(_ERROR_RESPONSE):
            self.wrong.append(f"console: {text}")

    def _on_request(self, url: str) -> None:
        if not url.startswith((self.url, "blob:" + self.url)):
            self.wrong.append(f"request to another origin: {url}")

    async def open(self, *path: str) -> Page:
        """Go to a page: open("stack", name, id)."""
        where = "/".join((self.project, *path))
        await self.page.goto(f"{self.url}/#/{where}")
        return self.page

    async def violations(self) -> list[str]:
        """The accessibility rules that the page violates now, as texts."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE.read_text())
        before = len(self.wrong)
        found: list[str] = await self.page.evaluate(_RUN_AXE, _RULES)
        # axe tests colors with inline styles, which the policy of the page forbids.
        mine = [one for one in self.wrong[before:] if not one.startswith(_AXE_MESSAGE)]
        self.wrong[before:] = mine
        return found

    async def module(self, path: str, script: str, argument: Json = None) -> Json:
        """The result of a function of a module of the page, called in the browser.

        path: such as "api/event_parser.js". script: ``(m, argument) => ...``.
        """
        if self.page.url == "about:blank":
            await self.page.goto(f"{self.url}/")
        address = f"{self.url}/dashboard/{all_files().digest}/{path}"
        call = f"async ([address, argument]) => ({script})(await import(address), argument)"
        return await self.page.evaluate(call, [address, argument])


class ContextPool:
    """Browser contexts, each for one visitor at a time. The next visitor finds the loaded files in
    it, and no other data of the visitor before."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[str, list[BrowserContext]] = {}

    async def acquire(self, options: Mapping[str, Any]) -> BrowserContext:
        free = self._free.setdefault(repr(sorted(options.items())), [])
        return free.pop() if free else await self._browser.new_context(**options)

    async def release(self, options: Mapping[str, Any], context: BrowserContext) -> None:
        for page in context.pages:
            with suppress(Error):  # a context that has opened no page has no storage
                await page.evaluate("localStorage.clear()")
            await page.close()
        await context.clear_cookies()
        self._free[repr(sorted(options.items()))].append(context)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def contexts(browser: Browser) -> ContextPool:
    return ContextPool(browser)


#: Creates a visitor of a server, with options of the browser context.
Visit = Callable[..., Awaitable[Visitor]]


@pytest_asyncio.fixture(loop_scope="session")
async def visit(contexts: ContextPool) -> AsyncIterator[Visit]:
    """Creates visitors: ``visit(http, **options)``, with options of Playwright's new_context. Fails
    at the end if any page had an error."""
    taken: list[tuple[dict[str, Any], BrowserContext]] = []
    visitors: list[Visitor] = []

    async def begin(http: Http, **options: Any) -> Visitor:
        # Animations are drawn sixty times a second, here by the processor.
        options.setdefault("reduced_motion", "reduce")
        context = await contexts.acquire(options)
        taken.append((options, context))
        visitors.append(Visitor(await context.new_page(), http.url, http.project))
        return visitors[-1]

    yield begin
    for options, context in taken:
        await contexts.release(options, context)
    assert [one for visitor in visitors for one in visitor.wrong] == []


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(visit: Visit, http: Http) -> Visitor:
    """A visitor in the project of the test, with a desktop window."""
    return await visit(http, viewport={"width": 1280, "height": 800})
