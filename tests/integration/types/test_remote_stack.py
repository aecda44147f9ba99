"""Remote stacks between two real servers, each with its own database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, program, resource, template


@pytest.fixture
async def west(postgres: TestServer) -> AsyncIterator[Program]:
    """The remote server."""
    async with postgres.new_database() as url, program(url) as made:
        made.project = "theirs"
        yield made


@asynccontextmanager
async def knowing(database_url: str, west: Program, **endpoint: Any) -> AsyncIterator[Program]:
    said = {"url": f"{west.url}/v1/theirs", "projects": ["p"], "interval": "1s", **endpoint}
    async with program(database_url, {"resource_types.remote_stack.west": said}) as made:
        yield made


@pytest.fixture
async def here(database_url: str, west: Program) -> AsyncIterator[Program]:
    async with knowing(database_url, west) as made:
        yield made


def remote(resources: Json, *, parameters: Json = None, **more: Json) -> Json:
    outputs = {"given": {"value": {"get_attr": [next(iter(resources)), "output"]}}}
    said = template(resources, outputs=outputs, **more)
    return {
        "type": "OS::Heat::Stack",
        "properties": {
            "context": {"region_name": "west"},
            "template": orjson.dumps(said).decode(),
            "parameters": parameters or {},
        },
    }


def around(stack: Json) -> Json:
    """A template with the stack as its resource, and a reader of its outputs."""
    value = {"get_attr": ["far", "outputs", "given"]}
    return template(
        {"far": stack, "reader": resource(value)},
        outputs={"given": {"value": {"get_attr": ["reader", "output"]}},
                 "name": {"value": {"get_attr": ["far", "stack_name"]}}},
    )  # fmt: skip


async def gone(http: Program, name: str) -> None:
    async def is_gone() -> bool:
        return (await http.call("GET", f"/stacks/{name}"))[0] == 404

    await eventually(is_gone)


async def outputs(http: Program, name: str) -> dict[str, Json]:
    return {one["output_key"]: one["output_value"] for one in (await http.stack(name))["outputs"]}


async def there_of(west: Program, name: str) -> list[Json]:
    """The remote stacks of a local stack."""
    _, said = await west.call("GET", "/stacks")
    return [one for one in said["stacks"] if one["stack_name"].startswith(f"{name}-far-")]


async def create(here: Program, name: str, said: Json) -> None:
    status, answer = await here.call("POST", "/stacks", {"stack_name": name, "template": said})
    assert status == 201, answer


async def lives(here: Program, west: Program) -> None:
    sized = template(
        {"a": resource({"get_param": "size"})},
        parameters={"size": {"type": "number", "default": 1}},
        outputs={"given": {"value": {"get_attr": ["a", "output"]}}},
    )
    first = remote({"a": resource()}, parameters={"size": 3})
    first["properties"]["template"] = orjson.dumps(sized).decode()
    await create(here, "life", around(first))
    assert await here.until_ended("life") == "CREATE_COMPLETE", await here.events("life")
    (there,) = await there_of(west, "life")
    assert await outputs(here, "life") == {"given": "3", "name": there["stack_name"]}
    far = (await here.resources("life"))["far"]
    assert far["physical_resource_id"] == there["id"]

    changed = orjson.loads(orjson.dumps(first))
    changed["properties"]["parameters"]["size"] = 4
    await here.update("life", "PUT", template=around(changed))
    assert await here.until_ended("life") == "UPDATE_COMPLETE", await here.events("life")
    assert (await outputs(here, "life"))["given"] == "4"
    assert [one["id"] for one in await there_of(west, "life")] == [there["id"]]

    for action in ("suspend", "resume", "check"):
        ended = f"{action.upper()}_COMPLETE"
        await here.act("life", action)
        assert await here.until_ended("life") == ended, await here.events("life")
        assert (await west.stack(there["id"]))["stack_status"] == ended

    await west.at("DELETE", there["id"])
    await gone(west, there["stack_name"])
    await here.act("life", "check")
    assert await here.until_ended("life") == "CHECK_FAILED"
    await here.at("DELETE", "life")
    await gone(here, "life")
    assert await there_of(west, "life") == []


async def goes_back_to_a_snapshot(here: Program, west: Program) -> None:
    await create(here, "kept", around(remote({"a": resource("before")})))
    assert await here.until_ended("kept") == "CREATE_COMPLETE"
    kept = await here.at("POST", "kept", "/snapshots", {"name": "k"})
    assert await here.until_ended("kept") == "SNAPSHOT_COMPLETE", await here.events("kept")
    await here.update("kept", "PUT", template=around(remote({"a": resource("after")})))
    assert await here.until_ended("kept") == "UPDATE_COMPLETE"
    await here.at("POST", "kept", f"/snapshots/{kept['id']}/restore")
    assert await here.until_ended("kept") == "RESTORE_COMPLETE", await here.events("kept")
    assert (await outputs(here, "kept"))["given"] == "before"
    (there,) = await there_of(west, "kept")
    assert there["stack_status"] == "RESTORE_COMPLETE"


async def is_held_by_hooks_there(here: Program, west: Program) -> None:
    held = {"web": resource("x", hooks=["pre-create"]), "b": resource("y")}
    await create(here, "held", around(remote(held)))

    async def told() -> str | None:
        reason = str((await here.resources("held"))["far"]["resource_status_reason"])
        return reason if "hook" in reason else None

    reason = await eventually(told)
    (there,) = await there_of(west, "held")
    (hook,) = await west.waiting(there["stack_name"])
    for part in (
        f"the stack {there['stack_name']} at west is CREATE_IN_PROGRESS",
        f"its hook {hook['id']} waits at pre-create of web until {hook['deadline']}",
        "no subscription was notified",
        f"{west.url}/v1/theirs/hooks/{hook['id']}",
    ):
        assert part in reason

    async def why() -> bool:
        nodes = (await here.at("GET", "held", "/why"))["nodes"]
        return any(reason in one["sentence"] for one in nodes)

    await eventually(why)
    assert (await here.resources("held"))["far"]["resource_status"] == "CREATE_IN_PROGRESS"
    assert (await west.signal(hook))[0] == 200
    assert await here.until_ended("held") == "CREATE_COMPLETE", await here.events("held")
    assert (await here.resources("held"))["far"]["resource_status_reason"] == "state changed"


async def is_not_held_when_something_newer_comes(here: Program, west: Program) -> None:
    await create(here, "newer", around(remote({"web": resource("x", hooks=["pre-create"])})))

    async def waits() -> bool:
        return any(
            one["stack_name"].startswith("newer-far-")
            for one in (await west.call("GET", "/hooks?state=waiting"))[1]["hooks"]
        )

    await eventually(waits)
    await here.at("DELETE", "newer")
    await gone(here, "newer")
    assert await there_of(west, "newer") == []


async def stops_with_it_and_goes_on_by_an_update(here: Program, west: Program) -> None:
    stopping = {"web": resource("x", hooks=[{"on": "pre-create", "mode": "stop"}])}
    await create(here, "stops", around(remote(stopping)))
    assert await here.until_ended("stops") == "CREATE_STOPPED"
    far = (await here.resources("stops"))["far"]
    (there,) = await there_of(west, "stops")
    assert far["resource_status_reason"].startswith(
        f"the stack {there['stack_name']} at west is CREATE_STOPPED: Stopped: web"
    )
    await here.update("stops", "PUT", template=around(remote({"web": resource("x")})))
    assert await here.until_ended("stops") == "UPDATE_COMPLETE", await here.events("stops")
    assert [one["id"] for one in await there_of(west, "stops")] == [there["id"]]


async def fails_with_it_and_is_mended(here: Program, west: Program) -> None:
    bad = resource("x")
    bad["properties"]["fail"] = True
    await create(here, "fails", around(remote({"a": bad})))
    assert await here.until_ended("fails") == "CREATE_FAILED"
    (there,) = await there_of(west, "fails")
    reason = (await here.resources("fails"))["far"]["resource_status_reason"]
    assert f"the stack {there['stack_name']} at west is CREATE_FAILED: " in reason
    assert "Test Resource failed" in reason
    await here.update("fails", "PUT", template=around(remote({"a": resource("x")})))
    assert await here.until_ended("fails") == "UPDATE_COMPLETE", await here.events("fails")
    assert [one["id"] for one in await there_of(west, "fails")] == [there["id"]]


async def is_refused(here: Program, west: Program) -> None:
    await create(here, "refused", around(remote({"a": {"type": "No::Such"}})))
    assert await here.until_ended("refused") == "CREATE_FAILED"
    reason = (await here.resources("refused"))["far"]["resource_status_reason"]
    assert (
        "the endpoint answered 400 to the request to create the stack" in reason
        and "No::Such" in reason
    )
    assert await there_of(west, "refused") == []
    await here.at("DELETE", "refused")
    await gone(here, "refused")


async def is_refused_where_nobody_knows(here: Program, west: Program) -> None:
    stack = remote({"a": resource()})
    stack["properties"]["context"]["region_name"] = "east"
    sent = {"stack_name": "lost", "template": around(stack)}
    status, answer = await here.call("POST", "/stacks", sent)
    said = 'the operator knows no endpoint "east" for p'
    assert status == 400 and said in answer["error"]["message"]


async def test_the_life_of_a_remote_stack(here: Program, west: Program) -> None:
    """All at the same time, as they wait for most of theirs."""
    async with asyncio.TaskGroup() as group:
        for scenario in (
            lives,
            goes_back_to_a_snapshot,
            is_held_by_hooks_there,
            is_not_held_when_something_newer_comes,
            stops_with_it_and_goes_on_by_an_update,
            fails_with_it_and_is_mended,
            is_refused,
            is_refused_where_nobody_knows,
        ):
            group.create_task(scenario(here, west), name=scenario.__name__)
