"""While a costly template is read, others are answered."""

import asyncio

import pytest

from tests.support.program import program, resource

#: Each output takes all the steps that one expression may, and they more than a stack may.
EXPRESSION = "range(100).select(range(60).where($ > 3).len()).len()"
COSTLY = {
    "heat_template_version": "2021-04-16",
    "outputs": {f"o{n}": {"value": {"yaql": {"expression": EXPRESSION}}} for n in range(12)},
}
#: So many requests, one after the other, take a fraction of the time.
OTHERS = 20


WAYS: dict[str, tuple[str, str]] = {
    "create": ("POST", "/stacks"),
    "preview": ("POST", "/stacks/preview"),
    "validate": ("POST", "/validate"),
    "update": ("PUT", "/stacks/old/{id}"),
    "update-preview": ("PUT", "/stacks/old/{id}/preview"),
}


@pytest.mark.parametrize("way", sorted(WAYS))
async def test_others_are_answered_meanwhile(database_url: str, way: str) -> None:
    async with program(database_url) as run:
        method, path = WAYS[way]
        made = await run.create("old", {"a": resource()})
        await run.until_ended("old")
        body = {"stack_name": "costly", "template": COSTLY}
        if way.startswith("update"):
            del body["stack_name"]
        async with asyncio.TaskGroup() as tasks:
            costly = tasks.create_task(run.call(method, path.format(id=made), body))
            for _ in range(OTHERS):
                status, _said = await run.call("GET", "//healthz")
                assert status == 200
            assert not costly.done(), costly.result()
            await run.create("other", {"a": resource()})
    status, said = costly.result()
    assert status == 400 and "steps that are allowed" in said["error"]["message"]
