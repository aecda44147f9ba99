"""What tests of the inbox say over and over."""

from collections.abc import Callable
from typing import Any

from playwright.async_api import Locator, Page

from tests.browser.conftest import Visitor
from tests.support.program import Http, Json

WIDE = {"viewport": {"width": 1280, "height": 800}}


def asks(at: str = "a", on: str = "pre-create", **more: Json) -> Json:
    """An environment with one rule."""
    return {"hooks": [{"at": at, "on": on, **more}]}


async def somebody(
    visit: Callable[..., Any], http: Http, name: str, *, deaf: bool = False, **options: Any
) -> Visitor:
    """A visitor of this name, in mode none, before the inbox. deaf: they hear no events, so that
    what they see gets old."""
    found: Visitor = await visit(http, **{**WIDE, **options})
    await found.page.add_init_script(f"localStorage.setItem('headgate.name', {name!r})")
    if deaf:
        await found.page.route("**/events/stream", lambda route: route.abort())
    await found.open("inbox")
    return found


def card(page: Page, path: str) -> Locator:
    """The row of a hook."""
    return page.locator("article.hook").filter(has=page.get_by_role("button", name=path))


async def trail(http: Http, hook: Json) -> list[Json]:
    _, said = await http.call("GET", f"/hooks/{hook['id']}/decisions")
    return list(said["decisions"])
