"""Remote stacks between two real servers, each with its own database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from tests.support.changes import observed
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, program, resource, template


@pytest.fixture
async def remote_run(postgres: TestServer) -> AsyncIterator[Program]:
    """The remote server."""
    async with postgres.new_database() as url, program(url) as run:
        run.project = "theirs"
        yield run


@asynccontextmanager
async def run_with_endpoint(
    database_url: str, remote_run: Program, **endpoint: Any
) -> AsyncIterator[Program]:
    endpoint_settings = {
        "url": f"{remote_run.url}/v1/theirs",
        "projects": ["p"],
        "interval": "1s",
        **endpoint,
    }
    async with program(
        database_url, {"resource_types.remote_stack.west": endpoint_settings}
    ) as created:
        yield created


@pytest.fixture
async def local_run(database_url: str, remote_run: Program) -> AsyncIterator[Program]:
    async with run_with_endpoint(database_url, remote_run) as opened:
        yield opened


def remote(resources: Json, *, parameters: Json = None, **more: Json) -> Json:
    outputs = {"given": {"value": {"get_attr": [next(iter(resources)), "output"]}}}
    text = template(resources, outputs=outputs, **more)
    return {
        "type": "OS::Heat::Stack",
        "properties": {
            "context": {"region_name": "west"},
            "template": orjson.dumps(text).decode(),
            "parameters": parameters or {},
        },
    }


def outer_template(stack: Json) -> Json:
    """A template with the remote stack as a resource, and a reader of its outputs."""
    value = {"get_attr": ["far", "outputs", "given"]}
    return template(
        {"far": stack, "reader": resource(value)},
        outputs={"given": {"value": {"get_attr": ["reader", "output"]}},
                 "name": {"value": {"get_attr": ["far", "stack_name"]}}},
    )  # fmt: skip


async def until_deleted(http: Program, name: str) -> None:
    async def is_gone() -> bool:
        return (await http.call("GET", f"/stacks/{name}"))[0] == 404

    await eventually(is_gone)


async def outputs(http: Program, name: str) -> dict[str, Json]:
    return {one["output_key"]: one["output_value"] for one in (await http.stack(name))["outputs"]}


async def remote_stacks(remote_run: Program, name: str) -> list[Json]:
    """The remote stacks of a local stack."""
    _, outer = await remote_run.call("GET", "/stacks")
    return [one for one in outer["stacks"] if one["stack_name"].startswith(f"{name}-far-")]


async def create(local_run: Program, name: str, outer: Json) -> None:
    status, response_body = await local_run.call(
        "POST", "/stacks", {"stack_name": name, "template": outer}
    )
    assert status == 201, response_body


async def is_created_updated_and_deleted(local_run: Program, remote_run: Program) -> None:
    sized = template(
        {"a": resource({"get_param": "size"})},
        parameters={"size": {"type": "number", "default": 1}},
        outputs={"given": {"value": {"get_attr": ["a", "output"]}}},
    )
    first = remote({"a": resource()}, parameters={"size": 3})
    first["properties"]["template"] = orjson.dumps(sized).decode()
    await create(local_run, "life", outer_template(first))
    assert await local_run.until_ended("life") == "CREATE_COMPLETE", await local_run.events("life")
    (remote_stack,) = await remote_stacks(remote_run, "life")
    assert await outputs(local_run, "life") == {"given": "3", "name": remote_stack["stack_name"]}
    far = (await local_run.resources("life"))["far"]
    assert far["physical_resource_id"] == remote_stack["id"]

    changed = orjson.loads(orjson.dumps(first))
    changed["properties"]["parameters"]["size"] = 4
    await local_run.update("life", "PUT", template=outer_template(changed))
    assert await local_run.until_ended("life") == "UPDATE_COMPLETE", await local_run.events("life")
    assert (await outputs(local_run, "life"))["given"] == "4"
    assert [one["id"] for one in await remote_stacks(remote_run, "life")] == [remote_stack["id"]]

    for action in ("suspend", "resume", "check"):
        ended = f"{action.upper()}_COMPLETE"
        await local_run.act("life", action)
        assert await local_run.until_ended("life") == ended, await local_run.events("life")
        assert (await remote_run.stack(remote_stack["id"]))["stack_status"] == ended

    await remote_run.stack_request("DELETE", remote_stack["id"])
    await until_deleted(remote_run, remote_stack["stack_name"])
    await local_run.act("life", "check")
    assert await local_run.until_ended("life") == "CHECK_FAILED"
    await local_run.stack_request("DELETE", "life")
    await until_deleted(local_run, "life")
    assert await remote_stacks(remote_run, "life") == []


async def is_restored_from_a_snapshot(local_run: Program, remote_run: Program) -> None:
    await create(local_run, "kept", outer_template(remote({"a": resource("before")})))
    assert await local_run.until_ended("kept") == "CREATE_COMPLETE"
    snapshot = await local_run.stack_request("POST", "kept", "/snapshots", {"name": "k"})
    assert await local_run.until_ended("kept") == "SNAPSHOT_COMPLETE", await local_run.events(
        "kept"
    )
    await local_run.update("kept", "PUT", template=outer_template(remote({"a": resource("after")})))
    assert await local_run.until_ended("kept") == "UPDATE_COMPLETE"
    await local_run.stack_request("POST", "kept", f"/snapshots/{snapshot['id']}/restore")
    assert await local_run.until_ended("kept") == "RESTORE_COMPLETE", await local_run.events("kept")
    assert (await outputs(local_run, "kept"))["given"] == "before"
    (remote_stack,) = await remote_stacks(remote_run, "kept")
    assert remote_stack["stack_status"] == "RESTORE_COMPLETE"


async def waits_at_a_remote_hook(local_run: Program, remote_run: Program) -> None:
    remote_resources = {"web": resource("x", hooks=["pre-create"]), "b": resource("y")}
    await create(local_run, "held", outer_template(remote(remote_resources)))

    async def hook_reason() -> str | None:
        reason = str((await local_run.resources("held"))["far"]["resource_status_reason"])
        return reason if "hook" in reason else None

    reason = await eventually(hook_reason)
    (remote_stack,) = await remote_stacks(remote_run, "held")
    (hook,) = await remote_run.waiting_hooks(remote_stack["stack_name"])
    for part in (
        f"the stack {remote_stack['stack_name']} at west is CREATE_IN_PROGRESS",
        f"its hook {hook['id']} waits at pre-create of web until {hook['deadline']}",
        "no subscription was notified",
        f"{remote_run.url}/v1/theirs/hooks/{hook['id']}",
    ):
        assert part in reason

    async def is_in_why() -> bool:
        nodes = (await local_run.stack_request("GET", "held", "/why"))["nodes"]
        return any(reason in one["sentence"] for one in nodes)

    await eventually(is_in_why)
    assert (await local_run.resources("held"))["far"]["resource_status"] == "CREATE_IN_PROGRESS"
    assert (await remote_run.signal(hook))[0] == 200
    assert await local_run.until_ended("held") == "CREATE_COMPLETE", await local_run.events("held")
    assert (await local_run.resources("held"))["far"]["resource_status_reason"] == "state changed"


async def is_deleted_while_it_waits(local_run: Program, remote_run: Program) -> None:
    await create(
        local_run, "newer", outer_template(remote({"web": resource("x", hooks=["pre-create"])}))
    )

    async def hook_waits() -> bool:
        return any(
            one["stack_name"].startswith("newer-far-")
            for one in (await remote_run.call("GET", "/hooks?state=waiting"))[1]["hooks"]
        )

    await eventually(hook_waits)
    await local_run.stack_request("DELETE", "newer")
    await until_deleted(local_run, "newer")
    assert await remote_stacks(remote_run, "newer") == []


async def stops_and_is_resumed_by_an_update(local_run: Program, remote_run: Program) -> None:
    stopping = {"web": resource("x", hooks=[{"on": "pre-create", "mode": "stop"}])}
    await create(local_run, "stops", outer_template(remote(stopping)))
    assert await local_run.until_ended("stops") == "CREATE_STOPPED"
    far = (await local_run.resources("stops"))["far"]
    (remote_stack,) = await remote_stacks(remote_run, "stops")
    assert far["resource_status_reason"].startswith(
        f"the stack {remote_stack['stack_name']} at west is CREATE_STOPPED: Stopped: web"
    )
    await local_run.update("stops", "PUT", template=outer_template(remote({"web": resource("x")})))
    assert await local_run.until_ended("stops") == "UPDATE_COMPLETE", await local_run.events(
        "stops"
    )
    assert [one["id"] for one in await remote_stacks(remote_run, "stops")] == [remote_stack["id"]]


async def fails_and_is_repaired_by_an_update(local_run: Program, remote_run: Program) -> None:
    failing = resource("x")
    failing["properties"]["fail"] = True
    await create(local_run, "fails", outer_template(remote({"a": failing})))
    assert await local_run.until_ended("fails") == "CREATE_FAILED"
    (remote_stack,) = await remote_stacks(remote_run, "fails")
    reason = (await local_run.resources("fails"))["far"]["resource_status_reason"]
    assert f"the stack {remote_stack['stack_name']} at west is CREATE_FAILED: " in reason
    assert "Test Resource failed" in reason
    await local_run.update("fails", "PUT", template=outer_template(remote({"a": resource("x")})))
    assert await local_run.until_ended("fails") == "UPDATE_COMPLETE", await local_run.events(
        "fails"
    )
    assert [one["id"] for one in await remote_stacks(remote_run, "fails")] == [remote_stack["id"]]


async def is_refused_by_the_endpoint(local_run: Program, remote_run: Program) -> None:
    await create(local_run, "refused", outer_template(remote({"a": {"type": "No::Such"}})))
    assert await local_run.until_ended("refused") == "CREATE_FAILED"
    reason = (await local_run.resources("refused"))["far"]["resource_status_reason"]
    assert (
        "the endpoint answered 400 to the request to create the stack" in reason
        and "No::Such" in reason
    )
    assert await remote_stacks(remote_run, "refused") == []
    await local_run.stack_request("DELETE", "refused")
    await until_deleted(local_run, "refused")


async def is_refused_for_an_unknown_region(local_run: Program, remote_run: Program) -> None:
    stack = remote({"a": resource()})
    stack["properties"]["context"]["region_name"] = "east"
    sent = {"stack_name": "lost", "template": outer_template(stack)}
    status, response_body = await local_run.call("POST", "/stacks", sent)
    message = 'the operator provides no endpoint "east" for project p'
    assert status == 400 and message in response_body["error"]["message"]


async def test_remote_stacks(local_run: Program, remote_run: Program) -> None:
    """The scenarios run concurrently, because each of them mostly waits."""
    async with asyncio.TaskGroup() as group:
        for scenario in (
            is_created_updated_and_deleted,
            is_restored_from_a_snapshot,
            waits_at_a_remote_hook,
            is_deleted_while_it_waits,
            stops_and_is_resumed_by_an_update,
            fails_and_is_repaired_by_an_update,
            is_refused_by_the_endpoint,
            is_refused_for_an_unknown_region,
        ):
            group.create_task(scenario(local_run, remote_run), name=scenario.__name__)


READER = {"kind": "header", "header": "X-Anything", "secret": "s", "projects": ["p"]}


async def test_a_remote_stack_is_observed_and_repaired(
    database_url: str, remote_run: Program
) -> None:
    settings = {
        "resource_types.http.credentials.reader": {**READER, "origins": [remote_run.url]},
        "resource_types.remote_stack.west": {
            "url": f"{remote_run.url}/v1/theirs", "projects": ["p"], "interval": "1s",
            "credential": "reader",
        },
    }  # fmt: skip
    sized = template(
        {"a": resource({"get_param": "size"})},
        parameters={"size": {"type": "number", "default": 1}, "flag": {"type": "boolean"}},
    )
    far = {
        "type": "OS::Heat::Stack",
        "properties": {
            "context": {"region_name": "west"},
            "template": orjson.dumps(sized).decode(),
            "parameters": {"size": 3, "flag": True},
        },
    }
    async with program(database_url, settings) as run:
        await run.create("s", {"far": far})
        assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
        (remote_stack,) = await remote_stacks(remote_run, "s")
        drift = await observed(run)
        assert (drift["observable_resources"], drift["resources"]) == (1, [])

        # Another client updates it, then deletes it.
        await remote_run.update(remote_stack["stack_name"], existing=True, parameters={"size": 5})
        assert await remote_run.until_ended(remote_stack["stack_name"]) == "UPDATE_COMPLETE"
        (changed,) = (await observed(run))["resources"]
        assert changed["state"] == "changed"
        (difference,) = changed["differences"]
        assert (difference["path"], difference["desired"]) == ("parameters.size", 3)
        await converge(run)
        assert (await observed(run))["resources"] == []
        await remote_run.stack_request("DELETE", remote_stack["stack_name"])
        await until_deleted(remote_run, remote_stack["stack_name"])
        (missing,) = (await observed(run))["resources"]
        assert (missing["state"], missing["reason"]) == (
            "missing", "the remote stack does not exist",
        )  # fmt: skip
        await converge(run)
        (again,) = await remote_stacks(remote_run, "s")
        assert again["id"] != remote_stack["id"]
        assert (await observed(run))["resources"] == []


async def converge(run: Program) -> None:
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
