"""Every page at three sizes of the window and in both themes: nothing is cut off, covered, oversized
or broken in the middle of a word, and the accessibility rules hold.

These are positions and sizes, not pictures: fonts differ between machines.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect

from hub.error_types.catalog import ERROR_TYPES
from tests.browser.conftest import Visitor
from tests.support.program import Http, Json, resource

SIZES = [(1440, 900), (1024, 768), (390, 844)]
#: Resources with long names, so that a line is too short for some of them.
RESOURCES = {
    "network": resource(),
    "database_of_the_accounting_department": resource(depends_on="network"),
    "replica": resource(depends_on="database_of_the_accounting_department"),
    **{f"web_{number}": resource(depends_on="network") for number in range(4)},
}
ASK = {
    "type": "object",
    "properties": {"ticket": {"type": "string", "title": "Ticket"}},
    "required": ["ticket"],
}
RULES = [
    {"at": "database*", "on": "pre-create", "ask": {"schema": ASK}, "timeout": "2h"},
    {"at": "web_*", "on": "pre-create"},
]
VIEWS = ("resources", "outputs", "dependencies", "events", "versions", "snapshots")

#: Texts of what is wrong with the page, as far as it is visible.
FIND_MISPLACED = r"""() => {
  const wrong = [];
  const root = document.querySelector("dialog[open]") ?? document.body;
  const name = (element) => `${element.tagName.toLowerCase()}.${element.getAttribute("class")}`
    + ` "${(element.ariaLabel ?? element.textContent).trim().slice(0, 40)}"`;
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 0) wrong.push(`the page is ${over} pixels too wide`);

  const LARGEST_ICON = 32;
  for (const icon of root.querySelectorAll("svg:not(.timeline-marks)")) {
    const { width, height } = icon.getBoundingClientRect();
    if (width > LARGEST_ICON || height > LARGEST_ICON)
      wrong.push(`icon of ${width} by ${height} in ${name(icon.parentElement)}`);
  }

  const visible = (element) => element.checkVisibility({ visibilityProperty: true })
    && !element.closest(".only-read, .skip, .notices, .graph-stage, .cm-editor");
  const controls = [...root.querySelectorAll("button, a, input, select, textarea")].filter(visible);
  for (const control of controls) {
    if (control.matches("button, a.button") && control.scrollWidth > control.clientWidth + 1)
      wrong.push(`cut off: ${name(control)}`);
  }
  // A sticky header covers what is scrolled below it.
  const boxes = controls.filter((one) => !one.closest(".frame-head"))
    .map((one) => [one, one.getBoundingClientRect()])
    .filter(([, box]) => box.width > 2 && box.height > 2);
  boxes.forEach(([one, a], at) => {
    for (const [other, b] of boxes.slice(at + 1)) {
      if (one.contains(other) || other.contains(one)) continue;
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (width > 2 && height > 2) wrong.push(`${name(one)} lies on ${name(other)}`);
    }
  });

  // A run of letters is on one line, unless it is longer than most lines.
  const LONGEST_WORD = 24;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (!visible(text.parentElement)) continue;
    for (const word of text.data.matchAll(/[A-Za-z]{2,}/g)) {
      if (word[0].length > LONGEST_WORD) continue;
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (tops.size > 1) wrong.push(`broken: ${word[0]} in ${name(text.parentElement)}`);
    }
  }
  return wrong;
}"""


async def create_stacks(http: Http) -> str:
    """A stack that waits, and one that has failed; return the ID of the first."""
    stack = await http.create("accounting", RESOURCES, environment={"hooks": RULES}, tags=["test"])
    fails = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    await http.create("failing", {"web": fails})
    await http.waiting_hooks("accounting", 5)
    await http.until_ended("failing")
    return stack


async def expect_well_placed(visitor: Visitor, place: str) -> None:
    assert await visitor.page.evaluate(FIND_MISPLACED) == [], place
    await visitor.page.evaluate("scrollTo(0, 0)")  # the header covers no button
    assert await visitor.violations() == [], place


async def open_page(visitor: Visitor, *path: str, shown: Callable[[Page], Any]) -> None:
    """Open a page and wait until it shows an element."""
    page = await visitor.open(*path)
    await expect(shown(page)).to_be_visible()
    await expect(page.locator(".spinner")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
async def test_pages_at_a_size(
    visit: Callable[..., Any], http: Http, size: tuple[int, int], theme: str
) -> None:
    stack = await create_stacks(http)
    viewport = {"width": size[0], "height": size[1]}
    visitor: Visitor = await visit(http, viewport=viewport, color_scheme=theme)
    page = visitor.page
    where = ("stack", "accounting", stack)
    pages: list[tuple[tuple[str, ...], Callable[[Page], Any]]] = [
        (("inbox",), lambda page: page.locator("article.hook").nth(4)),
        (("stacks",), lambda page: page.get_by_role("link", name="failing")),
        (where, lambda page: page.get_by_role("region", name="Waiting for approval")),
        (("edit", *where[1:]), lambda page: page.get_by_text("Breakpoints 5")),
        (("new",), lambda page: page.get_by_role("textbox", name="Template")),
        (("subscriptions",), lambda page: page.get_by_text("No subscriptions yet")),
        (("audit",), lambda page: page.get_by_text("No entries yet")),
        (("usage",), lambda page: page.get_by_role("heading", name="Usage")),
    ]
    for path, shown in pages:
        await open_page(visitor, *path, shown=shown)
        await expect_well_placed(visitor, "/".join(path))
    for view in VIEWS:
        await visitor.open(*where[:2], f"{stack}?view={view}")
        await expect(page.locator(".stack-facts")).to_be_visible()
        await expect_well_placed(visitor, view)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_page_of_an_error_is_reached_by_its_link(
    visit: Callable[..., Any], http: Http, theme: str
) -> None:
    """From `help` of a response, and from the list of all types."""
    _, refused = await http.call("GET", "/stacks/missing")
    help_url = refused["error"]["help"]
    visitor: Visitor = await visit(http, color_scheme=theme)
    page = visitor.page
    for width, height in SIZES:
        await page.set_viewport_size({"width": width, "height": height})
        await page.goto(f"{http.url}/errors")
        await expect(page.get_by_role("heading", name="Errors", exact=True)).to_be_visible()
        await expect_well_placed(visitor, f"errors at {width}")
        await page.goto(help_url)
        await expect(page.get_by_role("heading", level=1)).to_have_text(help_url.split("/")[-1])
        await expect(page.get_by_text("What to do")).to_be_visible()
        await expect_well_placed(visitor, f"{help_url} at {width}")
    color = await page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    brightness = sum(int(one) for one in re.findall(r"\d+", color)[:3])
    assert (brightness > 384) == (theme == "dark"), color


async def test_the_page_of_an_error_with_a_long_name_fits_on_a_phone(
    visit: Callable[..., Any], http: Http
) -> None:
    visitor: Visitor = await visit(http, viewport={"width": 390, "height": 844})
    for name in sorted(ERROR_TYPES, key=len)[-8:]:
        await visitor.page.goto(f"{http.url}/errors/{name}")
        assert await visitor.page.evaluate(FIND_MISPLACED) == [], name


async def test_a_long_template_is_reached_by_keyboard(visitor: Visitor, http: Http) -> None:
    """The text is scrolled; its box is not the place of the focus."""
    names: Json = {f"r{number}": resource() for number in range(60)}
    stack = await http.create("long", names)
    await http.until_ended("long")
    page = await visitor.open("edit", "long", stack)
    text = page.get_by_role("textbox", name="Template")
    await expect(text).to_contain_text("r1")
    await expect(page.get_by_text("60 unchanged")).to_be_visible()
    assert await visitor.violations() == []
    await expect(text).to_have_attribute("tabindex", "0")
