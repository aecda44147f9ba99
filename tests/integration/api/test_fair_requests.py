"""Costly requests of one user do not delay other projects."""

import asyncio

import pytest

from engine.words import Json
from tests.integration.api.test_access import bearer, run_with_tokens
from tests.support.access import insert_credential
from tests.support.costly_templates import COSTLY_TEMPLATES
from tests.support.program import eventually, resource, template

#: Costly requests that one reader sends at the same time.
CONCURRENT = 20
#: Of them, those that may end before a request of another project: it waits for at most two of
#: the reader's requests in each of the two queues, for connections and for threads.
MAX_BEFORE = 4
COSTLY_TEMPLATE = COSTLY_TEMPLATES["a repeat of a repeat"].text.replace(
    "Test::Thing", "OS::Heat::TestResource"
)
REQUESTS = {
    "validate": ("POST", "/v1/alpha/validate"),
    "preview": ("POST", "/v1/alpha/stacks/preview"),
    "update-preview": ("PUT", "/v1/alpha/stacks/old/{id}/preview"),
}


@pytest.mark.parametrize("way", sorted(REQUESTS))
async def test_a_reader_with_many_costly_requests_delays_no_other_project(
    database_url: str, way: str
) -> None:
    async with run_with_tokens(database_url) as (run, admin):
        run.project = "alpha"
        small = {"stack_name": "old", "template": template({"a": resource()})}
        _, created = await run.call("POST", "/stacks", small, headers=admin)
        role = "author" if way == "update-preview" else "reader"
        reader = bearer(await insert_credential(run.database, "alpha", "ann", [role]))
        method, path = REQUESTS[way][0], REQUESTS[way][1].format(id=created["stack"]["id"])
        body: Json = {"template": COSTLY_TEMPLATE}
        if way == "preview":
            body["stack_name"] = "new"

        async def costly() -> None:
            status, response = await run.call(method, "/" + path, body, headers=reader)
            assert status == 400, response

        many = [asyncio.create_task(costly()) for _ in range(CONCURRENT)]
        try:
            done, _ = await asyncio.wait(many, return_when=asyncio.FIRST_COMPLETED)
            assert all(task.exception() is None for task in done)
            other = bearer(await insert_credential(run.database, "beta", "bob", ["author"]))
            small["stack_name"] = "s"
            ended = sum(task.done() for task in many)
            status, response = await run.call("POST", "//v1/beta/stacks", small, headers=other)
            assert status == 201, response
            assert sum(task.done() for task in many) - ended <= MAX_BEFORE
        finally:
            for task in many:
                task.cancel()
            await asyncio.gather(*many, return_exceptions=True)


async def test_waiting_requests_of_a_user_are_limited(database_url: str) -> None:
    async with run_with_tokens(database_url, {"server.waiting_per_user": 1}) as (run, _):
        reader = bearer(await insert_credential(run.database, "p", "ann", ["reader"]))
        refused: list[Json] = []
        statuses: list[int] = []

        async def costly() -> None:
            url = f"{run.url}/v1/p/validate"
            async with run.session.post(
                url, json={"template": COSTLY_TEMPLATE}, headers=reader
            ) as answer:
                if answer.status == 429:
                    assert int(answer.headers["Retry-After"]) > 0
                    refused.append(await answer.json())
                statuses.append(answer.status)

        many = [asyncio.create_task(costly()) for _ in range(6)]

        async def has_one_ended() -> bool:
            return len(statuses) >= 4

        # Two run and one waits, until one of the two ends.
        await eventually(has_one_ended)
        assert statuses[:4] == [429, 429, 429, 400]
        assert "[server] waiting_per_user" in refused[0]["error"]["message"]
        status, _ = await run.call("GET", "/stacks", headers=reader)
        assert status == 200
        for task in many:
            task.cancel()
        await asyncio.gather(*many, return_exceptions=True)
