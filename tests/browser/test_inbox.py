"""The inbox: what waits is seen, live, and answered by whoever may."""

import asyncio
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from playwright.async_api import expect

from tests.browser.conftest import Visitor
from tests.browser.inbox import asks, card, somebody, trail
from tests.support.program import Http, Program, resource

Visit = Callable[..., Any]
SHIFTED = """
update hook set digest = repeat('0', 64),
       notice = jsonb_set(notice, '{properties,value}', '"enormous"') where id = $1
"""
PAST = "update hook set deadline = clock_timestamp() - interval '1 second' where id = $1"
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


async def test_what_a_rule_asks_for_is_filled_in_and_seen_live(visit: Visit, http: Http) -> None:
    ann = await somebody(visit, http, "ann")
    bob = await somebody(visit, http, "bob", color_scheme="dark")
    for one in (ann, bob):
        await expect(one.page.get_by_text("No hooks are waiting for approval.")).to_be_visible()
        await expect(one.page.get_by_text("live", exact=True)).to_be_visible()
    rule = asks(ask={"schema": ASK}, answer_by=["user:ann", "role:dba"], timeout="2h")
    await http.create(
        "web", {"a": resource("big"), "b": resource(depends_on="a")}, environment=rule
    )
    (hook,) = await http.waiting("web")
    row, seen = card(ann.page, "a before create"), card(bob.page, "a before create")
    await expect(ann.page).to_have_title(re.compile(r"^\(1\) Inbox"))
    for said in (
        "big",
        "OS::Heat::TestResource",
        "then the stack stops",
        "No subscription matches",
    ):
        await expect(row.get_by_text(said, exact=False).first).to_be_visible()
    await expect(seen.get_by_text("You are not an approver of this hook.")).to_contain_text(
        "role dba"
    )
    await expect(seen.get_by_role("button", name="Continue")).to_have_count(0)
    assert await ann.breaks() == [] and await bob.breaks() == []

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
    (entry,) = await trail(http, hook)
    assert entry["data"] == {"ticket": "T-1", "when": "tonight", "many": 3, "sure": True}
    assert (entry["by"], entry["reason"]) == ("ann", "looked at it")
    assert entry["digest"] == hook["digest"]
    # Nobody is at the list any more: what ended goes.
    await bob.page.mouse.move(2, 2)
    await expect(seen).to_have_count(0)


async def test_of_two_who_answer_at_once_one_is_told_by_whom(visit: Visit, http: Http) -> None:
    await http.create("web", {"a": resource()}, environment=asks())
    (hook,) = await http.waiting("web")
    await http.create("other", {"b": resource()}, environment=asks("b"))
    ann, bob = await somebody(visit, http, "ann"), await somebody(visit, http, "bob")
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
    (entry,) = await _answered(http, hook["id"])
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


async def _answered(http: Http, hook_id: str) -> list[dict[str, Any]]:
    await http.until_ended("web")
    return await trail(http, {"id": hook_id})


async def test_the_same_answer_twice_says_whose_it_was(visit: Visit, http: Http) -> None:
    await http.create("web", {"a": resource()}, environment=asks())
    (hook,) = await http.waiting("web")
    ann = await somebody(visit, http, "ann", deaf=True)
    await ann.open("inbox", hook["id"])
    await ann.page.get_by_label("Reason").fill("fine")
    await http.signal(hook, user="bob")
    await ann.page.get_by_role("button", name="Continue").click()
    await expect(ann.page.get_by_text("bob already gave the same answer")).to_be_visible()
    await expect(ann.page.get_by_text("bob approved.")).to_be_visible()


async def test_what_nobody_answered_in_time_is_said_plainly(
    visit: Visit, http: Http, server: Program
) -> None:
    await http.create("web", {"a": resource()}, environment=asks())
    (hook,) = await http.waiting("web")
    live, late = await somebody(visit, http, "ann"), await somebody(visit, http, "bob", deaf=True)
    row, old = card(live.page, "a before"), card(late.page, "a before")
    await row.get_by_label("Reason").fill("half a sent")
    await old.get_by_label("Reason").fill("a whole sentence")
    async with server.database.connection() as conn:
        await conn.execute(PAST, UUID(hook["id"]))
    # A hook that opens has deadlines looked at.
    await http.create("other", {"b": resource()}, environment=asks("b"))
    assert await http.until_ended("web") == "CREATE_STOPPED"
    await expect(row.get_by_role("alert")).to_contain_text("decided while you were writing")
    stopped = "Timed out; the stack stopped."
    await expect(row.get_by_text(stopped).first).to_be_visible()
    await expect(row.get_by_label("Reason")).to_have_value("half a sent")
    await old.get_by_role("button", name="Continue").click()
    await expect(old.get_by_role("alert")).to_contain_text("Your answer came too late")
    await expect(old.get_by_text(stopped).first).to_be_visible()
    await expect(old.get_by_label("Reason")).to_have_value("a whole sentence")


async def test_approvals_time_and_who_else_may(visit: Visit, http: Http) -> None:
    rule = asks(approvals=2, timeout="30m", answer_by=["user:ann", "user:bob"])
    await http.create("web", {"a": resource()}, environment=rule)
    (hook,) = await http.waiting("web")
    ann, carl = await somebody(visit, http, "ann"), await somebody(visit, http, "carl")
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
    kinds = [one["kind"] for one in await trail(http, hook)]
    assert kinds == ["continue", "progress", "handed-over", "continue"]
    page = await carl.open("inbox", hook["id"])
    said = page.get_by_role("region", name="Decision history").get_by_role("listitem")
    await expect(said).to_have_count(4)
    await expect(said.nth(2)).to_contain_text("ann handed over")
    assert await carl.breaks() == []


async def test_an_answer_changes_properties_and_what_is_wrong_is_said(
    visitor: Visitor, http: Http
) -> None:
    await http.create(
        "web", {"a": resource("small")}, environment=asks(patch=["value", "wait_secs"])
    )
    (hook,) = await http.waiting("web")
    page = await visitor.open("inbox", hook["id"])
    await page.get_by_role("button", name="Change properties…").click()
    send = page.get_by_role("button", name="Continue with changes")
    await send.click()
    await expect(page.get_by_text("Change at least one property")).to_be_visible()
    await page.get_by_label("value").fill("large")
    await send.click()
    await expect(page.get_by_text("Put text in quotes")).to_be_visible()
    await page.get_by_label("value").fill('"large"')
    await page.get_by_label("wait_secs").fill('"no number"')
    await send.click()
    await expect(page.get_by_label("wait_secs")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("wait_secs").fill("0")
    await send.click()
    await expect(page.get_by_text("approved with changed properties").first).to_be_visible()
    assert await http.until_ended("web") == "CREATE_COMPLETE"
    shown = await http.at("GET", "web", "/resources/a")
    assert shown["resource"]["attributes"]["output"] == "large"


async def test_what_shifted_is_shown_before_it_can_be_answered(
    visit: Visit, http: Http, server: Program
) -> None:
    await http.create("web", {"a": resource("small")}, environment=asks())
    (hook,) = await http.waiting("web")
    ann = await somebody(visit, http, "ann")
    row = card(ann.page, "a before")
    await row.get_by_label("Reason").fill("small is fine")
    async with server.database.connection() as conn:
        await conn.execute(SHIFTED, UUID(hook["id"]))
    await row.get_by_role("button", name="Continue").click()
    told = row.get_by_role("alert")
    await expect(told).to_contain_text("resource.properties.value: small → enormous")
    await row.get_by_role("button", name="Continue").click()
    (still,) = await http.waiting("web")
    assert still["approvals"]["given"] == 0
    await row.get_by_role("button", name="Accept the new version").click()
    await expect(told).to_have_count(0)
    await expect(row.get_by_label("Reason")).to_have_value("small is fine")
    await row.get_by_role("button", name="Continue").click()
    await expect(row.get_by_text("ann approved.").first).to_be_visible()


async def test_a_hook_that_is_not_there(visitor: Visitor) -> None:
    page = await visitor.open("inbox", "00000000-0000-0000-0000-000000000000")
    await expect(page.get_by_role("heading", name="Hook not found")).to_be_visible()
    await page.get_by_role("main").get_by_role("link", name="Inbox").click()
    await expect(page.get_by_text("No hooks are waiting for approval.")).to_be_visible()
