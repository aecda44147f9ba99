"""Resources in nested stacks and groups, which the plan of their parent does not show."""

import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.integration.operator_rules.conftest import Settings, author
from tests.integration.operator_rules.guard_every_stack import recipe_settings
from tests.support.principals import PrincipalClient, hook_notifications
from tests.support.program import Json, template
from tests.support.receiver import Received, Receiver, running_receiver

#: The value of a property that the policy program does not allow.
FORBIDDEN = "forbidden"


@pytest.fixture
async def policy() -> AsyncIterator[Receiver]:
    """Rejects a plan that contains the forbidden value, and approves each resource."""
    async with running_receiver() as receiver:
        receiver.handle = decide
        yield receiver


async def decide(notification: Received) -> web.StreamResponse:
    change = notification.event["data"].get("change") or {"plan": []}
    decision = "reject" if FORBIDDEN in json.dumps(change["plan"]) else "continue"
    return web.json_response({"decision": decision, "reason": "by policy"})


def leaf(value: str) -> Json:
    return {"type": "OS::Heat::TestResource", "properties": {"value": value}}


GROUP = {"type": "OS::Heat::ResourceGroup",
         "properties": {"count": 1, "resource_def": {"type": "in.yaml"}}}  # fmt: skip
RESOURCES: dict[str, dict[str, Json]] = {
    "nested": {"r": {"type": "in.yaml"}},
    "group": {"r": GROUP},
    "twice-nested": {"r": {"type": "between.yaml"}},
}


def body(form: str, value: str) -> Json:
    files = {
        "in.yaml": json.dumps(template({"v": leaf(value)})),
        "between.yaml": json.dumps(template({"g": GROUP})),
    }
    return {"template": template(RESOURCES[form]), "files": files}


async def create(client: PrincipalClient, form: str, value: str) -> str:
    sent = {"stack_name": "s", **body(form, value)}
    status, response = await client.call("POST", "/stacks", sent)
    assert status == 201, response
    return await client.until_ended("s")


@pytest.mark.parametrize("form", RESOURCES)
async def test_the_program_sees_what_nested_stacks_contain(
    database_url: str, policy: Receiver, settings: Settings, form: str
) -> None:
    async with author(database_url, settings(policy.url)) as eve:
        assert await create(eve, form, "allowed") == "CREATE_COMPLETE"
        await eve.update("s", "PUT", **body(form, FORBIDDEN))
        assert await eve.until_ended("s") == "UPDATE_FAILED"
        reason = (await eve.stack("s"))["stack_status_reason"]
        assert "pre-stack-update rejected by subscription policy: by policy" in reason
        assert await values(eve) == {"allowed"}


async def test_a_forbidden_resource_is_not_created(
    database_url: str, policy: Receiver, settings: Settings
) -> None:
    async with author(database_url, settings(policy.url)) as eve:
        assert await create(eve, "group", FORBIDDEN) == "CREATE_FAILED"
        assert await values(eve) == set()


async def test_a_plan_says_which_content_it_does_not_show(
    database_url: str, policy: Receiver
) -> None:
    async with author(database_url, recipe_settings(policy.url)) as eve:
        await eve.create("plain", {"v": leaf("1")})
        await eve.until_ended("plain")
        assert await create(eve, "nested", "1") == "CREATE_COMPLETE"
        await eve.update("s", "PUT", **body("nested", "2"))
        assert await eve.until_ended("s") == "UPDATE_COMPLETE"
        plans = [
            (
                one["hook"]["path"],
                [(item["type"], item["nested"], item["certain"]) for item in plan],
            )
            for one in hook_notifications(policy)
            if (plan := (one.get("change") or {}).get("plan")) is not None
        ]
        plain, nested = ("OS::Heat::TestResource", False, True), ("in.yaml", True, False)
        assert plans == [
            ("", [plain]), ("", [nested]), ("r", [plain]), ("", [nested]), ("r", [plain]),
        ]  # fmt: skip


async def values(client: PrincipalClient) -> set[str]:
    """The values of the resources that exist, in all nested stacks."""
    stack = await client.stack("s")
    path = f"/stacks/s/{stack['id']}/resources?nested_depth=5"
    _, response = await client.call("GET", path)
    shown: set[str] = set()
    for one in response["resources"]:
        if one["resource_type"] == "OS::Heat::TestResource" and one["physical_resource_id"]:
            (link,) = [each["href"] for each in one["links"] if each["rel"] == "self"]
            _, resource = await client.call("GET", "/" + link.split("/v1/p/")[1])
            shown.add(resource["resource"]["attributes"]["output"])
    return shown
