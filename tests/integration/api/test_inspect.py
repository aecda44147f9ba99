"""GET .../inspect of a resource in each state."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.types.contract import Failed
from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.changes import LONG_WAIT, put, thing, until_deleted, until_started
from tests.support.program import Json, Program
from tests.support.scripted_type import World

SECRET = "hush-7431"
RULE: Json = {"on": ["post-update"], "at": "a"}


@pytest.fixture(scope="module")
def things_settings() -> Mapping[str, Any]:
    return {"engine.poll": "1s", "hooks.rules": [RULE]}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def inspect(run: Program, name: str, stack: str = "s") -> Json:
    return await run.stack_request("GET", stack, f"/resources/{name}/inspect")


async def answer_hook(run: Program, stack: str = "s") -> None:
    (hook,) = await run.waiting_hooks(stack)
    assert (await run.signal(hook))[0] == 200


async def test_inspect_from_before_the_creation_until_the_deletion(
    run: Program, world: World
) -> None:
    breakpoints = {"hooks": [{"at": "*", "on": ["pre-create", "pre-delete"]}]}
    resources = {
        "a": thing({"m": 1}, metadata={"k": "v"}),
        "b": thing({"get_attr": ["a", "size"]}, depends_on="a"),
    }
    await run.create("s", resources, environment=breakpoints)
    (hook,) = await run.waiting_hooks("s")
    a, b = await inspect(run, "a"), await inspect(run, "b")
    assert (a["path"], a["type"], a["physical_id"]) == ("a", "Test::Thing", None)
    assert a["status"]["action"] == "INIT" and a["properties"] == {}
    (node,) = a["nodes"]
    assert (node["operation"], node["state"], node["phase"]) == ("create", "parked", "pre")
    assert node["properties"] == {"size": {"m": 1}, "place": "here"}
    assert node["changes"] == hook["resource"]["changes"]
    assert [one["id"] for one in a["hooks"]] == [hook["id"]]
    assert [(one["point"], one["source"]) for one in a["breakpoints"]] == [
        ("post-update", "operator"), ("pre-create", "definition"), ("pre-delete", "definition"),
    ]  # fmt: skip
    (waits,) = b["nodes"]
    assert (waits["state"], waits["waiting_for"], waits["properties"]) == ("waiting", ["a"], None)
    assert (b["requires"], a["required_by"]) == (["a"], ["b"])
    await answer_hook(run)
    await answer_hook(run)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    a = await inspect(run, "a")
    assert a["properties"] == {"size": {"m": 1}, "place": "here"} and a["metadata"] == {"k": "v"}
    assert a["attributes"]["size"] == {"m": 1} and a["physical_id"] in world.things
    assert a["nodes"][0]["state"] == "done" and a["nodes"][0]["changes"] is None
    await put(run, "s", {"a": thing({"m": 1}, metadata={"k": "v"})}, environment=breakpoints)
    (hook,) = await run.waiting_hooks("s")
    b = await inspect(run, "b")
    (node,) = b["nodes"]
    assert (node["operation"], node["direction"], node["state"]) == ("delete", "cleanup", "parked")
    assert node["properties"]["size"] == {"m": 1} and b["status"]["status"] == "COMPLETE"
    assert [one["point"] for one in b["hooks"]] == ["pre-delete", "pre-create"]
    await answer_hook(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    b = await inspect(run, "b")
    assert (b["status"], b["properties"], b["nodes"][0]["state"]) == (None, {}, "done")


async def test_inspect_shows_the_planned_changes(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "c": thing()})
    await run.until_ended("s")
    await run.stack_request("POST", "s", "/breakpoints", {"breakpoints": ["c:pre-replace"]})
    await put(run, "s", {"a": thing(2), "c": thing(place="there")}, hooks={"add": ["a:pre-update"]})
    await run.waiting_hooks("s", 2)
    a, c = await inspect(run, "a"), await inspect(run, "c")
    assert a["nodes"][0]["changes"] == {"size": {"from": 1, "to": 2}}
    assert (a["properties"]["size"], a["nodes"][0]["properties"]["size"]) == (1, 2)
    points = {one["point"]: one for one in a["breakpoints"] + c["breakpoints"]}
    assert points["pre-update"]["source"] == "request" and points["pre-update"]["id"] is None
    assert points["pre-replace"]["source"] == "live" and points["pre-replace"]["created_by"]
    (forward,) = c["nodes"]
    assert (forward["operation"], forward["changes"]) == (
        "replace", {"place": {"from": "here", "to": "there"}},
    )  # fmt: skip


async def test_inspect_shows_the_delete_of_a_replaced_resource(run: Program, world: World) -> None:
    await run.create("s", {"c": thing()})
    await run.until_ended("s")
    await put(run, "s", {"c": thing(place="there")}, hooks={"add": ["c:post-replace"]})
    await run.waiting_hooks("s")
    _, cleanup = (await inspect(run, "c"))["nodes"]
    assert (cleanup["operation"], cleanup["direction"], cleanup["state"]) == (
        "delete", "cleanup", "waiting",
    )  # fmt: skip
    assert cleanup["waiting_for"]


async def test_inspect_masks_secrets(run: Program) -> None:
    """In the current resource, in the planned properties and in metadata."""
    key = {"key": {"type": "string", "hidden": True}}
    secret = {"a": thing({"get_param": "key"}), "b": thing({"deep": [{"get_param": "key"}]}),
              "c": thing(metadata={"k": {"get_param": "key"}}),
              "r": {"type": "OS::Heat::RandomString"}, "d": thing({"get_attr": ["r", "value"]}),
              "web": nested({"get_param": "key"})}  # fmt: skip
    body: Json = {"template": {"heat_template_version": "2018-08-31", "parameters": key, "resources": secret},
                  "parameters": {"key": SECRET}, "files": FILES}  # fmt: skip
    breakpoints = {"hooks": [{"at": "a", "on": ["pre-create", "pre-update"]}]}
    await run.create("s", {}, **body, environment=breakpoints)
    await run.waiting_hooks("s")
    documents = {name: await inspect(run, name) for name in secret}
    await answer_hook(run)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    random = str((await run.stack_request("GET", "s", "/resources/r"))["resource"]["attributes"])
    documents |= {f"{name} done": await inspect(run, name) for name in secret}
    body["parameters"] = {"key": SECRET + "-new"}
    await run.update("s", "PUT", **body, environment=breakpoints)
    await run.waiting_hooks("s")
    documents |= {f"{name} again": await inspect(run, name) for name in secret}
    assert documents["a again"]["nodes"][0]["changes"] == {
        "size": {"from": "******", "to": "******"}
    }
    assert documents["a done"]["properties"]["size"] == "******"
    for name, document in documents.items():
        assert SECRET not in str(document), name
    assert "******" in random and documents["r done"]["attributes"]["value"] == "******"
    assert documents["c done"]["metadata"] == {"k": "******"}
    inside = (await run.resources("s"))["web"]["physical_resource_id"]
    one = await inspect(run, "one", inside)
    assert one["path"] == "web/one" and SECRET not in str(one)
    web = documents["web done"]
    assert web["nested_stack"]["id"] == inside and web["nested_stack"]["name"].startswith("s-web")


async def test_inspect_of_a_failed_and_of_a_waiting_resource(run: Program, world: World) -> None:
    world.script("create", "a", Failed("no room"))
    world.script("create", "b", LONG_WAIT)
    await run.create("s", {"a": thing(), "b": thing(), "c": thing({"get_attr": ["a", "size"]})})
    await until_started(world, "create", "b")
    b = await inspect(run, "b")
    assert b["nodes"][0]["phase"] == "execute"
    await run.act("s", "stop")
    await run.stack_request("POST", "s", "/resources/b/signal", {})
    await run.until_ended("s")
    a = await inspect(run, "a")
    assert (a["status"]["status"], a["nodes"][0]["reason"]) == ("FAILED", "no room")
    assert "no room" in a["status"]["reason"]


async def test_an_unknown_resource(run: Program) -> None:
    stack = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    for name in ("b", "%22", "a%2fb"):
        status, response = await run.call("GET", f"/stacks/s/{stack}/resources/{name}/inspect")
        assert status == 404, response
    status, response = await run.call("GET", f"/stacks/s/{stack}/resources/b/inspect")
    assert response["error"]["type"] == "ResourceNotFound" and response["error"]["remedy"]
    other = Program(run.session, run.url, "q")
    assert (await other.call("GET", f"/stacks/s/{stack}/resources/a/inspect"))[0] == 404
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    assert (await run.call("GET", f"/stacks/s/{stack}/resources/a/inspect"))[0] == 404
