"""Subscriptions: create, test, failures, resend; and subscriptions from other sources."""

import re
from typing import Any

from playwright.async_api import expect

from tests.browser.conftest import Visit, Visitor
from tests.support.postgres import TestServer
from tests.support.program import Http, eventually, program, resource
from tests.support.receiver import running_receiver

HOOKS = {"hooks": [{"at": "a", "on": ["pre-create"]}]}


async def test_a_subscription_is_created_fails_and_delivers_again(
    visitor: Visitor, http: Http
) -> None:
    async with running_receiver() as receiver:
        page = await visitor.open("subscriptions")
        await page.get_by_role("link", name="New subscription").click()
        target = page.get_by_label("Target")
        await target.fill("http://10.0.0.1/hook")
        await page.get_by_label("Events", exact=True).fill(
            "headgate.hook.waiting, headgate.nothing.*"
        )
        await page.keyboard.press("Enter")
        await expect(target).to_have_attribute("aria-invalid", "true")
        await expect(page.get_by_text("a private network")).to_be_visible()
        about = page.get_by_role("link", name="About InvalidTarget")
        await expect(about).to_have_attribute("href", f"{http.url}/errors/InvalidTarget")
        assert await visitor.violations() == []
        await target.fill(f"{receiver.url}/hook?key=abc")
        await page.keyboard.press("Enter")
        secret = page.get_by_label("the secret", exact=True)
        assert len(await secret.input_value()) > 20
        await page.get_by_role("button", name="Done").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text(f"{receiver.url}/hook?…")
        await expect(page.get_by_text("headgate.hook.waiting, headgate.nothing.*")).to_be_visible()

        await page.get_by_role("button", name="Send test event").click()
        await expect(page.get_by_text("Test event delivered")).to_be_visible()
        await expect(page.get_by_text("thanks")).to_be_visible()
        assert [one["type"] for one in receiver.events] == ["headgate.subscription.test"]

        receiver.respond_with_statuses(410)
        await http.create("shop", {"a": resource()}, environment=HOOKS)
        deliveries = page.locator(".subscriptions-deliveries > li")
        await expect(deliveries).to_have_count(1)
        await expect(deliveries).to_contain_text("dead")
        await expect(deliveries).to_contain_text("response 410")
        enable = page.get_by_role("button", name="Enable", exact=True)
        await enable.click()
        await expect(page.get_by_text("enabled", exact=True)).to_be_visible()
        receiver.respond_with_statuses(200)
        await page.get_by_role("button", name="Resend all dead").click()
        await expect(deliveries).to_contain_text("delivered")
        assert [one["type"] for one in receiver.events[1:]] == ["headgate.hook.waiting"] * 2
        await page.get_by_label("state").select_option("dead")
        await expect(page.get_by_text("No dead deliveries.")).to_be_visible()
        await page.get_by_label("state").select_option("")
        await deliveries.get_by_role("button", name="Resend").click()
        await eventually_received(receiver, 4)
        assert await visitor.violations() == []

        await page.get_by_role("button", name="Edit…").click()
        await page.get_by_label("Stacks", exact=True).fill("sh*")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("sh*")).to_be_visible()
        await page.get_by_role("button", name="Rotate secret").click()
        await page.get_by_role("button", name="Rotate secret", exact=True).click()
        await expect(secret).to_be_visible()
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Disable").click()
        await expect(enable).to_be_visible()
        # Events in the meantime are missed until a user resends them.
        await http.create("ship", {"a": resource()}, environment=HOOKS)
        await http.waiting_hooks("ship")
        await enable.click()
        await page.get_by_role("button", name="Resend since…").click()
        await page.get_by_label("Resend all events since").fill("2020-01-01T00:00")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Resending 1 delivery.")).to_be_visible()
        await eventually_received(receiver, 5)
        assert receiver.events[4]["data"]["stack"]["name"] == "ship"
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="Subscriptions")).to_be_visible()
        await expect(page.get_by_text("No subscriptions yet")).to_be_visible()


async def test_quiet_hours_are_set_shown_and_removed(visitor: Visitor, http: Http) -> None:
    body = {"channel": "slack", "target": "http://127.0.0.1:9/room"}
    _, created = await http.call("POST", "/subscriptions", body)
    page = await visitor.open("subscriptions", created["id"])
    await page.get_by_role("button", name="Edit…").click()
    start = page.get_by_label("From", exact=True)
    await start.fill("22:00")
    await page.get_by_label("To", exact=True).fill("7:00")
    await page.get_by_label("Time zone").fill("Europe/Berlin")
    await page.get_by_label("Begin on").fill("mon-wed sun")
    await page.get_by_role("button", name="Save").click()
    await expect(start).to_have_accessible_description(re.compile("is not a time of day"))
    assert await visitor.violations() == []
    await page.get_by_label("To", exact=True).fill("07:00")
    await page.get_by_role("button", name="Save").click()
    shown = page.get_by_text("22:00 to 07:00 Europe/Berlin, mon, tue, wed, sun")
    await expect(shown).to_be_visible()
    await expect(page.get_by_text("unordered")).to_be_visible()
    await page.get_by_role("button", name="Edit…").click()
    await expect(page.get_by_label("Begin on")).to_have_value("mon tue wed sun")
    for label in ("From", "To"):
        await page.get_by_label(label, exact=True).fill("")
    await page.get_by_role("button", name="Save").click()
    await expect(shown).to_have_count(0)
    _, found = await http.call("GET", f"/subscriptions/{created['id']}")
    assert found["quiet_hours"] is None


async def test_a_digest_is_set_shown_and_removed(visitor: Visitor, http: Http) -> None:
    body = {"channel": "slack", "target": "http://127.0.0.1:9/room"}
    _, created = await http.call("POST", "/subscriptions", body)
    page = await visitor.open("subscriptions", created["id"])
    await page.get_by_role("button", name="Edit…").click()
    period = page.get_by_label("Period")
    await expect(page.get_by_label("Send at")).to_have_count(0)
    await period.select_option("daily")
    await page.get_by_label("Send at").fill("8 Uhr")
    await page.get_by_label("Zone of the digest").fill("Europe/Berlin")
    await page.get_by_role("button", name="Save").click()
    await expect(period).to_have_accessible_description(re.compile("is not a time of day"))
    assert await visitor.violations() == []
    await page.get_by_label("Send at").fill("08:00")
    await page.get_by_role("button", name="Save").click()
    shown = page.get_by_text("daily at 08:00 Europe/Berlin")
    await expect(shown).to_be_visible()
    await page.get_by_role("button", name="Edit…").click()
    await expect(period).to_have_value("daily")
    await period.select_option("")
    await page.get_by_role("button", name="Save").click()
    await expect(shown).to_have_count(0)
    _, found = await http.call("GET", f"/subscriptions/{created['id']}")
    assert found["digest"] is None


async def eventually_received(receiver: Any, many: int) -> None:
    async def received() -> bool:
        return len(receiver.received) >= many

    await eventually(received)


async def test_subscriptions_of_other_sources_and_users_on_a_phone(
    visit: Visit, http: Http
) -> None:
    async with running_receiver() as receiver:
        sinks = [{"type": "webhook", "target": f"{receiver.url}/sink"}]
        await http.create("shop", {"a": resource()}, environment={"event_sinks": sinks})
        await http.until_ended("shop")
        visitor = await visit(http, viewport={"width": 360, "height": 700})
        page = await visitor.open("subscriptions")
        marks = page.get_by_role("img", name=re.compile(r"^last \d+: \d+ delivered$"))
        await expect(marks).to_be_visible()
        assert await visitor.violations() == []
        await page.get_by_role("link", name="/sink").click()
        await expect(page.get_by_text("Update that stack to change it")).to_be_visible()
        for name in ("Edit…", "Disable", "Delete"):
            await expect(page.get_by_role("button", name=name)).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        body = {"target": f"{receiver.url}/other"}
        _, response = await http.call("POST", "/subscriptions", body)
        await visitor.open("subscriptions", response["id"])
        await expect(page.get_by_text("No deliveries yet")).to_be_visible()
        await http.call("DELETE", f"/subscriptions/{response['id']}")
        await expect(page.get_by_role("alert")).to_contain_text("were deleted by anonymous")
        await visitor.open("subscriptions", "no-such")
        await expect(page.get_by_role("alert")).to_contain_text("no subscription")


async def test_a_subscription_of_the_settings_file(visit: Visit, postgres: TestServer) -> None:
    """It can be tested and resent, and is changed in the settings file."""
    async with running_receiver() as receiver, postgres.new_database() as url:
        written = {"project": "ours", "channel": "webhook", "target": f"{receiver.url}/written"}
        async with program(url, {"subscriptions": [written]}) as run:
            visitor = await visit(Http(run.session, run.url, "ours"))
            page = await visitor.open("subscriptions")
            await page.get_by_role("link", name="/written").click()
            await expect(page.get_by_text("Defined in the server configuration")).to_be_visible()
            for name in ("Edit…", "Disable", "Delete"):
                await expect(page.get_by_role("button", name=name)).to_have_count(0)
            await page.get_by_role("button", name="Send test event").click()
            await expect(page.get_by_text("Test event delivered")).to_be_visible()
            assert await visitor.violations() == []
            await page.close()
