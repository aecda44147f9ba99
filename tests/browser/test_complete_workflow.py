"""The workflow of one user: sign in, create a stack with a breakpoint, inspect, step, answer, stop,
edit and resume until it is complete. Screenshots are in build/pictures.
"""

import re
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import Visit, Visitor
from tests.support.access import insert_credential
from tests.support.program import Http, Program

PICTURES = Path(__file__).parents[2] / "build" / "pictures"
TEMPLATE = """\
# A comment, which the editor shows again.
heat_template_version: 2018-08-31
parameters:
  release: {type: string, default: "1"}
  password: {type: string, hidden: true, default: s3cr3t-word}
resources:
  network: {type: OS::Heat::TestResource, properties: {value: ten}}
  database:
    type: OS::Heat::TestResource
    depends_on: network
    properties: {value: {get_param: password}}
  app:
    type: OS::Heat::TestResource
    depends_on: database
    properties: {value: {get_param: release}}
  address: {type: OS::Heat::TestResource, depends_on: app, properties: {value: here}}
"""
ENVIRONMENT = """\
hooks:
  - at: database
    on: pre-create
    ask:
      schema:
        type: object
        required: [ticket]
        properties: {ticket: {type: string, title: Ticket}}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def token_http(token_server: Program) -> Http:
    await insert_credential(
        token_server.database, "shop", "ada", ["author", "approver"], password="pass-word-of-ada"
    )
    return Http(token_server.session, token_server.url, "shop")


async def picture(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    # Playwright hides the caret with a style that the policy of the page forbids.
    await page.screenshot(path=PICTURES / f"{name}.png", caret="initial")


def node(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(rf"^{name}, "))


async def expect_state(page: Page, name: str, how: str) -> None:
    await expect(node(page, name)).to_have_accessible_name(re.compile(how))


async def test_from_sign_in_to_complete(visit: Visit, token_http: Http) -> None:
    visitor = await visit(token_http, viewport={"width": 1280, "height": 800})
    page = visitor.page
    await sign_in(visitor)
    await create_stack(page)
    await inspect_hook(page)
    await answer_and_stop(visitor)
    await edit_and_resume(page)
    for name in ("app", "address"):  # the others did not change
        await expect_state(page, f"{name}, create", "done")
    await picture(page, "8-complete")
    await page.get_by_role("link", name="Audit").click()
    await expect(page.get_by_role("main")).to_contain_text("OPS-17")
    await expect(page.get_by_role("main")).not_to_contain_text("s3cr3t-word")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def sign_in(visitor: Visitor) -> None:
    page = await visitor.open("inbox")
    await page.get_by_role("radio", name="Use a password").check()
    await page.get_by_role("textbox", name="Name").fill("ada")
    await page.get_by_role("textbox", name="Password").fill("pass-word-of-bob")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await picture(page, "1-signing-in")
    await page.get_by_role("textbox", name="Password").fill("pass-word-of-ada")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("No hooks are waiting for approval.")).to_be_visible()


async def create_stack(page: Page) -> None:
    """A new stack, with a breakpoint in its environment."""
    await page.get_by_role("link", name="Stacks").click()
    await page.get_by_role("link", name="New stack").click()
    await page.get_by_role("textbox", name="Stack name").fill("web")
    for tab, text in (("Template", TEMPLATE), ("Environment", ENVIRONMENT)):
        await page.get_by_role("tab", name=tab).click()
        await page.get_by_role("textbox", name=tab).click()
        await page.keyboard.press("Control+a")
        await page.keyboard.insert_text(text)
    plan = page.get_by_role("region", name="Plan", exact=True)
    await expect(plan).to_contain_text("4 added")
    await expect(plan).to_contain_text("pre-create")
    await picture(page, "2-new-stack")
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page).to_have_url(re.compile("/stack/web/"))


async def inspect_hook(page: Page) -> None:
    """The stack waits; inspect the hook and set a breakpoint after it."""
    await expect_state(page, "database", "waiting for approval at pre-create")
    await node(page, "database").click()
    panel = page.get_by_role("complementary", name="database")
    await expect(panel).to_contain_text("OS::Heat::TestResource")
    assert "s3cr3t-word" not in await page.content()
    await page.get_by_role("button", name="Breakpoint after database").click()
    await expect_state(page, "database", "post-create")
    await picture(page, "3-at-the-gate")


async def answer_and_stop(visitor: Visitor) -> None:
    """Answer in the inbox with the requested data, then step, then stop the stack."""
    page = visitor.page
    await page.get_by_role("navigation").get_by_role("link", name="Inbox").click()
    # The page of the stack has the same form: text typed while it is replaced would be lost.
    await expect(page.get_by_role("heading", name="Inbox", exact=True)).to_be_visible()
    await page.get_by_label("Ticket").fill("OPS-17")
    await page.get_by_label("Reason").fill("backup is done")
    await picture(page, "4-inbox")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_text("you approved").first).to_be_visible()
    await page.get_by_role("link", name="Stacks").click()
    await expect(page.get_by_role("heading", name="Stacks", exact=True)).to_be_visible()
    await page.get_by_role("link", name="web", exact=True).click()
    await expect_state(page, "database", "waiting for approval at post-create")
    debugger = page.get_by_role("region", name="Debugger")
    await debugger.get_by_role("button", name="Step", exact=True).click()
    await expect_state(page, "app", "waiting for approval at pre-create")
    await picture(page, "5-stepped")
    await page.get_by_role("button", name="Stop").first.click()
    await page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    await expect(page.get_by_role("status", name="Status")).to_contain_text("CREATE_STOPPED")


async def edit_and_resume(page: Page) -> None:
    """The text is as submitted; change it and resume."""
    await page.get_by_role("link", name="Edit", exact=True).click()
    text = page.get_by_role("textbox", name="Template")
    await expect(text).to_contain_text("A comment")
    await page.get_by_role("tab", name="Parameters").click()
    await page.get_by_role("textbox", name="release").fill("2")
    plan = page.get_by_role("region", name="Plan", exact=True)
    await expect(plan).to_contain_text("2 added, 2 unchanged")
    await picture(page, "6-edited")
    await page.get_by_role("button", name="Resume with changes").click()
    await expect(page.get_by_role("status", name="Status")).to_contain_text("UPDATE_COMPLETE")
    await picture(page, "7-resumed")
