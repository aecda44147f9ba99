"""Nested stacks in the Orchestration API during changes."""

import pytest

from tests.integration.nested.test_failures import WAITING_FILES, nested_waiting_hook, waiting_stack
from tests.integration.nested.test_lifecycle import FILES, nested
from tests.integration.nested.test_reads import events, links, listed
from tests.support.program import Program, program, resource, template


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def test_a_resource_in_progress_shows_its_nested_stack(running: Program) -> None:
    hook = [{"at": "web/two", "on": "pre-create"}]
    sent = {"resource_registry": {}, "hooks": hook}
    await running.create("s", {"web": waiting_stack()}, files=WAITING_FILES, environment=sent)
    await nested_waiting_hook(running)
    web = (await running.resources("s"))["web"]
    assert web["resource_status"] == "CREATE_IN_PROGRESS"
    child = await running.stack(web["physical_resource_id"])
    assert child["path"] == "web"
    assert links(web)["nested"] == child["id"]


async def test_a_deleted_nested_stack_is_in_the_events_and_lists(running: Program) -> None:
    await running.create("s", {"web": nested(), "plain": resource()}, files=FILES)
    await running.until_ended("s")
    child = (await running.resources("s"))["web"]["physical_resource_id"]
    await running.update("s", "PUT", template=template({"plain": resource()}))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    found = await events(running, "nested_depth=1")
    assert [one["resource_status"] for one in found if one["physical_resource_id"] == child
            and one["resource_name"] != "web"][-1] == "DELETE_COMPLETE"  # fmt: skip
    assert [one["stack_name"] for one in await listed(running, "show_nested=true")] == ["s"]
    deleted = await listed(running, "show_nested=true&show_deleted=true")
    assert {one["stack_status"] for one in deleted} == {"UPDATE_COMPLETE", "DELETE_COMPLETE"}


async def test_the_quota_of_stacks_counts_root_stacks(database_url: str) -> None:
    async with program(database_url, {"quotas.stacks_per_project": 1}) as http:
        await http.create("s", {"web": nested()}, files=FILES)
        assert await http.until_ended("s") == "CREATE_COMPLETE"
        _, response = await http.call("GET", "/quotas")
        quota = next(one for one in response["quotas"] if one["name"] == "stacks_per_project")
        assert quota == quota | {"limit": 1, "used": 1}
