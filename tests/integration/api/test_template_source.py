"""The source of templates that are sent as text."""

import pytest

from tests.support.changes import put
from tests.support.program import Json, Program, resource

TEXT = """# what it is for
heat_template_version: 2018-08-31

resources:   # in this order
  b: {type: OS::Heat::TestResource, properties: {value: {get_param: key}}}
  a:
    type: OS::Heat::TestResource
parameters:
  key: {type: string, hidden: true}
"""
ENVIRONMENT = "parameters: {key: hush-7431}  # nobody's business\n"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def version(run: Program, number: int) -> Json:
    return await run.stack_request("GET", "s", f"/versions/{number}")


async def test_the_source_is_stored_and_inherited(running: Program) -> None:
    body: Json = {"template": TEXT, "environment": ENVIRONMENT}
    await running.create("s", {}, **body)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    first = await version(running, 1)
    assert first["source"] == TEXT
    assert "hush" not in str(first) and "nobody" not in str(first)
    await running.update("s", "PATCH", tags="x")
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await version(running, 2))["source"] == TEXT
    await put(running, "s", {"a": resource()})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await version(running, 3))["source"] is None
    changed = TEXT.replace("# what it is for", "# what else")
    await running.update("s", "PUT", template=changed, parameters={"key": "hush-7431"})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await version(running, 4))["source"] == changed
    assert (await version(running, 1))["source"] == TEXT


async def test_a_rollback_restores_the_source(running: Program) -> None:
    await running.create("s", {}, template=TEXT, parameters={"key": "k"})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    fails = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    await running.update(
        "s", "PUT", template={"heat_template_version": "2018-08-31", "resources": {"c": fails}},
        disable_rollback=False,
    )  # fmt: skip
    assert await running.until_ended("s") == "ROLLBACK_COMPLETE"
    response = await running.stack_request("GET", "s", "/versions")
    (current,) = [one["version"] for one in response["versions"] if one["current"]]
    assert (await version(running, current))["source"] == TEXT


async def test_only_templates_sent_as_text_have_a_source(running: Program) -> None:
    await running.create("s", {"a": resource()})
    await running.until_ended("s")
    assert (await version(running, 1))["source"] is None
    size = "x" * 600_000
    body = {"stack_name": "t", "template": TEXT + f"# {size}\n", "parameters": {"key": "k"}}
    status, response = await running.call("POST", "/stacks", body)
    assert status == 400 and "bytes" in response["error"]["message"]
