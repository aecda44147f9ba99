"""Rules that exclude the requester, where a change applies a template of another principal."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from tests.support.principals import PrincipalClient, hook_notifications, token_client
from tests.support.program import Json, Program, eventually, template
from tests.support.receiver import Receiver, running_receiver, until

RULE: dict[str, Any] = {
    "on": ["pre-stack-update", "pre-stack-rollback", "pre-stack-restore"],
    "exclude": "requester",
    "nested": True,
}


def resources(value: str, other: str = "1", **more: Json) -> dict[str, Json]:
    """A group with a scaling policy, and a resource that does not read the group."""
    member = {"type": "OS::Heat::TestResource", "properties": {"value": value}}
    return {
        "group": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": 1, "max_size": 5, "desired_capacity": 1, "resource": member
            },
        },
        "policy": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "adjustment_type": "change_in_capacity", "scaling_adjustment": 1,
                "auto_scaling_group_id": {"get_resource": "group"},
            },
        },
        "other": {"type": "OS::Heat::TestResource", "properties": {"value": other}},
        **more,
    }  # fmt: skip


OUTPUTS = {"outputs": {"url": {"value": {"get_attr": ["policy", "alarm_url"]}}}}


@dataclass
class SharedStack:
    run: Program
    author: PrincipalClient
    colleague: PrincipalClient
    sink: Receiver

    async def hook(self, point: str, path: str = "") -> Json:
        async def waiting_hook() -> Json:
            _, response = await self.author.call("GET", f"/hooks?state=waiting&point={point}")
            return next((one for one in response["hooks"] if one["path"] == path), None)

        return await eventually(waiting_hook)

    async def may_answer(self, client: PrincipalClient, hook: Json) -> bool:
        status, response = await client.call("GET", "/hooks?state=waiting&mine=true")
        assert status == 200
        listed = hook["id"] in {one["id"] for one in response["hooks"]}
        status, _ = await client.signal(hook)
        assert status in (200, 403)
        assert listed is (status == 200)
        return status == 200

    async def create(self) -> None:
        """Create the stack as the colleague."""
        sent = {"stack_name": "s", "template": template(resources("1")) | OUTPUTS}
        assert (await self.colleague.call("POST", "/stacks", sent))[0] == 201
        assert await self.author.until_ended("s") == "CREATE_COMPLETE"

    async def create_without_members(self) -> None:
        """Create the stack as the colleague."""
        sent = {"stack_name": "s", "template": template({"first": {"type": "OS::Heat::None"}})}
        assert (await self.colleague.call("POST", "/stacks", sent))[0] == 201
        assert await self.author.until_ended("s") == "CREATE_COMPLETE"

    async def update_in_part(self, value: str, other: str, **more: Json) -> None:
        """Update the stack as the author; the colleague approves `new` only."""
        new = resources(value, other, new={"type": "OS::Heat::None"})
        sent = template(new, **more) | OUTPUTS
        await self.author.update("s", "PUT", template=sent, only=["new"])
        hook = await self.hook("pre-stack-update")
        assert not await self.may_answer(self.author, hook)
        assert await self.may_answer(self.colleague, hook)
        assert await self.author.until_ended("s") == "UPDATE_COMPLETE"

    async def approve_until_ended(self) -> str:
        """Answer each hook as the colleague: the group changes its members in batches."""

        async def ended() -> str:
            _, response = await self.colleague.call("GET", "/hooks?state=waiting")
            for one in response["hooks"]:
                await self.colleague.signal(one)
            status = str((await self.author.stack("s"))["stack_status"])
            return "" if status.endswith("IN_PROGRESS") else status

        return str(await eventually(ended))

    async def send_signal(self) -> None:
        stack = await self.author.stack("s")
        path = f"/stacks/s/{stack['id']}/outputs/url"
        _, document = await self.author.call("GET", path)
        url = document["output"]["output_value"]
        async with self.run.session.post(url, json={}) as response:
            assert response.status < 300


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return {"auth.mode": "tokens", "engine.poll": "1s", "hooks.rules": [RULE]}


@pytest_asyncio.fixture(loop_scope="session")
async def stack(in_own_project: Program) -> AsyncIterator[SharedStack]:
    run = in_own_project
    async with running_receiver() as sink:
        author = await token_client(run, "author", ["author", "approver"])
        colleague = await token_client(run, "colleague", ["author", "approver"])
        await colleague.subscribe(sink)
        yield SharedStack(run, author, colleague, sink)


async def test_a_signal_does_not_let_an_author_approve_their_template(stack: SharedStack) -> None:
    await stack.create()
    await stack.update_in_part("unseen", "1")
    await stack.send_signal()
    for path in ("", "group"):
        hook = await stack.hook("pre-stack-update", path)
        assert not await stack.may_answer(stack.author, hook)
        assert await stack.may_answer(stack.colleague, hook)
    assert await stack.approve_until_ended() == "UPDATE_COMPLETE"


async def test_versions_since_the_last_complete_one_count(stack: SharedStack) -> None:
    """The colleague's partial update is between the author's update and the signal."""
    await stack.create()
    await stack.update_in_part("unseen", "1")
    more: Json = {"more": {"type": "OS::Heat::None"}, "new": {"type": "OS::Heat::None"}}
    sent = template(resources("unseen", "1", **more)) | OUTPUTS
    await stack.colleague.update("s", "PUT", template=sent, only=["more"])
    assert await stack.may_answer(stack.author, await stack.hook("pre-stack-update"))
    assert await stack.author.until_ended("s") == "UPDATE_COMPLETE"
    await stack.send_signal()
    hook = await stack.hook("pre-stack-update")
    assert not await stack.may_answer(stack.author, hook)
    assert not await stack.may_answer(stack.colleague, hook)


@pytest.mark.parametrize("is_live", [True, False], ids=["added", "restored"])
async def test_breakpoints_changed_during_a_scaling_exclude_who_wrote_the_template(
    stack: SharedStack, is_live: bool
) -> None:
    """A live breakpoint is added; or one is removed, and the template's rule applies again."""
    rule: Json = {"at": "group", "on": ["pre-update"], "exclude": "requester"}
    await stack.create()
    await stack.update_in_part("unseen", "1", **({} if is_live else {"hooks": [rule]}))
    added = [rule if is_live else {"at": "group", "on": ["pre-update"], "mode": "notify"}]
    if is_live:
        await stack.send_signal()
        hook = await stack.hook("pre-stack-update")
        await stack.author.stack_request("POST", "s", "/breakpoints", {"breakpoints": added})
    else:
        await stack.author.stack_request("POST", "s", "/breakpoints", {"breakpoints": added})
        await stack.send_signal()
        hook = await stack.hook("pre-stack-update")
        response = await stack.author.stack_request("GET", "s", "/breakpoints")
        for one in response["breakpoints"]:
            await stack.author.stack_request("DELETE", "s", f"/breakpoints/{one['id']}")
    assert await stack.may_answer(stack.colleague, hook)
    hook = await stack.hook("pre-update", "group")
    assert not await stack.may_answer(stack.author, hook)
    assert await stack.may_answer(stack.colleague, hook)
    assert await stack.approve_until_ended() == "UPDATE_COMPLETE"


async def test_a_restore_of_a_partial_update_excludes_its_requester(stack: SharedStack) -> None:
    """The snapshot has the complete template, of which one resource was approved."""
    await stack.create_without_members()
    more = {"new": {"type": "OS::Heat::None"}, "unseen": {"type": "OS::Heat::None"}}
    await stack.author.update("s", "PUT", template=template(more), only=["new"])
    assert await stack.may_answer(stack.colleague, await stack.hook("pre-stack-update"))
    assert await stack.author.until_ended("s") == "UPDATE_COMPLETE"
    taken = await stack.author.stack_request("POST", "s", "/snapshots", {})
    assert await stack.author.until_ended("s") == "SNAPSHOT_COMPLETE"
    await stack.colleague.stack_request("POST", "s", f"/snapshots/{taken['id']}/restore")
    hook = await stack.hook("pre-stack-restore")
    assert not await stack.may_answer(stack.author, hook)
    assert not await stack.may_answer(stack.colleague, hook)


async def test_a_signal_changes_the_resources_that_the_notification_names(
    stack: SharedStack,
) -> None:
    await stack.create()
    await stack.update_in_part("2", "left-out")
    await stack.send_signal()
    await stack.hook("pre-stack-update")
    assert await stack.approve_until_ended() == "UPDATE_COMPLETE"
    found = [one["change"] for one in hook_notifications(stack.sink) if not one["hook"]["path"]]
    assert [one["only"] for one in found] == [["new"], ["group", "policy"]]
    assert {one["name"] for one in found[-1]["plan"]} <= {"group", "policy"}
    current = await stack.author.stack("s")
    _, other = await stack.author.call("GET", f"/stacks/s/{current['id']}/resources/other")
    assert other["resource"]["attributes"]["output"] == "1"


async def test_a_rollback_to_a_partial_update_excludes_its_requester(stack: SharedStack) -> None:
    await stack.create()
    await stack.update_in_part("unseen", "1")
    failing = resources(
        "3", "1", bad={"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    )
    await stack.colleague.update(
        "s", "PUT", template=template(failing) | OUTPUTS, disable_rollback=False, only=["bad"]
    )
    assert await stack.may_answer(stack.author, await stack.hook("pre-stack-update"))
    hook = await stack.hook("pre-stack-rollback")
    assert not await stack.may_answer(stack.author, hook)
    assert not await stack.may_answer(stack.colleague, hook)
    await until(lambda: hook_notifications(stack.sink))
