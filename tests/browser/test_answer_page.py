"""The page behind the links in hook notifications: the token suffices to answer."""

from playwright.async_api import expect

from tests.browser.conftest import Visitor
from tests.support.program import Http, resource
from tests.support.receiver import running_receiver, until

HOOKS = {"hooks": [{"at": "a", "on": ["pre-create"], "timeout": "10h"}]}


async def test_a_link_with_a_hook_token_answers_once(visitor: Visitor, http: Http) -> None:
    async with running_receiver() as receiver:
        subscription = {"target": receiver.url, "events": ["headgate.hook.waiting"]}
        assert (await http.call("POST", "/subscriptions", subscription))[0] == 201
        await http.create("s", {"a": resource()}, environment=HOOKS)
        await until(lambda: receiver.events)
        notice = receiver.events[0]["data"]
    page, address = visitor.page, notice["signal_url"].removesuffix("/signal")
    await page.goto(address)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("alert")).to_contain_text("no token (the part after #)")
    assert await visitor.violations() == []
    assert len(await http.waiting_hooks("s")) == 1
    await page.goto("about:blank")
    await page.goto(f"{address}#{notice['token']}")
    await page.get_by_label("Reason").fill("looks right")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("status")).to_contain_text("The change proceeds")
    assert await http.until_ended("s") == "CREATE_COMPLETE"
    _, hook = await http.call("GET", f"/hooks/{notice['hook']['id']}")
    assert (hook["decision"], hook["reason"]) == ("continue", "looks right")
    await page.get_by_role("button", name="Reject").click()
    await expect(page.get_by_role("alert")).to_contain_text("answered")
