"""Costly templates do not delay other requests."""

import asyncio

import pytest

from tests.support.program import program, resource

#: Each output uses the cost budget of an expression; together they exceed that of a stack.
EXPRESSION = "range(100).select(range(60).where($ > 3).len()).len()"
COSTLY = {
    "heat_template_version": "2021-04-16",
    "outputs": {f"o{n}": {"value": {"yaql": {"expression": EXPRESSION}}} for n in range(12)},
}
#: Requests that take a fraction of that time in sequence.
OTHERS = 20


REQUESTS: dict[str, tuple[str, str]] = {
    "create": ("POST", "/stacks"),
    "preview": ("POST", "/stacks/preview"),
    "validate": ("POST", "/validate"),
    "update": ("PUT", "/stacks/old/{id}"),
    "update-preview": ("PUT", "/stacks/old/{id}/preview"),
}


@pytest.mark.parametrize("way", sorted(REQUESTS))
async def test_costly_templates_do_not_delay_other_requests(database_url: str, way: str) -> None:
    async with program(database_url) as run:
        method, path = REQUESTS[way]
        created = await run.create("old", {"a": resource()})
        await run.until_ended("old")
        body = {"stack_name": "costly", "template": COSTLY}
        if way.startswith("update"):
            del body["stack_name"]
        async with asyncio.TaskGroup() as tasks:
            costly = tasks.create_task(run.call(method, path.format(id=created), body))
            for _ in range(OTHERS):
                status, _body = await run.call("GET", "//healthz")
                assert status == 200
            assert not costly.done(), costly.result()
            await run.create("other", {"a": resource()})
    status, response = costly.result()
    assert status == 400 and "more steps than are allowed" in response["error"]["message"]
