"""Random templates over all built-in types: an error in one stack does not affect others."""

import asyncio

import pytest
from structlog.testing import capture_logs

from tests.support.program import Http, Json, Program, eventually, program, resource
from tests.support.random_templates import random_templates

COUNT = 60
QUICK = {"engine.poll": "1s", "engine.first_retry": "1s", "engine.action_retry_limit": 1}


async def accepted(run: Program, name: str, template: Json) -> bool:
    body = {"stack_name": name, "template": template, "timeout_mins": 1}
    status, response = await run.call("POST", "/stacks", body)
    assert status in (201, 400), response
    return bool(status == 201)


async def run_stack(run: Program, name: str, template: Json, update: Json) -> bool:
    """Create, update, check and delete the stack; each may fail. Returns whether it was
    accepted.
    """
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

    async def is_deleted() -> bool:
        status, response = await run.call("GET", f"/stacks/{name}")
        return bool(status == 404 or response["stack"]["stack_status"] == "DELETE_FAILED")

    await eventually(is_deleted)
    return True


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [1, 2])
async def test_random_templates_raise_no_unexpected_error(database_url: str, seed: int) -> None:
    templates = random_templates(COUNT, seed)
    with capture_logs() as logs:
        async with program(database_url, QUICK) as run:
            turns = asyncio.Semaphore(8)

            async def one(number: int) -> bool:
                async with turns:
                    update = templates[(number + 1) % len(templates)]
                    return await run_stack(run, f"s{number}", templates[number], update)

            results = await asyncio.gather(*(one(number) for number in range(len(templates))))
            tenant = Http(run.session, run.url, "another")
            await tenant.create("bystander", {"a": resource()})
            assert await tenant.until_ended("bystander") == "CREATE_COMPLETE"
    assert sum(results) > COUNT // 4, f"too few were accepted to show anything: {sum(results)}"
    assert [one for one in logs if one["event"] in ("internal.error", "operation.failed")] == []
