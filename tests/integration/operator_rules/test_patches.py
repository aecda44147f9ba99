"""Answers that patch properties, after the policy program has approved them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.operator_rules.guard_every_stack import Policy, run_recipe, running_policy
from tests.support.principals import PrincipalClient, hook_notifications, token_client
from tests.support.program import Json, Program, eventually, template
from tests.support.receiver import Receiver, running_receiver, until

PATCH = {"decision": "patch", "properties": {"value": "patched"}}


@pytest.fixture
async def policy() -> AsyncIterator[Policy]:
    """Approves everything."""
    async with running_policy() as one:
        one.decision = "continue"
        one.released.set()
        yield one


def value(text: str) -> Json:
    return {"type": "OS::Heat::TestResource", "properties": {"value": text}}


def body(nested: bool, text: str = "approved", **rule: Json) -> Json:
    """A stack whose author lets answers patch `v`."""
    path = "inner/v" if nested else "v"
    rules = {"add": [{"at": path, "on": ["pre-create", "pre-update"], "patch": True, **rule}]}
    if not nested:
        return {"template": template({"v": value(text)}), "hooks": rules}
    files = {"inner.yaml": str(template({"v": value(text)})).replace("'", '"')}
    return {"template": template({"inner": {"type": "inner.yaml"}}), "files": files, "hooks": rules}


async def create(client: PrincipalClient, request: Json) -> Json:
    """The hook of the project's rule."""
    status, response = await client.call("POST", "/stacks", {"stack_name": "s", **request})
    assert status == 201, response
    return await at_project_rule(client, "pre-create")


async def at_project_rule(client: PrincipalClient, point: str) -> Json:
    """The waiting hook of the project's rule."""

    async def waiting_hook() -> Json:
        _, response = await client.call("GET", f"/hooks?state=waiting&stack=s&point={point}")
        return next((one for one in response["hooks"] if not one["by_operator"]), None)

    return await eventually(waiting_hook)


def notified(receiver: Receiver, hook: Json) -> list[Json]:
    """`allowed` in the notifications of a hook."""
    found = (one["hook"] for one in hook_notifications(receiver))
    return [one["allowed"] for one in found if one["id"] == hook["id"]]


async def patch(client: PrincipalClient, hook: Json) -> tuple[int, Json]:
    return await client.call("POST", f"/hooks/{hook['id']}/signal", PATCH)


@pytest.mark.parametrize("nested", [False, True], ids=["root", "nested"])
async def test_an_answer_cannot_change_what_an_operator_rule_has_approved(
    database_url: str, policy: Policy, nested: bool
) -> None:
    async with run_recipe(database_url, policy.receiver.url) as run, running_receiver() as receiver:
        eve = await token_client(run, "eve", ["author", "approver"])
        await eve.subscribe(receiver)
        hook = await create(eve, body(nested))
        assert "patch" not in hook["allowed"]
        await until(lambda: notified(receiver, hook))
        assert notified(receiver, hook) == [hook["allowed"]]
        status, refused = await patch(eve, hook)
        assert (status, refused["error"]["type"]) == (400, "AnswerInvalid")
        assert "an operator rule has approved at pre-stack-create" in refused["error"]["message"]
        assert (await eve.signal(hook))[0] == 200
        assert await eve.until_ended("s") == "CREATE_COMPLETE"
        await eve.update("s", "PUT", **body(nested, "changed"))
        hook = await at_project_rule(eve, "pre-update")
        assert (await patch(eve, hook))[0] == 400
        assert (await eve.signal(hook))[0] == 200
        assert await eve.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_hook_at_the_resource_approves_its_properties(
    database_url: str, policy: Policy
) -> None:
    """The operator's rule is at pre-update, the author's at the later pre-replace."""
    rule = {"on": ["pre-update"], "at": "*", "answer_by": ["subscription:policy"]}
    async with run_recipe(
        database_url, policy.receiver.url, on=["pre-stack-check"], added=[rule]
    ) as run:
        eve = await token_client(run, "eve", ["author", "approver"])
        hook = await create(eve, body(False))
        assert "patch" in hook["allowed"]
        assert (await patch(eve, hook))[0] == 200
        assert await eve.until_ended("s") == "CREATE_COMPLETE"
        replaced = value("new")
        replaced["properties"]["update_replace"] = True
        rules = {"add": [{"at": "v", "on": "pre-replace", "patch": True}]}
        await eve.update("s", "PUT", template=template({"v": replaced}), hooks=rules)
        hook = await at_project_rule(eve, "pre-replace")
        assert "patch" not in hook["allowed"]
        status, refused = await patch(eve, hook)
        assert status == 400
        assert "has approved at pre-update" in refused["error"]["message"]


@pytest.mark.parametrize("changes", [{"patch": True}, {"dry": True}], ids=["patch", "dry"])
async def test_an_operator_rule_can_allow_patches(
    database_url: str, policy: Policy, changes: dict[str, Any]
) -> None:
    async with run_recipe(database_url, policy.receiver.url, **changes) as run:
        eve = await token_client(run, "eve", ["author", "approver"])
        hook = await create(eve, body(False))
        assert "patch" in hook["allowed"]
        assert (await patch(eve, hook))[0] == 200
        assert await eve.until_ended("s") == "CREATE_COMPLETE"
        assert await values(run, eve) == {"patched"}


async def values(run: Program, client: PrincipalClient) -> set[str]:
    stack = await client.stack("s")
    path = f"/stacks/s/{stack['id']}/resources/v"
    _, response = await client.call("GET", path)
    return {response["resource"]["attributes"]["output"]}
