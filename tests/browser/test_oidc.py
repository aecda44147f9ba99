"""Sign-in with an OpenID provider, through its own login form."""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest_asyncio
from playwright.async_api import Page, expect

from hub.api.headgate.oidc import PENDING_COOKIE
from hub.auth.sessions import COOKIE
from tests.browser.conftest import Visitor
from tests.browser.inbox import WIDE
from tests.support.access import insert_credential
from tests.support.oidc_provider import OidcProvider, running_oidc_provider
from tests.support.postgres import TestServer
from tests.support.program import Http, free_port, program, resource

Visit = Callable[..., Any]


@pytest_asyncio.fixture(loop_scope="session")
async def provider() -> AsyncIterator[OidcProvider]:
    async with running_oidc_provider(f"http://127.0.0.1:{free_port()}") as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def http(postgres: TestServer, provider: OidcProvider) -> AsyncIterator[Http]:
    """Requests of an admin to the server that uses the provider."""
    port = provider.redirect_uri.rpartition(":")[2].partition("/")[0]
    settings = {"server.listen": f"127.0.0.1:{port}", **provider.settings()}
    async with postgres.new_database() as url, program(url, settings) as run:
        token = await insert_credential(run.database, "p", "root", ["admin"])
        async with aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session:
            yield Http(session, run.url, "p")


async def sign_in(visitor: Visitor, account: str) -> Page:
    page, wrong = visitor.page, list(visitor.wrong)
    await page.route(lambda url: "//127.0.0.1:" not in url, lambda route: route.abort())
    await page.get_by_role("button", name="Sign in with Example Login").click()
    await page.locator("input[name=login]").fill(account)
    await page.locator("input[name=password]").fill("any")
    await page.locator("button[type=submit]").click()
    await page.wait_for_url(re.compile(re.escape(visitor.url)))
    visitor.wrong[:] = wrong  # without the errors on the pages of the provider
    return page


async def test_an_approver_signs_in_and_returns_to_the_page_of_the_stack(
    visit: Visit, http: Http
) -> None:
    rule = {"at": "a", "on": "pre-create", "answer_by": ["user:bob@oidc"]}
    stack = await http.create("web", {"a": resource()}, environment={"hooks": [rule]})
    visitor: Visitor = await visit(http, **WIDE)
    page = await visitor.open("stack", "web", stack)
    await expect(page.get_by_label("Project")).to_have_value("p")
    await expect(page.get_by_label("Token", exact=True)).to_be_visible()
    assert await visitor.violations() == []
    await sign_in(visitor, "id-of-bob")
    debugger = page.get_by_role("region", name="Debugger")
    await expect(debugger).to_contain_text("a at pre-create")
    assert f"/stack/web/{stack}" in page.url
    await debugger.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("status", name="Status")).to_have_text(
        re.compile("CREATE_COMPLETE")
    )


async def test_a_user_without_a_role_reads_why_and_returns_to_the_sign_in(
    visit: Visit, http: Http
) -> None:
    visitor: Visitor = await visit(http, viewport={"width": 360, "height": 740})
    await visitor.open("inbox")
    page = await sign_in(visitor, "id-of-eve")
    await expect(page.get_by_role("heading", name="Sign-in failed")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("eve has no role in the project p")
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert await visitor.violations() == []
    await page.get_by_role("link", name="Back to sign-in").click()
    await expect(page.get_by_role("button", name="Sign in with Example Login")).to_be_visible()
    cookies = await page.context.cookies(visitor.url)
    assert not {one["name"] for one in cookies} & {COOKIE, PENDING_COOKIE}
