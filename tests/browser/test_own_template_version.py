"""Stacks of Headgate's own template version: keys in names, entries of `data`, and dependencies."""

import re

from playwright.async_api import expect

from tests.browser.conftest import Visitor
from tests.browser.test_stack import expect_state, node, status
from tests.support.program import Http, Json, resource


async def create(http: Http, name: str, template: Json, *rules: Json) -> str:
    body = {"stack_name": name, "template": {"heat_template_version": "2026-12-01", **template},
            "environment": {"hooks": list(rules)}}  # fmt: skip
    code, response = await http.call("POST", "/stacks", body)
    assert code == 201, response
    return str(response["stack"]["id"])


async def test_resources_of_a_loop_and_entries_of_data_are_shown_and_stepped(
    visitor: Visitor, http: Http
) -> None:
    name = 'web["a"]'
    loop = resource({"get_attr": ["data.salt", "output"]}, for_each=["a", "b.c"])
    salt = {"type": "OS::Heat::TestResource", "id": "an-id"}
    stack = await create(
        http, "loop", {"data": {"salt": salt}, "resources": {"web": loop}},
        {"at": name, "on": "pre-create"},
    )  # fmt: skip
    page = await visitor.open("stack", "loop", stack)
    await expect_state(page, name, "waiting for approval at pre-create")
    await expect_state(page, 'web["b.c"]', "done")
    await expect_state(page, "data.salt", "done")
    await expect(page.get_by_role("region", name="Debugger")).to_contain_text(
        f"{name} at pre-create"
    )
    assert await visitor.violations() == []

    await node(page, name).click()
    panel = page.get_by_role("complementary", name=name)
    await expect(panel.get_by_role("button", name="data.salt", exact=True)).to_be_visible()
    await expect(panel.get_by_role("definition").filter(has_text=name).first).to_be_visible()
    await panel.get_by_role("button", name="data.salt", exact=True).click()
    panel = page.get_by_role("complementary", name="data.salt")
    await expect(panel.get_by_text("an-id", exact=True)).to_be_visible()
    await expect(panel.get_by_role("button", name=name, exact=True)).to_be_visible()
    await panel.get_by_role("button", name=name, exact=True).click()
    panel = page.get_by_role("complementary", name=name)
    await panel.get_by_role("button", name="Continue").click()
    await expect(status(page)).to_have_text(re.compile("CREATE_COMPLETE"))

    await page.get_by_role("button", name="Resources").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("button", name=name))
    await expect(row).to_contain_text("create: done")
    await row.get_by_role("button").first.click()
    await expect(page.get_by_role("complementary", name=name)).to_be_visible()


async def test_stacks_that_read_outputs_of_each_other_are_linked(
    visitor: Visitor, http: Http
) -> None:
    outputs = {"size": {"value": {"get_attr": ["a", "output"]}}}
    net = {"resources": {"a": resource("3")}, "outputs": outputs}
    read = await create(http, "net", net)
    await http.until_ended("net")
    reader = await create(
        http, "app", {"resources": {"b": resource({"stack_output": ["net", "size"]})}}
    )
    await http.until_ended("app")

    page = await visitor.open("stack", "app", reader)
    await page.get_by_role("button", name="Dependencies").click()
    reads = page.get_by_role("region", name="Outputs of other stacks")
    await expect(reads.get_by_role("row").nth(1)).to_contain_text("unchanged")
    await expect(page.get_by_text("No stack reads outputs of this stack.")).to_be_visible()
    assert await visitor.violations() == []

    await reads.get_by_role("link", name="net").click()
    await expect(status(page)).to_have_text(re.compile("CREATE_COMPLETE"))
    assert f"/stack/net/{read}" in page.url
    await page.get_by_role("button", name="Dependencies").click()
    await expect(page.get_by_text("The stack reads no outputs of other stacks.")).to_be_visible()
    readers = page.get_by_role("region", name="Stacks that read this one")
    await expect(readers.get_by_role("link", name="app")).to_be_visible()

    net["resources"] = {"a": resource("4")}
    await http.update("net", "PUT", template={"heat_template_version": "2026-12-01", **net})
    await http.until_ended("net")
    await readers.get_by_role("link", name="app").click()
    await expect(page.get_by_role("heading", name="app", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Dependencies").click()
    await expect(reads.get_by_role("row").nth(1)).to_contain_text("has changed since it was read")


async def test_a_plan_names_resources_that_an_unknown_value_may_replace(
    visitor: Visitor, http: Http
) -> None:
    parameters = {"revision": {"type": "string", "default": "1"}}
    triggers = {"replace_when": [{"get_attr": ["net", "output"]}]}
    resources = {"net": resource("n${revision}"), "app": resource("x", lifecycle=triggers)}
    own = {"heat_template_version": "2026-12-01", "parameters": parameters, "resources": resources}
    # Without an environment: the form of the parameters writes its first section.
    body = {"stack_name": "plan", "template": own}
    code, response = await http.call("POST", "/stacks", body)
    assert code == 201, response
    stack = str(response["stack"]["id"])
    await http.until_ended("plan")
    page = await visitor.open("edit", "plan", stack)
    await page.get_by_role("tab", name="Parameters").click()
    await page.get_by_role("textbox", name="revision").fill("2", timeout=9000)
    plan = page.get_by_role("region", name="Plan")
    await expect(plan.get_by_role("status")).to_have_text("1 updated, 1 may change.")
    uncertain = plan.get_by_role("region", name="Resources that may change")
    await expect(uncertain).to_contain_text("app")
    await expect(uncertain).to_contain_text("may be changed or replaced")
    assert await visitor.violations() == []
