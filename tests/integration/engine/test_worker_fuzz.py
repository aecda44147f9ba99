"""Odd but accepted templates through every built-in type: whatever they do, they end alone."""

import asyncio

import pytest
from structlog.testing import capture_logs

from tests.support.odd_templates import odd_templates
from tests.support.program import Http, Json, Program, eventually, program, resource

COUNT = 60
QUICK = {"engine.poll": "1s", "engine.first_retry": "1s", "engine.action_retry_limit": 1}


async def accepted(run: Program, name: str, template: Json) -> bool:
    body = {"stack_name": name, "template": template, "timeout_mins": 1}
    status, said = await run.call("POST", "/stacks", body)
    assert status in (201, 400), said
    return bool(status == 201)


async def live(run: Program, name: str, template: Json, update: Json) -> bool:
    """Create, update, check and delete; what fails, fails. Whether it was accepted."""
    if not await accepted(run, name, template):
        return False
    await run.until_ended(name)
    stack = await run.stack(name)
    path = f"/stacks/{name}/{stack['id']}"
    status, _ = await run.call("PUT", path, {"template": update})
    assert status in (202, 400)
    await run.until_ended(name)
    for _, rest in (("inspect", "/resources"), ("graph", "/graph"), ("events", "/events")):
        status, _ = await run.call("GET", f"{path}{rest}")
        assert status == 200
    status, _ = await run.call("POST", f"{path}/actions", {"check": None})
    assert status < 500
    await run.until_ended(name)
    await run.call("DELETE", path)

    async def gone() -> bool:
        status, said = await run.call("GET", f"/stacks/{name}")
        return bool(status == 404 or said["stack"]["stack_status"] == "DELETE_FAILED")

    await eventually(gone)
    return True


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [1, 2])
async def test_odd_templates_raise_nothing_in_the_worker(database_url: str, seed: int) -> None:
    templates = odd_templates(COUNT, seed)
    with capture_logs() as logs:
        async with program(database_url, QUICK) as run:
            turns = asyncio.Semaphore(8)

            async def one(number: int) -> bool:
                async with turns:
                    update = templates[(number + 1) % len(templates)]
                    return await live(run, f"s{number}", templates[number], update)

            taken = await asyncio.gather(*(one(number) for number in range(len(templates))))
            tenant = Http(run.session, run.url, "another")
            await tenant.create("bystander", {"a": resource()})
            assert await tenant.until_ended("bystander") == "CREATE_COMPLETE"
    assert sum(taken) > COUNT // 4, f"too few were accepted to show anything: {sum(taken)}"
    assert [one for one in logs if one["event"] in ("internal.error", "operation.bug")] == []
