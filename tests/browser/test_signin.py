"""Sign-in with a token and with a password, and pages whose session ends."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import aiohttp
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from tests.browser.conftest import Visitor
from tests.browser.inbox import WIDE, card, hook_rule
from tests.support.access import insert_credential
from tests.support.program import Http, Program, resource

Visit = Callable[..., Any]
PASSWORD = "correct horse battery"
FAILURES = 20
WAIT = 30
_projects = count(1)


@pytest_asyncio.fixture(loop_scope="session")
async def owner(token_server: Program) -> AsyncIterator[Http]:
    """Requests of an admin to a separate project."""
    project = f"g{next(_projects)}"
    token = await insert_credential(token_server.database, project, "root", ["admin"])
    async with aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session:
        yield Http(session, token_server.url, project)


async def _sign_in_by_token(page: Page, token: str) -> None:
    await page.get_by_label("Token", exact=True).fill(token)
    await page.get_by_role("button", name="Sign in").click()


async def _sign_in_by_password(page: Page, password: str) -> None:
    await page.get_by_label("Use a password").check()
    await page.get_by_label("Name").fill("ann")
    await page.get_by_label("Password", exact=True).fill(password)
    await page.get_by_role("button", name="Sign in").click()


async def _signed_in_reader(visit: Visit, owner: Http, token_server: Program) -> Page:
    token = await insert_credential(token_server.database, owner.project, "rita", ["reader"])
    rita: Visitor = await visit(owner, **WIDE)
    page = await rita.open("inbox")
    await _sign_in_by_token(page, token)
    await expect(page.get_by_text("live", exact=True)).to_be_visible()
    return page


async def test_a_reader_signs_in_with_a_token_and_sees_the_approvers(
    visit: Visit, owner: Http, token_server: Program
) -> None:
    await owner.create("web", {"a": resource()}, environment=hook_rule(answer_by=["role:dba"]))
    (hook,) = await owner.waiting_hooks("web")
    token = await insert_credential(token_server.database, owner.project, "rita", ["reader"])
    rita: Visitor = await visit(owner, **WIDE)
    page = await rita.open("inbox")
    await expect(page.get_by_label("Project")).to_have_value(owner.project)
    for way in ("Use a token", "Use a password"):
        label = await page.locator("label", has_text=way).bounding_box()
        radio = await page.get_by_label(way).bounding_box()
        assert label and radio
        assert label["height"] < 32  # one line, with the button in it
        assert radio["width"] < 24
    await _sign_in_by_token(page, f"hgt_{'0' * 32}_wrong")
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await rita.violations() == []
    await _sign_in_by_token(page, token)
    row = card(page, "a before create")
    await expect(row.get_by_text("You do not have permission to answer hooks.")).to_contain_text(
        "role dba"
    )
    await expect(row.get_by_role("region", name="Answer").get_by_role("button")).to_have_count(0)
    await expect(page.get_by_text("1 waiting, 0 for you")).to_be_visible()
    await page.get_by_label("For me").check()
    await expect(page.get_by_text("No waiting hooks match the filters.")).to_be_visible()
    await rita.open("inbox", hook["id"])
    await expect(page.get_by_text("You do not have permission to answer hooks.")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await page.context.cookies() == []


async def test_a_sign_out_shows_no_ended_session_while_the_server_responds(
    visit: Visit, owner: Http, token_server: Program
) -> None:
    page = await _signed_in_reader(visit, owner, token_server)
    ended, shown = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        if route.request.method != "DELETE":
            await route.continue_()
            return
        response = await route.fetch()
        ended.set()
        await shown.wait()
        await route.fulfill(response=response)

    await page.route("**/session", hold)
    await page.get_by_role("button", name="Sign out").click()
    async with asyncio.timeout(WAIT):
        await ended.wait()
    # The session has ended; the page requests its stacks, which the server refuses.
    async with page.expect_response(lambda response: response.status == 401):
        await page.get_by_role("link", name="Stacks").click()
    await expect(page.get_by_role("heading", name="Stacks")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    shown.set()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert await page.context.cookies() == []


async def test_a_sign_out_after_the_session_has_ended_signs_out(
    visit: Visit, owner: Http, token_server: Program
) -> None:
    page = await _signed_in_reader(visit, owner, token_server)
    await page.context.clear_cookies()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Token", exact=True)).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_a_draft_outlives_the_session(
    visit: Visit, owner: Http, token_server: Program
) -> None:
    schema = {"type": "object", "properties": {"ticket": {"type": "string"}}}
    await owner.create("web", {"a": resource()}, environment=hook_rule(ask={"schema": schema}))
    (hook,) = await owner.waiting_hooks("web")
    await insert_credential(
        token_server.database, owner.project, "ann", ["approver"], password=PASSWORD
    )
    ann: Visitor = await visit(owner, **WIDE)
    page = await ann.open("inbox")
    await _sign_in_by_password(page, "wrong, and long enough")
    await expect(page.get_by_role("alert")).to_be_visible()
    await _sign_in_by_password(page, PASSWORD)
    row = card(page, "a before")
    await row.get_by_label("ticket").fill("T-7")
    await row.get_by_label("Reason").fill("a sentence of some length")
    await page.context.clear_cookies()
    # The next request of the page ends the session, before or after the click.
    await row.get_by_role("button", name="Continue").evaluate("button => button.click()")
    over = page.get_by_role("dialog", name="Your session has ended")
    await expect(over).to_be_visible()
    assert await ann.violations() == []
    await _sign_in_by_password(page, PASSWORD)
    await expect(over).to_have_count(0)
    await expect(row.get_by_text("Not sent: your session had ended.")).to_be_visible()
    await expect(row.get_by_label("ticket")).to_have_value("T-7")
    # The user signs in again in another window of the browser: this page continues, too.
    await expect(page.get_by_text("live", exact=True)).to_be_visible()
    other = await page.context.new_page()
    await other.goto(f"{owner.url}/#/{owner.project}/inbox")
    await other.get_by_role("button", name="Sign out").click()
    await expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    # The next request of the first window notices the end, if its stream has not.
    await row.get_by_role("button", name="Continue").evaluate("button => button.click()")
    await expect(over).to_be_visible()
    await _sign_in_by_password(other, PASSWORD)
    await expect(other.get_by_text("1 waiting, 1 for you")).to_be_visible()
    await expect(over).to_have_count(0)
    await row.get_by_role("button", name="Continue").click()
    await expect(row.get_by_text("ann approved.").first).to_be_visible()
    _, response = await owner.call("GET", f"/hooks/{hook['id']}")
    assert (response["decided_by"], response["reason"]) == ("ann", "a sentence of some length")


async def test_a_lockout_shows_the_remaining_time(
    visit: Visit, owner: Http, token_server: Program
) -> None:
    other_address = {"X-Forwarded-For": "198.51.100.7"}
    token = await insert_credential(token_server.database, owner.project, "rita", ["reader"])
    rita: Visitor = await visit(owner, **WIDE, extra_http_headers=other_address)
    page = await rita.open("inbox")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    anonymous = Http(token_server.session, token_server.url, owner.project)
    invalid = {"token": f"hgt_{'0' * 32}_wrong"}
    for _ in range(FAILURES):
        assert (await anonymous.call("POST", "/session", invalid, headers=other_address))[0] == 401
    await _sign_in_by_token(page, invalid["token"])
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("too many invalid tokens")
    await expect(alert).to_contain_text(re.compile(r"Try again in \d+ (s|min)"))
    await expect(page.get_by_label("Token", exact=True)).to_have_value(invalid["token"])
    # A valid token is still accepted.
    await _sign_in_by_token(page, token)
    await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
