"""Quotas: errors name the limit and the usage, and refused requests store nothing."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.changes import error_text
from tests.support.program import Json, Program, eventually, program, resource, template

QUOTAS = {
    "quotas.stacks_per_project": 3,
    "quotas.resources_per_project": 6,
    "quotas.waiting_hooks_per_project": 2,
    "quotas.subscriptions_per_project": 2,
    "quotas.checks_per_day": 2,
    "quotas.projects.big.stacks_per_project": 4,
    "quotas.projects.big.resources_per_project": 0,
}


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return QUOTAS


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


def sent(name: str, count: int = 1, **more: Json) -> Json:
    resources = {f"r{number}": resource() for number in range(count)}
    return {"stack_name": name, "template": template(resources), **more}


HOOKS = {"hooks": [{"at": "*", "on": ["pre-create"]}]}


async def refused(run: Program, method: str, path: str, body: Json = None) -> str:
    status, response = await run.call(method, path, body)
    assert status == 400, response
    assert response["error"]["type"] == "RequestLimitExceeded"
    return error_text(response["error"])


async def used(run: Program) -> dict[str, tuple[int | None, int]]:
    _, response = await run.call("GET", "/quotas")
    return {one["name"]: (one["limit"], one["used"]) for one in response["quotas"]}


async def test_the_quota_of_stacks_holds_for_concurrent_creates(run: Program) -> None:
    responses = await asyncio.gather(
        *(run.call("POST", "/stacks", sent(f"s{number}")) for number in range(12))
    )
    assert sorted(status for status, _ in responses) == [201] * 3 + [400] * 9
    wrong = next(document for status, document in responses if status == 400)
    assert wrong["error"]["message"] == (
        "Request limit exceeded: with this, the project would have 4 stacks; it may have 3"
    )
    assert wrong["error"]["place"] == "[quotas] stacks_per_project"
    assert wrong["error"]["remedy"] == "Delete one; the operator sets the limit."
    assert (await used(run))["stacks_per_project"] == (3, 3)
    own, run.project = run.project, "big"  # a project with its own quotas
    for number in range(4):
        assert (await run.call("POST", "/stacks", sent(f"s{number}", 3)))[0] == 201
    assert "it may have 4" in await refused(run, "POST", "/stacks", sent("s5"))
    run.project = own
    name = next(document["stack"]["id"] for status, document in responses if status == 201)
    await run.stack_request("DELETE", name)
    await run.until_ended(name)
    assert (await run.call("POST", "/stacks", sent("again")))[0] == 201


async def test_the_quota_of_resources_counts_all_stacks(run: Program) -> None:
    await run.create("a", sent("a", 4)["template"]["resources"])
    message = await refused(run, "POST", "/stacks", sent("b", 3))
    assert "would have 7 resources; it may have 6" in message
    assert (await run.call("GET", "/stacks/b"))[0] == 404
    await run.create("b", sent("b", 2)["template"]["resources"])
    await run.until_ended("b")
    stack = await run.stack("b")
    path = f"/stacks/b/{stack['id']}"
    assert "would have 7" in await refused(run, "PUT", path, sent("b", 3))
    assert len(await run.resources("b")) == 2
    # Changes without growth are accepted.
    await run.until_ended("a")
    await run.update("a", "PUT", template=template({"r0": resource("other")}))
    assert await run.until_ended("a") == "UPDATE_COMPLETE"


async def test_existing_stacks_can_be_changed_above_a_lower_quota(
    database_url: str,
) -> None:
    async with program(database_url) as run:
        await run.create("a", {f"r{number}": resource() for number in range(8)})
        await run.until_ended("a")
    async with program(database_url, QUOTAS) as run:
        fewer = {f"r{number}": resource("other") for number in range(7)}
        await run.update("a", "PUT", template=template(fewer))
        assert await run.until_ended("a") == "UPDATE_COMPLETE"
        stack = await run.stack("a")
        more = template({**fewer, "new": resource()})
        path = f"/stacks/a/{stack['id']}"
        assert "would have 8" in await refused(run, "PUT", path, {"template": more})
        await run.stack_request("DELETE", "a")


async def test_waiting_hooks(run: Program) -> None:
    await run.create("a", {"r0": resource(), "r1": resource()}, environment=HOOKS)
    await run.waiting_hooks("a", 2)
    message = await refused(run, "POST", "/stacks", sent("b", 1, environment=HOOKS))
    assert "would have 3 waiting hooks; it may have 2" in message
    assert "Answer some, or remove breakpoints" in message
    await run.create("c", {"r0": resource()})  # no hook
    assert await run.until_ended("c") == "CREATE_COMPLETE"
    for hook in await run.waiting_hooks("a", 2):
        await run.signal(hook)
    await run.until_ended("a")
    assert (await run.call("POST", "/stacks", sent("b", 1, environment=HOOKS)))[0] == 201


async def test_checks_of_a_day(run: Program) -> None:
    await run.create("a", {"r0": resource()})
    await run.until_ended("a")
    for _ in range(2):
        await run.act("a", "check")
        assert await run.until_ended("a") == "CHECK_COMPLETE"
    stack = await run.stack("a")
    message = await refused(run, "POST", f"/stacks/a/{stack['id']}/actions", {"check": None})
    assert "would have 3 checks of stacks within a day; it may have 2" in message
    assert (await run.stack("a"))["stack_status"] == "CHECK_COMPLETE"
    assert (await used(run))["checks_per_day"] == (2, 2)


async def test_subscriptions(run: Program) -> None:
    to = {"target": "http://127.0.0.1:9/"}
    for _ in range(2):
        assert (await run.call("POST", "/subscriptions", to))[0] == 201
    status, response = await run.call("POST", "/subscriptions", to)
    assert (status, response["error"]["type"]) == (400, "RequestLimitExceeded")
    assert response["error"]["place"] == "[quotas] subscriptions_per_project"
    _, listed = await run.call("GET", "/subscriptions")
    assert len(listed["subscriptions"]) == 2


async def test_a_subscription_with_too_large_a_backlog_is_disabled(database_url: str) -> None:
    few: dict[str, Any] = {"quotas.deliveries_per_subscription": 5}
    async with program(database_url, few) as run:
        gone = {"target": "http://127.0.0.1:9/"}  # a closed port
        _, created = await run.call("POST", "/subscriptions", gone)
        _, other = await run.call("POST", "/subscriptions", gone | {"events": ["nothing.*"]})
        await run.create("a", {f"r{number}": resource() for number in range(5)})
        await run.until_ended("a")

        async def disabled() -> Json:
            _, response = await run.call("GET", f"/subscriptions/{created['id']}")
            return response if response["state"] == "disabled" else None

        response = await eventually(disabled)
        assert response["reason"] == "more than 5 deliveries to it are pending"
        _, response = await run.call("GET", f"/subscriptions/{other['id']}")
        assert response["state"] == "enabled"
        _, kept = await run.call("GET", f"/subscriptions/{created['id']}/deliveries")
        assert len(kept["deliveries"]) > 5
