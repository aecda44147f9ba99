"""A node that ends its process each time it is executed fails its own stack only."""

import asyncio

import aiohttp
import pytest

from engine.store.traversals.advance import MAX_EXPIRED_LEASES
from tests.fault.load import new_folder
from tests.support.program import Http, Json, ServerProcess, eventually, resource

SETTINGS = '[engine]\nlease = "1s"\npoll = "1s"\n'
#: The process ends with SIGKILL when it calls the operation of this resource.
FAULT = "worker.start@victim:1:kill"
#: Three of them in sequence take longer than the first death.
SLOW: Json = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 2}}


async def until_dead(server: ServerProcess) -> None:
    async def is_dead() -> bool:
        return not server.is_running

    await eventually(is_dead)


@pytest.mark.parametrize("roles", [(), ("engine",)], ids=["whole", "engine"])
async def test_a_node_that_kills_its_process_three_times_fails_and_other_projects_complete(
    database_url: str, roles: tuple[str, ...]
) -> None:
    """Also if the process that dies serves the API."""
    with new_folder() as folder:
        victim = ServerProcess(folder, settings=SETTINGS, database_url=database_url, roles=roles)
        front = ServerProcess(folder, settings=SETTINGS, database_url=database_url, roles=["api"])
        deaths = 0
        try:
            await asyncio.to_thread(front.start)
            connector = aiohttp.TCPConnector(force_close=True)
            async with aiohttp.ClientSession(connector=connector) as session:
                failing_project, other_project = (
                    Http(session, front.url, "bad"),
                    Http(session, front.url, "good"),
                )
                chain = {"a": SLOW}
                chain |= {name: {**SLOW, "depends_on": before}
                          for name, before in (("b", "a"), ("c", "b"))}  # fmt: skip
                await other_project.create("chain", chain)
                await failing_project.create("poison", {"victim": resource(), "beside": resource()})
                for _ in range(MAX_EXPIRED_LEASES):
                    await asyncio.to_thread(victim.start, fault=FAULT)
                    await until_dead(victim)
                    deaths += 1
                # It would die again if it called the operation.
                await asyncio.to_thread(victim.start, fault=FAULT)
                assert await failing_project.until_ended("poison") == "CREATE_FAILED"
                assert await other_project.until_ended("chain") == "CREATE_COMPLETE"
                response = await failing_project.stack_request("GET", "poison", "/resources/victim")
                reason = response["resource"]["resource_status_reason"]
                assert f"or its lease expired, {deaths} times in a row" in reason
                assert (
                    "its worker ended"
                    in (await failing_project.stack("poison"))["stack_status_reason"]
                )
                # The process works for this project as well.
                await failing_project.create("next", {"a": resource()})
                assert await failing_project.until_ended("next") == "CREATE_COMPLETE"
                assert victim.is_running
        finally:
            codes = [await asyncio.to_thread(one.stop) for one in (victim, front)]
        assert codes == [0, 0]
