"""Helpers of the tests of the inbox."""

from collections.abc import Callable
from typing import Any

from playwright.async_api import Locator, Page

from tests.browser.conftest import Visitor
from tests.support.program import Http, Json

WIDE = {"viewport": {"width": 1280, "height": 800}}


def hook_rule(at: str = "a", on: str = "pre-create", **more: Json) -> Json:
    """An environment with one rule."""
    return {"hooks": [{"at": at, "on": on, **more}]}


async def inbox_of(
    visit: Callable[..., Any],
    http: Http,
    name: str,
    *,
    without_stream: bool = False,
    **options: Any,
) -> Visitor:
    """A visitor with this name in mode none, on the inbox page. without_stream: the page gets no
    updates.
    """
    found: Visitor = await visit(http, **{**WIDE, **options})
    await found.page.add_init_script(f"localStorage.setItem('headgate.name', {name!r})")
    if without_stream:
        await found.page.route("**/events/stream", lambda route: route.abort())
    await found.open("inbox")
    return found


def card(page: Page, path: str) -> Locator:
    """The row of a hook."""
    return page.locator("article.hook").filter(has=page.get_by_role("button", name=path))


async def audit_entries(http: Http, hook: Json) -> list[Json]:
    _, response = await http.call("GET", f"/hooks/{hook['id']}/decisions")
    return list(response["decisions"])
