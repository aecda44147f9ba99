"""Settings of the guides, against templates that the policy program did not approve.

A restore or rollback can apply such a template: from a snapshot of a rejected change, or from a
partial update.
"""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.integration.operator_rules.conftest import Settings, author
from tests.support.principals import PrincipalClient, hook_notifications
from tests.support.program import Json, resource, template
from tests.support.receiver import Received, Receiver, running_receiver

#: Name of the resource that the policy program does not allow to be created.
FORBIDDEN = "forbidden"


@pytest.fixture
async def policy() -> AsyncIterator[Receiver]:
    """Rejects a plan that adds the forbidden resource; approves other plans and resources."""
    async with running_receiver() as receiver:
        receiver.handle = decide
        yield receiver


async def decide(notification: Received) -> web.StreamResponse:
    change = notification.event["data"].get("change") or {"plan": []}
    added = [one["name"] for one in change["plan"] if one["change"] == "added"]
    decision = "reject" if FORBIDDEN in added else "continue"
    return web.json_response({"decision": decision, "reason": "by policy"})


async def test_a_snapshot_of_a_rejected_create_cannot_be_restored(
    database_url: str, policy: Receiver, settings: Settings
) -> None:
    async with author(database_url, settings(policy.url)) as eve:
        await eve.create("s", {"a": resource(), FORBIDDEN: resource()})
        assert await eve.until_ended("s") == "CREATE_FAILED"
        snapshot = await eve.stack_request("POST", "s", "/snapshots", {"name": "rejected"})
        assert await eve.until_ended("s") == "SNAPSHOT_COMPLETE"
        await eve.stack_request("POST", "s", f"/snapshots/{snapshot['id']}/restore")
        assert await eve.until_ended("s") == "RESTORE_FAILED"
        await rejected(eve, "pre-stack-restore")
        assert existing_resources(await eve.resources("s")) == set()


async def test_a_rollback_cannot_complete_a_partial_update(
    database_url: str, policy: Receiver, settings: Settings
) -> None:
    async with author(database_url, settings(policy.url)) as eve:
        await eve.create("s", {"a": resource("1")})
        assert await eve.until_ended("s") == "CREATE_COMPLETE"
        version2 = {"a": resource("2"), FORBIDDEN: resource()}
        await eve.update("s", "PUT", template=template(version2), only=["a"])
        assert await eve.until_ended("s") == "UPDATE_COMPLETE"
        version3 = {"a": resource("3"), FORBIDDEN: resource("3")}
        await eve.update("s", "PUT", template=template(version3), disable_rollback=False)
        assert await eve.until_ended("s") == "ROLLBACK_FAILED"
        await rejected(eve, "pre-stack-rollback")
        assert existing_resources(await eve.resources("s")) == {"a"}
        assert [
            (one["hook"]["point"], one["change"]["only"])
            for one in hook_notifications(policy)
            if "-stack-" in one["hook"]["point"]
        ] == [
            ("pre-stack-create", None),
            ("pre-stack-update", ["a"]),
            ("pre-stack-update", None),
            ("pre-stack-rollback", None),
        ]


async def rejected(client: PrincipalClient, point: str) -> None:
    reason = (await client.stack("s"))["stack_status_reason"]
    assert f"{point} rejected by subscription policy: by policy" in reason


def existing_resources(resources: dict[str, Json]) -> set[str]:
    """Names of the resources that exist."""
    return {name for name, one in resources.items() if one["physical_resource_id"]}
