"""OS::Heat::Stack finds the server of a region in the service catalog of the requester."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from tests.integration.keystone.test_keystone import home, name_in, run_with_keystone, token
from tests.support.changes import error_text
from tests.support.keystone import Keystone, Project
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, resource, template

__all__ = ["home"]


def remote(region: str) -> Json:
    text = orjson.dumps(template({"there": resource("hello")})).decode()
    return {
        "type": "OS::Heat::Stack",
        "properties": {"context": {"region_name": region}, "template": text},
    }


@pytest.fixture
async def other_region(
    postgres: TestServer, keystone: Keystone, home: Project
) -> AsyncIterator[Program]:
    """A server that is registered as the orchestration service of RegionOne."""
    async with postgres.new_database() as url, run_with_keystone(url, keystone, home) as run:
        await keystone.register(run.url)
        yield run


@pytest.mark.parametrize("trusts", [False, True], ids=["token", "trust"])
async def test_a_stack_is_created_in_a_region_of_the_catalog(
    database_url: str, keystone: Keystone, home: Project, other_region: Program, trusts: bool
) -> None:
    more = {"keystone.trusts": trusts}
    async with run_with_keystone(database_url, keystone, home, more=more) as run:
        headers: dict[str, Any] = await token(keystone, home, "member")
        sent = {"stack_name": "s", "template": template({"r": remote("RegionOne")})}
        status, response = await run.call("POST", "/stacks", sent, headers=headers)
        assert status == 201, response

        async def complete() -> bool:
            _, shown = await run.call("GET", "/stacks/s", headers=headers)
            stack = shown["stack"]
            assert not stack["stack_status"].endswith("FAILED"), stack["stack_status_reason"]
            return bool(stack["stack_status"] == "CREATE_COMPLETE")

        await eventually(complete)
        _, listed = await other_region.call("GET", "/stacks", headers=headers)
        [stack] = listed["stacks"]
        assert stack["stack_name"].startswith("s-r-")
        assert stack["stack_owner"] == name_in(home, "member")


async def test_a_region_without_the_service_is_refused(
    database_url: str, keystone: Keystone, home: Project, other_region: Program
) -> None:
    async with run_with_keystone(database_url, keystone, home) as run:
        headers = await token(keystone, home, "member")
        sent = {"stack_name": "s", "template": template({"r": remote("RegionTwo")})}
        status, response = await run.call("POST", "/stacks", sent, headers=headers)
        assert status == 400
        text = error_text(response["error"])
        assert "RegionTwo" in text and "your service catalog" in text
