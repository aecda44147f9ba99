"""The graph of the dashboard in a browser: thousands of nodes drawn, panned and changing; beside as
many rectangles and curves in an SVG with nothing around them. There is no server."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from playwright.async_api import Page, async_playwright

from hub.api.dashboard import FOLDER
from tests.bench.run import Run
from tests.support.ports import free_port

CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--js-flags=--expose-gc", "--enable-precise-memory-info")
SCRIPT = Path(__file__).with_suffix(".js")
PAGE = """<!doctype html><link rel="stylesheet" href="/page/style/all.css">
<div id="place" style="height: 800px"></div><script type="module" src="/bench.js"></script>"""
#: Case, nodes, layers, how they are collapsed.
SIZES = (
    ("all nodes", 2_000, 20, "none"),
    ("collapsed", 10_000, 40, "auto"),
    ("all nodes", 10_000, 40, "none"),
)
Json = Any


async def graph(run: Run) -> None:
    """Measure each size in a new page."""
    async with running_page() as url, async_playwright() as playwright:
        path = next(filter(None, map(shutil.which, CHROMIUM)), None)
        assert path, "the bench of the dashboard needs Chromium"
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])

        async def evaluate(script: str) -> Json:
            page = await browser.new_page(viewport={"width": 1280, "height": 800})
            result = await run_script(page, url, script)
            await page.close()
            return result

        for _ in range(min(run.rounds, 3)):
            for case, count, layers, fold in SIZES:
                result = await evaluate(f"measureGraph({count}, {layers}, '{fold}')")
                run.add(
                    "dashboard",
                    f"{case}: draw",
                    count,
                    median=result["drawn"],
                    memory=result["retained"],
                )
                run.add("dashboard", f"{case}: layout", count, median=result["layout"])
                run.add("dashboard", f"{case}: pan all", count, **frames(result["zoomedOut"]))
                run.add("dashboard", f"{case}: pan a part", count, **frames(result["zoomedIn"]))
                run.add("dashboard", f"{case}: 600 changes", count, **frames(result["changes"]))
                rectangles = await evaluate(f"measureBare({count})")
                run.add("dashboard", f"{case}: rectangles", count, median=rectangles["drawn"],
                        memory=rectangles["retained"])  # fmt: skip
                run.add("dashboard", f"{case}: pan rectangles", count, **frames(rectangles["pan"]))
        await browser.close()


def frames(flow: Json) -> dict[str, float]:
    """Frames per second, and the 95th percentile of the time of one."""
    return {"frames": flow["rate"], "p95": flow["p95"]}


async def run_script(page: Page, url: str, script: str) -> Json:
    await page.goto(url)
    await page.wait_for_function("window.ready")
    return await page.evaluate(script)


@asynccontextmanager
async def running_page() -> AsyncIterator[str]:
    """The files of the page, and the script of the bench."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html")

    async def script(_: web.Request) -> web.FileResponse:
        return web.FileResponse(SCRIPT)

    app = web.Application()
    app.router.add_static("/page", FOLDER)
    app.router.add_get("/bench.js", script)
    app.router.add_get("/", page)
    runner, port = web.AppRunner(app), free_port()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        await runner.cleanup()
