"""Signing in by token and by password, and what becomes of a page when a session ends."""

import re
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import aiohttp
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.inbox import WIDE, asks, card
from tests.support.access import given_directly
from tests.support.program import Http, Program, resource

Visit = Callable[..., Any]
PASSWORD = "correct horse battery"
FAILURES = 20
_projects = count(1)


@pytest_asyncio.fixture(loop_scope="session")
async def owner(guarded: Program) -> AsyncIterator[Http]:
    """Requests of an admin to a project of the test's own."""
    project = f"g{next(_projects)}"
    token = await given_directly(guarded.database, project, "root", ["admin"])
    async with aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session:
        yield Http(session, guarded.url, project)


async def _by_token(page: Page, token: str) -> None:
    await page.get_by_label("Token", exact=True).fill(token)
    await page.get_by_role("button", name="Sign in").click()


async def _by_password(page: Page, password: str) -> None:
    await page.get_by_label("Use a password").check()
    await page.get_by_label("Name").fill("ann")
    await page.get_by_label("Password", exact=True).fill(password)
    await page.get_by_role("button", name="Sign in").click()


async def test_a_reader_signs_in_by_token_and_sees_who_may_answer(
    visit: Visit, owner: Http, guarded: Program
) -> None:
    await owner.create("web", {"a": resource()}, environment=asks(answer_by=["role:dba"]))
    (hook,) = await owner.waiting("web")
    token = await given_directly(guarded.database, owner.project, "rita", ["reader"])
    rita: Visitor = await visit(owner, **WIDE)
    page = await rita.open("inbox")
    await expect(page.get_by_label("Project")).to_have_value(owner.project)
    await _by_token(page, f"hgt_{'0' * 32}_wrong")
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await rita.breaks() == []
    await _by_token(page, token)
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


async def test_what_was_written_outlives_the_session(
    visit: Visit, owner: Http, guarded: Program
) -> None:
    schema = {"type": "object", "properties": {"ticket": {"type": "string"}}}
    await owner.create("web", {"a": resource()}, environment=asks(ask={"schema": schema}))
    (hook,) = await owner.waiting("web")
    await given_directly(guarded.database, owner.project, "ann", ["approver"], password=PASSWORD)
    ann: Visitor = await visit(owner, **WIDE)
    page = await ann.open("inbox")
    await _by_password(page, "wrong, and long enough")
    await expect(page.get_by_role("alert")).to_be_visible()
    await _by_password(page, PASSWORD)
    row = card(page, "a before")
    await row.get_by_label("ticket").fill("T-7")
    await row.get_by_label("Reason").fill("a sentence of some length")
    await page.context.clear_cookies()
    # Whatever the page asks next ends the session, before the press or by it.
    await row.get_by_role("button", name="Continue").evaluate("button => button.click()")
    over = page.get_by_role("dialog", name="Your session has ended")
    await expect(over).to_be_visible()
    assert await ann.breaks() == []
    await _by_password(page, PASSWORD)
    await expect(over).to_have_count(0)
    await expect(row.get_by_text("Not sent: your session had ended.")).to_be_visible()
    await expect(row.get_by_label("ticket")).to_have_value("T-7")
    # Another window of the same browser signs in anew: this one goes on all the same.
    await expect(page.get_by_text("live", exact=True)).to_be_visible()
    other = await page.context.new_page()
    await other.goto(f"{owner.url}/#/{owner.project}/inbox")
    await other.get_by_role("button", name="Sign out").click()
    await _by_password(other, PASSWORD)
    await expect(other.get_by_text("1 waiting, 1 for you")).to_be_visible()
    await row.get_by_role("button", name="Continue").click()
    await expect(row.get_by_text("ann approved.").first).to_be_visible()
    _, said = await owner.call("GET", f"/hooks/{hook['id']}")
    assert (said["decided_by"], said["reason"]) == ("ann", "a sentence of some length")


async def test_who_guessed_too_often_is_told_how_long_to_wait(
    visit: Visit, owner: Http, guarded: Program
) -> None:
    elsewhere = {"X-Forwarded-For": "198.51.100.7"}
    token = await given_directly(guarded.database, owner.project, "rita", ["reader"])
    rita: Visitor = await visit(owner, **WIDE, extra_http_headers=elsewhere)
    page = await rita.open("inbox")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    anybody = Http(guarded.session, guarded.url, owner.project)
    wrong = {"token": f"hgt_{'0' * 32}_wrong"}
    for _ in range(FAILURES):
        assert (await anybody.call("POST", "/session", wrong, headers=elsewhere))[0] == 401
    await _by_token(page, wrong["token"])
    told = page.get_by_role("alert")
    await expect(told).to_contain_text("too many invalid tokens")
    await expect(told).to_contain_text(re.compile(r"Try again in \d+ (s|min)"))
    await expect(page.get_by_label("Token", exact=True)).to_have_value(wrong["token"])
    # A right token is accepted all the same.
    await _by_token(page, token)
    await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
