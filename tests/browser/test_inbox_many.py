"""The inbox with hundreds of rows, with the keyboard only, and on a phone: rows keep their place."""

from collections.abc import Callable
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import Visitor
from tests.browser.inbox import card, hook_rule, inbox_of
from tests.support.program import Http, eventually, resource, template

Visit = Callable[..., Any]
MANY = 100
HIDDEN = {"password": {"type": "string", "hidden": True, "default": "s3cret"}}


async def _create_two_hundred(http: Http) -> None:
    """Two stacks; in the first, one hook is followed by another when it is answered."""
    rules = [{"at": "*", "on": "pre-create"}, {"at": "r000", "on": "post-create"}]
    names = {f"r{number:03}": resource() for number in range(MANY)}
    for stack in ("first", "second"):
        await http.create(stack, names, environment={"hooks": rules})
        # One after the other, so that the order of the rows is known.
        await http.until_parked(stack, MANY)


async def test_hundreds_of_hooks_are_filtered_and_keep_their_rows_under_the_pointer(
    visit: Visit, http: Http
) -> None:
    await _create_two_hundred(http)
    ann = await inbox_of(visit, http, "ann")
    page, rows = ann.page, ann.page.locator("article.hook")
    await expect(page.get_by_text("200 waiting, 200 for you")).to_be_visible()
    await expect(page.get_by_label("Group by stack")).to_be_checked()
    await page.get_by_role("button", name="first 100 waiting").click()
    await expect(rows).to_have_count(MANY)
    await page.get_by_label("Search").fill("R007")
    await expect(rows).to_have_count(1)
    await page.get_by_label("Group by stack").uncheck()
    await expect(rows).to_have_count(2)
    assert "search=R007" in page.url
    await page.get_by_role("combobox", name="Stack").select_option("second")
    await expect(rows).to_have_count(1)
    await page.get_by_label("Search").fill("")
    await page.get_by_role("combobox", name="Stack").select_option("")
    await expect(page.get_by_role("button", name="Show more (100 remaining)")).to_be_visible()
    await page.get_by_label("Group by stack").check()

    hooks = {one["resource_name"]: one for one in await http.waiting_hooks("first", MANY)}
    names = await rows.locator(".hook-opens code").all_text_contents()
    # A hook above is answered and its successor opens while the pointer is on the row below.
    below = card(page, names[-1] if names[-1] != "r000" else names[-2])
    await below.scroll_into_view_if_needed()
    await below.hover()
    place = await below.bounding_box()
    await http.signal(hooks["r000"], user="bob", reason="fine")
    await expect(card(page, "r000").get_by_text("bob approved.")).to_be_visible()
    await expect(page.get_by_role("button", name="Show 1 new")).to_be_visible()
    moved = await below.bounding_box()
    assert place and moved and abs(moved["y"] - place["y"]) < 1
    await expect(rows).to_have_count(MANY)
    # Not a click: the page may show the hook by itself once the pointer has left the rows.
    await page.get_by_role("button", name="Show 1 new").press("Enter")
    await page.mouse.move(2, 2)
    await expect(card(page, "r000 after create")).to_be_visible()
    await expect(card(page, "r000 before create")).to_have_count(0)


async def test_the_inbox_by_keyboard_on_a_phone(visit: Visit, http: Http) -> None:
    resources = {"a": resource({"get_param": "password"}), "b": resource(depends_on="a")}
    body = template(resources, parameters=HIDDEN)
    await http.create("web", {}, template=body, environment=hook_rule(timeout="10m"))
    (hook,) = await http.waiting_hooks("web")
    small = {"width": 360, "height": 740}
    ann = await inbox_of(visit, http, "ann", viewport=small, color_scheme="dark")
    page, row = ann.page, card(ann.page, "a before create")
    await expect(row.locator(".changes").get_by_text("hidden")).to_be_visible()
    assert "s3cret" not in await page.content()
    await page.keyboard.press("j")
    head = row.get_by_role("button", name="a before create")
    await expect(head).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(row.get_by_label("Reason")).to_have_count(0)
    await page.keyboard.press("Enter")
    await _tab_to(page, row.get_by_label("Reason"))
    await page.keyboard.type("j is a letter here")
    await _tab_to(page, row.get_by_role("button", name="Reject…"))
    await page.keyboard.press("Enter")
    await expect(row.get_by_role("button", name="Reject", exact=True)).to_be_focused()
    assert await ann.violations() == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= small["width"]
    await page.keyboard.press("Escape")
    await expect(row.get_by_role("button", name="Reject…")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(row.get_by_role("button", name="Reject", exact=True)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(row.get_by_text("ann rejected.").first).to_be_visible()
    await expect(row.get_by_role("region", name="Answer")).to_be_focused()
    assert await http.until_ended("web") == "CREATE_FAILED"
    _, response = await http.call("GET", f"/hooks/{hook['id']}")
    assert response["reason"] == "j is a letter here"


async def test_each_open_answer_form_has_a_name_of_its_own(visit: Visit, http: Http) -> None:
    await http.create("web", {"a": resource(), "b": resource()}, environment=hook_rule(at="*"))
    await http.waiting_hooks("web", 2)
    ann = await inbox_of(visit, http, "ann")
    for name in ("a before create", "b before create"):
        await expect(card(ann.page, name).get_by_label("Reason")).to_be_visible()
    await expect(ann.page.get_by_role("region", name="Answer: b, before create")).to_be_visible()
    assert await ann.violations() == []


async def _tab_to(page: Page, element: Locator) -> None:
    """Press Tab until the element has the focus."""

    async def is_focused() -> bool:
        await page.keyboard.press("Tab")
        return bool(await element.evaluate("one => one === document.activeElement"))

    await eventually(is_focused)


async def test_a_form_returns_data_of_its_schema(visitor: Visitor) -> None:
    schema = {
        "$defs": {"who": {"type": "string", "title": "Who", "minLength": 2}},
        "properties": {
            "who": {"$ref": "#/$defs/who"},
            "size": {"type": ["integer", "null"], "maximum": 9},
            "kind": {"oneOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
            "days": {"type": "array", "items": {"enum": ["mo", "tu"]}, "default": ["tu"]},
            "more": {"type": "object", "properties": {"deep": {"type": "number"}},
                     "required": ["deep"]},
            "any": {},
        },
        "required": ["who", "tags"],
    }  # fmt: skip
    kinds = "(m, schema) => m.formOf(schema).children.map((one) => one.kind)"
    assert await visitor.module("inbox/form.js", kinds, schema) == [
        "text", "number", "choice", "lines", "choices", "group", "json",
    ]  # fmt: skip
    forms: list[dict[str, Any]] = [
        {"who": "a", "size": "12", "tags": "one", "any": "{"},
        {"who": "ann", "kind": "1", "tags": "one\ntwo\n", "any": '{"b": 1}', "more.deep": "0.5"},
    ]
    reads = """async (m, [schema, forms]) => {
        const from = document.querySelector("script[type=module]").src;
        const { formOf } = await import(from.replace("main.js", "inbox/form.js"));
        return forms.map((raws) => m.readForm(formOf(schema), raws));
    }"""
    wrong, right = await visitor.module("inbox/form_values.js", reads, [schema, forms])
    assert set(wrong["errors"]) == {"who", "size", "tags", "any"}
    assert wrong["errors"]["size"] == "Enter 9 or less."
    assert right == {
        "value": {"who": "ann", "kind": 2, "tags": ["one", "two"], "days": ["tu"],
                  "more": {"deep": 0.5}, "any": {"b": 1}},
        "errors": {},
    }  # fmt: skip


async def test_an_older_response_does_not_reopen_a_hook(visitor: Visitor) -> None:
    def hook(name: str, state: str = "waiting") -> dict[str, str]:
        return {"id": name, "state": state, "opened_at": f"2026-01-0{name}"}

    script = """(m, [hooks, late]) => {
        const known = m.withHooks(m.withHooks(new Map(), hooks), late);
        return [m.waitingInOrder(known).map((one) => one.id), m.missingIds(known, [hooks[0]])];
    }"""
    hooks = [hook("3"), hook("1"), hook("2", "answered")]
    order, gone = await visitor.module("inbox/hook_cache.js", script, [hooks, [hook("2")]])
    assert (order, gone) == (["1", "3"], ["1"])
    steady = "(m, [shown, ordered, busy]) => m.stableOrder(shown, ordered, busy)"
    for shown, ordered, busy, rows, held in (
        ("abcd", "abd", True, "abcd", 0),
        ("abcd", "abd", False, "abd", 0),
        ("abc", "axbcde", True, "abcde", 1),
        ("abc", "axbcde", False, "axbcde", 0),
    ):
        found = await visitor.module("parts/stable_rows.js", steady, [[*shown], [*ordered], busy])
        assert found == {"rows": [*rows], "held": held}
