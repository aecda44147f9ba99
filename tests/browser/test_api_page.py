"""The page of the documentation site that shows all routes, read from files."""

import shutil
from pathlib import Path

import orjson
from playwright.async_api import Browser, expect

from tools.openapi_script import openapi_script

ROOT = Path(__file__).parents[2]


async def test_all_routes_and_their_documents_are_shown_without_a_server(
    browser: Browser, tmp_path: Path
) -> None:
    """A browser loads no JSON from files, and resolves no references against them."""
    (tmp_path / "reference").mkdir()
    shutil.copy(ROOT / "docs" / "reference" / "api.html", tmp_path / "reference")
    for name in ("swagger-ui-bundle.js", "swagger-ui.css"):
        assert (ROOT / "build" / name).exists(), "the test needs Swagger UI; run `make docs`"
        shutil.copy(ROOT / "build" / name, tmp_path)
    script = openapi_script()
    (tmp_path / "openapi.js").write_text(script)
    paths = orjson.loads(script[script.index("{") : script.rindex("}") + 1])["paths"]
    page = await browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await page.goto(f"file://{tmp_path}/reference/api.html")
    await expect(page.locator("[data-path]")).to_have_count(sum(map(len, paths.values())))
    path = page.locator('[data-path="/v1/{project}/hooks/{hook}/signal"]')
    route = page.locator(".opblock", has=path)
    await path.click()
    await expect(route).to_contain_text("decision", use_inner_text=True)
    await expect(page.locator(".errors-wrapper")).to_have_count(0)
    assert [one for one in requests if not one.startswith(("file:", "data:"))] == []
    await page.close()
