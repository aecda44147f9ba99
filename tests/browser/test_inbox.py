"""The inbox: waiting hooks, live updates and answers."""

import asyncio
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from playwright.async_api import Route, expect

from tests.browser.conftest import Visitor
from tests.browser.inbox import audit_entries, card, hook_rule, inbox_of
from tests.support.program import Http, Program, resource

Visit = Callable[..., Any]
SHIFT_CLOCK = """
update hook set digest = repeat('0', 64),
       notification = jsonb_set(notification, '{properties,value}', '"enormous"') where id = $1
"""
EXPIRED = "update hook set deadline = clock_timestamp() - interval '1 second' where id = $1"
ASK = {
    "type": "object",
    "properties": {
        "ticket": {"type": "string", "title": "Ticket", "pattern": r"^T-\d+$"},
        "when": {"enum": ["now", "tonight"], "default": "tonight"},
        "many": {"type": "integer", "minimum": 2},
        "sure": {"type": "boolean", "title": "I am sure"},
    },
    "required": ["ticket", "sure"],
}


async def test_requested_data_is_entered_and_the_answer_is_seen_live(
    visit: Visit, http: Http
) -> None:
    ann = await inbox_of(visit, http, "ann")
    bob = await inbox_of(visit, http, "bob", color_scheme="dark")
    for one in (ann, bob):
        await expect(one.page.get_by_text("No hooks are waiting for approval.")).to_be_visible()
        await expect(one.page.get_by_text("live", exact=True)).to_be_visible()
    rule = hook_rule(ask={"schema": ASK}, answer_by=["user:ann", "role:dba"], timeout="2h")
    await http.create(
        "web", {"a": resource("big"), "b": resource(depends_on="a")}, environment=rule
    )
    (hook,) = await http.waiting_hooks("web")
    row, seen = card(ann.page, "a before create"), card(bob.page, "a before create")
    await expect(ann.page).to_have_title(re.compile(r"^\(1\) Inbox"))
    for text in (
        "big",
        "OS::Heat::TestResource",
        "then the stack stops",
        "No subscription matches",
    ):
        await expect(row.get_by_text(text, exact=False).first).to_be_visible()
    await expect(seen.get_by_text("You are not an approver of this hook.")).to_contain_text(
        "role dba"
    )
    await expect(seen.get_by_role("button", name="Continue")).to_have_count(0)
    assert await ann.violations() == [] and await bob.violations() == []

    await seen.hover()
    await row.get_by_label("many").fill("1")
    await row.get_by_role("button", name="Continue").click()
    ticket = row.get_by_label("Ticket")
    await expect(ticket).to_be_focused()
    await expect(row.get_by_text("This field is required.")).to_be_visible()
    await expect(row.get_by_text("Enter 2 or more.")).to_be_visible()
    await ticket.fill("T-1")
    await row.get_by_label("many").fill("3")
    await row.get_by_label("I am sure").check()
    await row.get_by_label("Reason").fill("looked at it")
    await row.get_by_role("button", name="Continue").click()
    for shown in (row, seen):
        await expect(shown.get_by_text("ann approved.").first).to_be_visible()
    await expect(seen.get_by_text("looked at it")).to_be_visible()
    await expect(bob.page.get_by_text("0 waiting")).to_be_visible()
    assert await http.until_ended("web") == "CREATE_COMPLETE"
    (entry,) = await audit_entries(http, hook)
    assert entry["data"] == {"ticket": "T-1", "when": "tonight", "many": 3, "sure": True}
    assert (entry["by"], entry["reason"]) == ("ann", "looked at it")
    assert entry["digest"] == hook["digest"]
    # The list is not in use any more: ended hooks disappear.
    await bob.page.mouse.move(2, 2)
    await expect(seen).to_have_count(0)


async def test_the_later_of_two_answers_sees_the_first(visit: Visit, http: Http) -> None:
    await http.create("web", {"a": resource()}, environment=hook_rule())
    (hook,) = await http.waiting_hooks("web")
    await http.create("other", {"b": resource()}, environment=hook_rule("b"))
    ann, bob = await inbox_of(visit, http, "ann"), await inbox_of(visit, http, "bob")
    yes, no = card(ann.page, "a before"), card(bob.page, "a before")
    below = card(ann.page, "b before")
    await yes.get_by_label("Reason").fill("fine by me")
    await no.get_by_label("Reason").fill("far too large")
    await no.get_by_role("button", name="Reject…").click()
    place = await below.bounding_box()
    first = await yes.get_by_role("button", name="Continue").element_handle()
    second = await no.get_by_role("button", name="Reject", exact=True).element_handle()
    press = "button => button.click()"
    await asyncio.gather(first.evaluate(press), second.evaluate(press))
    (entry,) = await _until_answered(http, hook["id"])
    winner, loser, did, written = (
        (yes, no, "ann approved", "far too large")
        if entry["by"] == "ann"
        else (no, yes, "bob rejected", "fine by me")
    )
    await expect(loser.get_by_role("alert")).to_contain_text("Your answer came too late")
    await expect(loser.get_by_text(did).first).to_be_visible()
    await expect(loser.get_by_label("Reason")).to_have_value(written)
    await expect(winner.get_by_text(did).first).to_be_visible()
    await expect(winner.get_by_role("alert")).to_have_count(0)
    moved = await below.bounding_box()
    assert winner is no or (place and moved and abs(place["y"] - moved["y"]) < 1)
    await loser.get_by_role("button", name="Discard draft").click()
    await expect(loser.get_by_role("alert")).to_have_count(0)
    await expect(loser.get_by_label("Reason")).to_have_count(0)


async def _until_answered(http: Http, hook_id: str) -> list[dict[str, Any]]:
    await http.until_ended("web")
    return await audit_entries(http, {"id": hook_id})


async def test_a_repeated_answer_names_the_first_approver(visit: Visit, http: Http) -> None:
    await http.create("web", {"a": resource()}, environment=hook_rule())
    (hook,) = await http.waiting_hooks("web")
    ann = await inbox_of(visit, http, "ann", without_stream=True)
    await ann.open("inbox", hook["id"])
    await ann.page.get_by_label("Reason").fill("fine")
    await http.signal(hook, user="bob")
    await ann.page.get_by_role("button", name="Continue").click()
    await expect(ann.page.get_by_text("bob already gave the same answer")).to_be_visible()
    await expect(ann.page.get_by_text("bob approved.")).to_be_visible()


async def test_an_expired_hook_shows_its_outcome(visit: Visit, http: Http, server: Program) -> None:
    ask = {"schema": {"type": "object", "properties": {"ticket": {"type": "string"}}}}
    await http.create("web", {"a": resource()}, environment=hook_rule(ask=ask))
    (hook,) = await http.waiting_hooks("web")
    live, late = (
        await inbox_of(visit, http, "ann"),
        await inbox_of(visit, http, "bob", without_stream=True),
    )
    row, old = card(live.page, "a before"), card(late.page, "a before")
    await row.get_by_label("ticket").fill("OPS-17")
    await row.get_by_label("Reason").fill("half a sent")
    await old.get_by_label("Reason").fill("a whole sentence")
    async with server.database.connection() as conn:
        await conn.execute(EXPIRED, UUID(hook["id"]))
    # A new hook triggers a check of the deadlines.
    await http.create("other", {"b": resource()}, environment=hook_rule("b"))
    assert await http.until_ended("web") == "CREATE_STOPPED"
    await expect(row.get_by_role("alert")).to_contain_text("decided while you were writing")
    stopped = "Timed out; the stack stopped."
    await expect(row.get_by_text(stopped).first).to_be_visible()
    await expect(row.get_by_label("Reason")).to_have_value("half a sent")
    await expect(row.get_by_label("ticket")).to_have_value("OPS-17")
    await expect(row.get_by_label("ticket")).not_to_be_editable()
    await old.get_by_role("button", name="Continue").click()
    await expect(old.get_by_role("alert")).to_contain_text("Your answer came too late")
    await expect(old.get_by_text(stopped).first).to_be_visible()
    await expect(old.get_by_label("Reason")).to_have_value("a whole sentence")


async def test_approvals_an_extension_and_a_hand_over(visit: Visit, http: Http) -> None:
    rule = hook_rule(approvals=2, timeout="30m", answer_by=["user:ann", "user:bob"])
    await http.create("web", {"a": resource()}, environment=rule)
    (hook,) = await http.waiting_hooks("web")
    ann, carl = await inbox_of(visit, http, "ann"), await inbox_of(visit, http, "carl")
    row = card(ann.page, "a before")
    await row.get_by_role("button", name="Continue").click()
    await expect(row.get_by_text("Approval recorded: 1 of 2.")).to_be_visible()
    await expect(row.get_by_text("Another approver must give the next one")).to_be_visible()
    await expect(row.get_by_text("1 of 2 given, by ann")).to_be_visible()
    await expect(row.get_by_role("button", name="Continue")).to_have_count(0)
    await row.get_by_role("button", name="Extend deadline…").click()
    await row.get_by_label("Time until the deadline").fill("soon")
    await row.get_by_role("button", name="Extend deadline", exact=True).click()
    await expect(row.get_by_text("Enter a duration, for example 30m")).to_be_visible()
    await row.get_by_label("Time until the deadline").fill("5h")
    await row.get_by_role("button", name="Extend deadline", exact=True).click()
    await expect(row.get_by_text("Deadline extended.")).to_be_visible()
    await expect(row.get_by_text("4 h 59 min left").first).to_be_visible()
    await row.get_by_role("button", name="Hand over…").click()
    await row.get_by_label("To", exact=True).fill("carl")
    await row.get_by_label("Note").fill("you know this one")
    await row.get_by_role("button", name="Hand over", exact=True).click()
    other = card(carl.page, "a before")
    await expect(other.get_by_text("you know this one")).to_be_visible()
    await other.get_by_role("button", name="Continue").click()
    await expect(row.get_by_text("carl approved.").first).to_be_visible()
    kinds = [one["kind"] for one in await audit_entries(http, hook)]
    assert kinds == ["continue", "progress", "handed-over", "continue"]
    page = await carl.open("inbox", hook["id"])
    entries = page.get_by_role("region", name="Decision history").get_by_role("listitem")
    await expect(entries).to_have_count(4)
    await expect(entries.nth(2)).to_contain_text("ann handed over")
    assert await carl.violations() == []


async def test_an_answer_changes_properties_and_shows_errors(visitor: Visitor, http: Http) -> None:
    await http.create(
        "web", {"a": resource("small")}, environment=hook_rule(patch=["value", "wait_secs"])
    )
    (hook,) = await http.waiting_hooks("web")
    page = await visitor.open("inbox", hook["id"])
    await page.get_by_role("button", name="Change properties…").click()
    send = page.get_by_role("button", name="Continue with changes")
    await send.click()
    await expect(page.get_by_text("Change at least one property")).to_be_visible()
    await page.get_by_label("value").fill("large")
    await send.click()
    await expect(page.get_by_text("Put text in quotes")).to_be_visible()
    await expect(page.get_by_role("link", name=re.compile("^About "))).to_have_count(0)
    await page.get_by_label("value").fill('"large"')
    await page.get_by_label("wait_secs").fill('"no number"')
    await send.click()
    await expect(page.get_by_label("wait_secs")).to_have_attribute("aria-invalid", "true")
    # Only the server's error has a type.
    about = page.get_by_role("link", name=re.compile("^About "))
    await expect(about).to_have_attribute("href", re.compile(rf"^{http.url}/errors/\w+$"))
    await page.get_by_label("wait_secs").fill("0")
    await send.click()
    await expect(page.get_by_text("approved with changed properties").first).to_be_visible()
    assert await http.until_ended("web") == "CREATE_COMPLETE"
    response = await http.stack_request("GET", "web", "/resources/a")
    assert response["resource"]["attributes"]["output"] == "large"


async def test_a_changed_hook_shows_the_differences_before_it_can_be_answered(
    visit: Visit, http: Http, server: Program
) -> None:
    await http.create("web", {"a": resource("small")}, environment=hook_rule())
    (hook,) = await http.waiting_hooks("web")
    ann = await inbox_of(visit, http, "ann")
    row = card(ann.page, "a before")
    await row.get_by_label("Reason").fill("small is fine")
    async with server.database.connection() as conn:
        await conn.execute(SHIFT_CLOCK, UUID(hook["id"]))
    await row.get_by_role("button", name="Continue").click()
    notice = row.get_by_role("alert")
    await expect(notice).to_contain_text("resource.properties.value: small → enormous")
    await row.get_by_role("button", name="Continue").click()
    (still,) = await http.waiting_hooks("web")
    assert still["approvals"]["given"] == 0
    await row.get_by_role("button", name="Accept the new version").click()
    await expect(notice).to_have_count(0)
    await expect(row.get_by_label("Reason")).to_have_value("small is fine")
    await row.get_by_role("button", name="Continue").click()
    await expect(row.get_by_text("ann approved.").first).to_be_visible()


async def test_a_new_version_is_accepted_before_the_previous_answer_is_refused(
    visit: Visit, http: Http, server: Program
) -> None:
    await http.create("web", {"a": resource("small")}, environment=hook_rule())
    (hook,) = await http.waiting_hooks("web")
    ann = await inbox_of(visit, http, "ann")
    row = card(ann.page, "a before")
    button = row.get_by_role("button", name="Continue")
    await expect(button).to_be_visible()
    async with server.database.connection() as conn:
        await conn.execute(SHIFT_CLOCK, UUID(hook["id"]))
    await button.click()
    accept = row.get_by_role("button", name="Accept the new version")
    await expect(accept).to_be_visible()
    sent, refuse = asyncio.Event(), asyncio.Event()

    async def delay(route: Route) -> None:
        sent.set()
        await refuse.wait()
        await route.continue_()

    await ann.page.route("**/signal", delay)
    await button.click()
    await sent.wait()
    await accept.click()
    await expect(row.get_by_role("alert")).to_have_count(0)
    await expect(button).to_be_disabled()
    refuse.set()
    await expect(button).to_be_enabled()
    await expect(row.get_by_role("alert")).to_have_count(0)
    await button.click()
    await expect(row.get_by_text("ann approved.").first).to_be_visible()


async def test_a_hook_that_does_not_exist(visitor: Visitor) -> None:
    page = await visitor.open("inbox", "00000000-0000-0000-0000-000000000000")
    await expect(page.get_by_role("heading", name="Hook not found")).to_be_visible()
    await page.get_by_role("main").get_by_role("link", name="Inbox").click()
    await expect(page.get_by_text("No hooks are waiting for approval.")).to_be_visible()
