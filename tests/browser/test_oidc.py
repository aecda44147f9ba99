"""Sign-in with an OpenID provider, through its own login form."""

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest_asyncio
from playwright.async_api import Page, expect

from hub.api.headgate.oidc import PENDING_COOKIE
from hub.auth.sessions import COOKIE
from tests.browser.conftest import Visitor
from tests.browser.inbox import WIDE
from tests.support.access import insert_credential
from tests.support.login_command import started
from tests.support.oidc_provider import OidcProvider, running_oidc_provider
from tests.support.ports import free_port
from tests.support.postgres import TestServer
from tests.support.program import Http, program, resource

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


async def fill_login_form(page: Page, account: str) -> None:
    """On the page of the provider."""
    await page.locator("input[name=login]").fill(account)
    await page.locator("input[name=password]").fill("any")
    await page.locator("button[type=submit]").click()


async def sign_in(visitor: Visitor, account: str) -> Page:
    page, wrong = visitor.page, list(visitor.wrong)
    await page.route(lambda url: "//127.0.0.1:" not in url, lambda route: route.abort())
    await page.get_by_role("button", name="Sign in with Example Login").click()
    await fill_login_form(page, account)
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


async def test_a_user_logs_in_to_the_command_line_with_the_code_of_the_terminal(
    visit: Visit, http: Http, tmp_path: Path
) -> None:
    visitor: Visitor = await visit(http, viewport={"width": 360, "height": 740})
    file = tmp_path / "contexts.json"
    async with started(file, "login", "--web", "--url", http.url, "--project", "p") as login:
        address, user_code = await login.until_code()
        page = visitor.page
        await page.route(lambda url: "//127.0.0.1:" not in url, lambda route: route.abort())
        await page.goto(str(address))
        await fill_login_form(page, "id-of-bob")
        heading = page.get_by_role("heading", name="Sign in to the command line")
        await expect(heading).to_be_visible()
        visitor.wrong.clear()  # without the errors on the pages of the provider
        await expect(page.get_by_text("will act as bob in the project p")).to_be_visible()
        assert user_code not in await page.content()
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert await visitor.violations() == []
        code = page.get_by_label("Code that your terminal shows")
        confirm = page.get_by_role("button", name="Sign in the terminal")
        await code.fill("nothing")
        await confirm.click()
        await expect(code).to_have_accessible_description(re.compile("is not the code of a login"))
        about = page.get_by_role("link", name=re.compile("^About "))
        await expect(about).to_have_attribute("href", re.compile(r"/errors/\w+$"))
        await code.fill(user_code)
        await confirm.click()
        await expect(page.get_by_role("heading", name="Return to the terminal")).to_be_visible()
        status, printed = await login.end()
    assert status == 0 and ", as bob." in printed, printed
    await page.goto("about:blank")  # whatever the page of the command requests has ended
    visitor.wrong.clear()  # without the request to the command


async def test_a_user_copies_the_code_for_a_terminal_on_another_machine(
    visit: Visit, http: Http, tmp_path: Path
) -> None:
    visitor: Visitor = await visit(http, **WIDE)
    words = ("login", "--no-browser", "--url", http.url, "--project", "p")
    async with started(tmp_path / "contexts.json", *words) as login:
        address, user_code = await login.until_code()
        page = await visitor.open("inbox")
        await sign_in(visitor, "id-of-bob")
        await page.goto(f"{visitor.url}/{address.query['page']}")
        await page.get_by_label("Code that your terminal shows").fill(user_code)
        await page.get_by_role("button", name="Sign in the terminal").click()
        code = page.get_by_label("Code for the terminal")
        await expect(code).to_be_visible()
        assert await visitor.violations() == []
        status, printed = await login.end(f"{await code.input_value()}\n")
    assert status == 0 and ", as bob." in printed, printed
