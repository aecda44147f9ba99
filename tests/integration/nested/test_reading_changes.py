"""Nested stacks in the Orchestration API during changes."""

from tests.integration.nested.test_lives import FILES, nested
from tests.integration.nested.test_reading import events, links, listed
from tests.integration.nested.test_trouble import BELOW, held, waiting_inside
from tests.support.program import Program, program, resource, template


async def test_what_is_being_made_is_known_by_the_stack_inside(running: Program) -> None:
    hook = [{"at": "web/two", "on": "pre-create"}]
    sent = {"resource_registry": {}, "hooks": hook}
    await running.create("s", {"web": held()}, files=BELOW, environment=sent)
    await waiting_inside(running)
    web = (await running.resources("s"))["web"]
    assert web["resource_status"] == "CREATE_IN_PROGRESS"
    child = await running.stack(web["physical_resource_id"])
    assert child["path"] == "web"
    assert links(web)["nested"] == child["id"]


async def test_what_was_inside_tells_its_end(running: Program) -> None:
    await running.create("s", {"web": nested(), "plain": resource()}, files=FILES)
    await running.until_ended("s")
    child = (await running.resources("s"))["web"]["physical_resource_id"]
    await running.update("s", "PUT", template=template({"plain": resource()}))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    found = await events(running, "nested_depth=1")
    assert [one["resource_status"] for one in found if one["physical_resource_id"] == child
            and one["resource_name"] != "web"][-1] == "DELETE_COMPLETE"  # fmt: skip
    assert [one["stack_name"] for one in await listed(running, "show_nested=true")] == ["s"]
    gone = await listed(running, "show_nested=true&show_deleted=true")
    assert {one["stack_status"] for one in gone} == {"UPDATE_COMPLETE", "DELETE_COMPLETE"}


async def test_the_quota_of_stacks_counts_the_outermost(database_url: str) -> None:
    async with program(database_url, {"quotas.stacks_per_project": 1}) as http:
        await http.create("s", {"web": nested()}, files=FILES)
        assert await http.until_ended("s") == "CREATE_COMPLETE"
        _, said = await http.call("GET", "/quotas")
        quota = next(one for one in said["quotas"] if one["name"] == "stacks_per_project")
        assert quota == quota | {"limit": 1, "used": 1}
