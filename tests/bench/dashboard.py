"""The graph of the dashboard in a browser: thousands of nodes drawn, panned and changing; beside as
many rectangles and curves in an SVG with nothing around them."""

import asyncio
import os
import shutil
import statistics
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from playwright.async_api import Page, async_playwright

from hub.dashboard.files import FOLDER
from tests.support.program import free_port

RUNS = 3
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--js-flags=--expose-gc", "--enable-precise-memory-info")
SCRIPT = Path(__file__).with_suffix(".js")
PAGE = """<!doctype html><link rel="stylesheet" href="/page/style/all.css">
<div id="place" style="height: 800px"></div><script type="module" src="/bench.js"></script>"""
#: What, nodes, layers, how they are folded.
SIZES = (
    ("2,000 nodes, each seen", 2_000, 20, "none"),
    ("10,000 nodes, folded", 10_000, 40, "auto"),
    ("10,000 nodes, each seen", 10_000, 40, "none"),
)
Json = Any


async def graph() -> None:
    """Each in a page of its own."""
    print("the graph in a browser            first drawing  layout   memory")
    print("                                  frames/s (95th percentile of the time of one):")
    print("                                  panned afar   panned near   600 changes")
    async with served() as url, async_playwright() as playwright:
        path = next(filter(None, map(shutil.which, CHROMIUM)), None)
        assert path, "the bench of the dashboard needs Chromium"
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])

        async def asked(script: str) -> list[Json]:
            found = []
            for _ in range(RUNS):
                page = await browser.new_page(viewport={"width": 1280, "height": 800})
                found.append(await measured(page, url, script))
                await page.close()
            return found

        for what, count, layers, fold in SIZES:
            runs = await asked(f"measureGraph({count}, {layers}, '{fold}')")
            print(
                f"  {what:<32}{mid(runs, 'drawn'):>8.0f} ms {mid(runs, 'layout'):>6.0f} ms"
                f" {mid(runs, 'kept'):>5.1f} MB"
            )
            print(
                f"{'':<34}{flow(runs, 'afar')}  {flow(runs, 'near')}  {flow(runs, 'changes')}"
                f"  {mid(runs, 'applied'):.0f} ms to apply"
            )
            bare = await asked(f"measureBare({count})")
            print(
                f"    {'as bare rectangles':<30}{mid(bare, 'drawn'):>8.0f} ms"
                f" {'':>9} {mid(bare, 'kept'):>5.1f} MB"
            )
            print(f"{'':<34}{flow(bare, 'pan')}  {'':<14}  {flow(bare, 'changes')}")
        await browser.close()
    print()


def mid(runs: list[Json], name: str) -> float:
    return float(statistics.median(run[name] for run in runs))


def flow(runs: list[Mapping[str, Json]], name: str) -> str:
    rate = statistics.median(run[name]["rate"] for run in runs)
    return f"{rate:>3.0f} ({statistics.median(run[name]['p95'] for run in runs):>4.0f} ms)"


async def measured(page: Page, url: str, script: str) -> Json:
    await page.goto(url)
    await page.wait_for_function("window.ready")
    return await page.evaluate(script)


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """The files of the page, and what is to be run."""

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


if __name__ == "__main__":
    print(f"{os.cpu_count()} cores; medians of {RUNS} runs")
    asyncio.run(graph())
