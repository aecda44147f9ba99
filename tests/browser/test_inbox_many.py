"""The inbox with hundreds of rows, by keys alone, and on a phone: nothing moves by itself."""

from collections.abc import Callable
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import Visitor
from tests.browser.inbox import asks, card, somebody
from tests.support.program import Http, eventually, resource, template

Visit = Callable[..., Any]
MANY = 100
HIDDEN = {"password": {"type": "string", "hidden": True, "default": "s3cret"}}


async def _two_hundred(http: Http) -> None:
    """Two stacks; in the first, one hook is followed by another when it is answered."""
    rules = [{"at": "*", "on": "pre-create"}, {"at": "r000", "on": "post-create"}]
    names = {f"r{number:03}": resource() for number in range(MANY)}
    for stack in ("first", "second"):
        await http.create(stack, names, environment={"hooks": rules})
        # One after the other: what is older is further up.
        await http.waiting_count(stack, MANY)


async def test_hundreds_are_found_and_hold_still_under_the_pointer(
    visit: Visit, http: Http
) -> None:
    await _two_hundred(http)
    ann = await somebody(visit, http, "ann")
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

    hooks = {one["resource_name"]: one for one in await http.waiting("first", MANY)}
    names = await rows.locator(".hook-opens code").all_text_contents()
    # One above is answered, and what follows it is new, while the pointer is on the row below.
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
    await page.get_by_role("button", name="Show 1 new").click()
    await expect(card(page, "r000 after create")).to_be_visible()
    await page.mouse.move(2, 2)
    await expect(card(page, "r000 before create")).to_have_count(0)


async def test_by_keys_alone_on_a_phone(visit: Visit, http: Http) -> None:
    resources = {"a": resource({"get_param": "password"}), "b": resource(depends_on="a")}
    made = template(resources, parameters=HIDDEN)
    await http.create("web", {}, template=made, environment=asks(timeout="10m"))
    (hook,) = await http.waiting("web")
    small = {"width": 360, "height": 740}
    ann = await somebody(visit, http, "ann", viewport=small, color_scheme="dark")
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
    assert await ann.breaks() == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= small["width"]
    await page.keyboard.press("Escape")
    await expect(row.get_by_role("button", name="Reject…")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(row.get_by_role("button", name="Reject", exact=True)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(row.get_by_text("ann rejected.").first).to_be_visible()
    await expect(row.get_by_role("region", name="Answer")).to_be_focused()
    assert await http.until_ended("web") == "CREATE_FAILED"
    _, said = await http.call("GET", f"/hooks/{hook['id']}")
    assert said["reason"] == "j is a letter here"


async def _tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until it has the focus."""

    async def reached() -> bool:
        await page.keyboard.press("Tab")
        return bool(await wanted.evaluate("one => one === document.activeElement"))

    await eventually(reached)


async def test_a_form_is_read_as_its_schema_says(visitor: Visitor) -> None:
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
    assert set(wrong["wrongs"]) == {"who", "size", "tags", "any"}
    assert wrong["wrongs"]["size"] == "Enter 9 or less."
    assert right == {
        "value": {"who": "ann", "kind": 2, "tags": ["one", "two"], "days": ["tu"],
                  "more": {"deep": 0.5}, "any": {"b": 1}},
        "wrongs": {},
    }  # fmt: skip


async def test_what_is_known_of_hooks_survives_old_answers(visitor: Visitor) -> None:
    def hook(name: str, state: str = "waiting") -> dict[str, str]:
        return {"id": name, "state": state, "opened_at": f"2026-01-0{name}"}

    script = """(m, [news, late]) => {
        const known = m.withHooks(m.withHooks(new Map(), news), late);
        return [m.waitingInOrder(known).map((one) => one.id), m.missing(known, [news[0]])];
    }"""
    news = [hook("3"), hook("1"), hook("2", "answered")]
    order, gone = await visitor.module("inbox/hook_cache.js", script, [news, [hook("2")]])
    assert (order, gone) == (["1", "3"], ["1"])
    steady = "(m, [shown, wanted, busy]) => m.stableOrder(shown, wanted, busy)"
    for shown, wanted, busy, rows, held in (
        ("abcd", "abd", True, "abcd", 0),
        ("abcd", "abd", False, "abd", 0),
        ("abc", "axbcde", True, "abcde", 1),
        ("abc", "axbcde", False, "axbcde", 0),
    ):
        found = await visitor.module("parts/stable_rows.js", steady, [[*shown], [*wanted], busy])
        assert found == {"rows": [*rows], "held": held}
