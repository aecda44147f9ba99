"""A node that ends its process each time it is executed costs its own stack, and no other."""

import asyncio

import aiohttp
import pytest

from engine.store.advance import MOST_LOST
from tests.fault.load import a_folder
from tests.support.program import Http, Json, ServerProcess, eventually, resource

SETTINGS = '[engine]\nlease = "1s"\npoll = "1s"\n'
#: The process ends with SIGKILL when it calls the operation of this resource.
FAULT = "worker.start@victim:1:kill"
#: Three of them, one after the other, take longer than the first death takes.
SLOW: Json = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 2}}


async def dies(server: ServerProcess) -> None:
    async def dead() -> bool:
        return not server.runs

    await eventually(dead)


@pytest.mark.parametrize("roles", [(), ("engine",)], ids=["whole", "engine"])
async def test_a_node_that_kills_its_process_three_times_is_failed_and_another_tenant_completes(
    database_url: str, roles: tuple[str, ...]
) -> None:
    """Also where the process that dies serves the API itself."""
    with a_folder() as folder:
        victim = ServerProcess(folder, settings=SETTINGS, database_url=database_url, roles=roles)
        front = ServerProcess(folder, settings=SETTINGS, database_url=database_url, roles=["api"])
        deaths = 0
        try:
            await asyncio.to_thread(front.start)
            connector = aiohttp.TCPConnector(force_close=True)
            async with aiohttp.ClientSession(connector=connector) as session:
                bad, good = Http(session, front.url, "bad"), Http(session, front.url, "good")
                chain = {"a": SLOW}
                chain |= {name: {**SLOW, "depends_on": before}
                          for name, before in (("b", "a"), ("c", "b"))}  # fmt: skip
                await good.create("chain", chain)
                await bad.create("poison", {"victim": resource(), "beside": resource()})
                for _ in range(MOST_LOST):
                    await asyncio.to_thread(victim.start, fault=FAULT)
                    await dies(victim)
                    deaths += 1
                # It would die again, if it called the operation again.
                await asyncio.to_thread(victim.start, fault=FAULT)
                assert await bad.until_ended("poison") == "CREATE_FAILED"
                assert await good.until_ended("chain") == "CREATE_COMPLETE"
                found = await bad.at("GET", "poison", "/resources/victim")
                reason = found["resource"]["resource_status_reason"]
                assert f"it ended its worker {deaths} times in a row" in reason
                assert "it ended its worker" in (await bad.stack("poison"))["stack_status_reason"]
                # The process is healthy, for this tenant as well.
                await bad.create("next", {"a": resource()})
                assert await bad.until_ended("next") == "CREATE_COMPLETE"
                assert victim.runs
        finally:
            codes = [await asyncio.to_thread(one.stop) for one in (victim, front)]
        assert codes == [0, 0]
