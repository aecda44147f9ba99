"""Who sends the costliest templates holds up themselves, and no other project."""

import asyncio
import time

import pytest

from engine.words import Json
from tests.integration.api.test_access import bearer, guarded
from tests.support.access import given_directly
from tests.support.costly_templates import COSTLY_TEMPLATES
from tests.support.program import eventually, resource, template

#: Threads of one reader.
TOGETHER = 20
COSTLY_TEMPLATE = COSTLY_TEMPLATES["a repeat of a repeat"].text.replace(
    "Test::Thing", "OS::Heat::TestResource"
)
WAYS = {
    "validate": ("POST", "/v1/alpha/validate"),
    "preview": ("POST", "/v1/alpha/stacks/preview"),
    "update-preview": ("PUT", "/v1/alpha/stacks/old/{id}/preview"),
}


@pytest.mark.parametrize("way", sorted(WAYS))
async def test_a_reader_with_many_costly_requests_delays_no_other_project(
    database_url: str, way: str
) -> None:
    async with guarded(database_url) as (run, admin):
        run.project = "alpha"
        small = {"stack_name": "old", "template": template({"a": resource()})}
        _, made = await run.call("POST", "/stacks", small, headers=admin)
        role = "author" if way == "update-preview" else "reader"
        reader = bearer(await given_directly(run.database, "alpha", "ann", [role]))
        method, path = WAYS[way][0], WAYS[way][1].format(id=made["stack"]["id"])
        body: Json = {"template": COSTLY_TEMPLATE}
        if way == "preview":
            body["stack_name"] = "new"

        async def costly() -> float:
            began = time.monotonic()
            status, said = await run.call(method, "/" + path, body, headers=reader)
            assert status == 400, said
            return time.monotonic() - began

        one = await costly()
        many = [asyncio.create_task(costly()) for _ in range(TOGETHER)]
        try:
            done, _ = await asyncio.wait(many, return_when=asyncio.FIRST_COMPLETED)
            assert all(task.exception() is None for task in done)
            other = bearer(await given_directly(run.database, "beta", "bob", ["author"]))
            small["stack_name"] = "s"
            began = time.monotonic()
            status, said = await run.call("POST", "//v1/beta/stacks", small, headers=other)
            assert status == 201, said
            assert time.monotonic() - began < 2 * one
        finally:
            for task in many:
                task.cancel()
            await asyncio.gather(*many, return_exceptions=True)


async def test_one_user_may_have_only_so_many_waiting(database_url: str) -> None:
    async with guarded(database_url, {"server.waiting_per_user": 1}) as (run, _):
        reader = bearer(await given_directly(run.database, "p", "ann", ["reader"]))
        refused: list[Json] = []

        async def costly() -> None:
            url = f"{run.url}/v1/p/validate"
            async with run.session.post(
                url, json={"template": COSTLY_TEMPLATE}, headers=reader
            ) as answer:
                if answer.status == 429:
                    assert int(answer.headers["Retry-After"]) > 0
                    refused.append(await answer.json())

        many = [asyncio.create_task(costly()) for _ in range(6)]

        async def found() -> bool:
            return len(refused) == 3  # two at work, one waiting

        await eventually(found)
        assert "[server] waiting_per_user" in refused[0]["error"]["message"]
        status, _ = await run.call("GET", "/stacks", headers=reader)
        assert status == 200
        for task in many:
            task.cancel()
        await asyncio.gather(*many, return_exceptions=True)
