"""Requests that only the root stack accepts, and nested stacks that become root stacks."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.nested.test_lives import FILES, nested
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, program, resource, template

RETAINED: Json = {"deletion_policy": "Retain"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(postgres: TestServer) -> AsyncIterator[Program]:
    """A stack `s` with the nested stack deep/inner."""
    async with postgres.new_database() as url, program(url) as made:
        await made.create("s", {"deep": nested("x", "outer.yaml")}, files=FILES)
        assert await made.until_ended("s") == "CREATE_COMPLETE"
        yield made


async def child_of(http: Program, name: str, *path: str) -> str:
    for one in path:
        name = (await http.resources(name))[one]["physical_resource_id"]
    return name


REFUSED: dict[str, tuple[str, str, Json, str]] = {
    "updated": ("PATCH", "", {}, "Update stack s."),
    "replaced": ("PUT", "", {"template": template({})}, "Update stack s."),
    "deleted": ("DELETE", "", None, "Remove deep/inner from its template, or delete stack s."),
    "cancelled": ("POST", "/actions", {"cancel_update": None}, "Cancel stack s."),
    "cancelled whole": ("POST", "/actions", {"cancel_without_rollback": None}, "Cancel stack s."),
    "stopped": ("POST", "/actions", {"stop": None}, "Stop stack s."),
    "checked": ("POST", "/actions", {"check": None}, "Check stack s."),
    "suspended": ("POST", "/actions", {"suspend": None}, "Suspend stack s."),
    "resumed": ("POST", "/actions", {"resume": None}, "Resume stack s."),
    "snapshotted": ("POST", "/snapshots", {}, "Take a snapshot of stack s."),
    "restored": (
        "POST", "/snapshots/7f599edc-9522-4a30-93e3-75f43c50906c/restore", {}, "Restore stack s.",
    ),
    "abandoned": ("DELETE", "/abandon", None, "Abandon stack s."),
}  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("done", REFUSED)
async def test_it_is_refused_for_one_inside(tree: Program, done: str) -> None:
    method, rest, body, remedy = REFUSED[done]
    inner = await child_of(tree, "s", "deep", "inner")
    before = await tree.stack(inner)
    status, said = await tree.call(method, f"/stacks/{before['stack_name']}/{inner}{rest}", body)
    assert (status, said["error"]["type"]) == (400, "NotSupported"), said
    message = said["error"]["message"]
    assert "is the resource deep/inner of stack s, and cannot be " in message
    assert message.endswith(remedy)
    assert await tree.stack(inner) == before


@pytest.mark.asyncio(loop_scope="module")
async def test_what_would_leave_others_out_is_refused(tree: Program) -> None:
    stack = await tree.stack("s")
    path = f"/stacks/s/{stack['id']}"
    for method, rest in (("POST", "/snapshots"), ("GET", "/export"), ("DELETE", "/abandon")):
        status, said = await tree.call(method, f"{path}{rest}", {} if method == "POST" else None)
        assert (status, said["error"]["type"]) == (400, "NotSupported"), said
        assert "would skip the nested stacks of s: deep." in said["error"]["message"]
    inner = await child_of(tree, "s", "deep", "inner")
    assert "one" in (await tree.at("GET", inner, "/export"))["resources"]


@pytest.mark.asyncio(loop_scope="module")
async def test_marks_are_made_inside(tree: Program) -> None:
    inner = await child_of(tree, "s", "deep", "inner")
    for protected in (True, False):
        await tree.at("PATCH", inner, "/resources/one", {"protect": protected})
        shown = await tree.at("GET", inner, "/resources/one")
        assert shown["resource"]["protected"] is protected


async def test_a_stack_inside_is_not_adopted(running: Program) -> None:
    taken = {"name": "web", "resource_id": "x", "type": "inner.yaml", "action": "CREATE",
             "status": "COMPLETE", "metadata": {}, "resource_data": {}}  # fmt: skip
    data = {"template": template({"web": nested()}), "files": FILES, "resources": {"web": taken}}
    status, said = await running.call(
        "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": data}
    )
    assert status == 400
    assert "resources.web: A nested stack cannot be adopted." in said["error"]["message"]
    _, found = await running.call("GET", "/stacks?show_nested=true")
    assert found["stacks"] == []


async def outermost(http: Program, stack_id: str) -> Json:
    stack = await http.stack(stack_id)
    assert (stack["parent"], stack["root"], stack["path"]) == (None, None, "")
    return stack


@pytest.mark.parametrize("leaves", ["delete", "update"])
async def test_one_left_behind_is_an_outermost_stack(running: Program, leaves: str) -> None:
    """With what is inside of it, which it goes on to hold; it lives and dies by itself."""
    await running.create("s", {"deep": nested("x", "outer.yaml", **RETAINED), "plain": resource()},
                         files=FILES)  # fmt: skip
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    stack_id = (await running.stack("s"))["id"]
    deep = await child_of(running, "s", "deep")
    inner = await child_of(running, deep, "inner")
    if leaves == "delete":
        await running.at("DELETE", "s")
    else:
        await running.update("s", "PUT", template=template({"plain": resource()}))
    assert await running.until_ended(stack_id) == f"{leaves.upper()}_COMPLETE"
    left = await outermost(running, deep)
    inside = await running.stack(inner)
    assert (inside["parent"], inside["root"], inside["path"]) == (deep, deep, "inner")
    _, said = await running.call("GET", "/stacks")
    assert deep in {one["id"] for one in said["stacks"]}
    assert [one["id"] for one in said["stacks"] if one["id"] == inner] == []

    await running.update(deep, "PATCH", parameters={"value": "alone"})
    assert await running.until_ended(deep) == "UPDATE_COMPLETE"
    told = (await running.stack(deep))["outputs"]
    assert [one["output_value"] for one in told] == ["alone"]
    await running.call("DELETE", f"/stacks/{left['stack_name']}/{deep}")
    assert await running.until_ended(deep) == "DELETE_COMPLETE"
    assert (await running.stack(inner))["stack_status"] == "DELETE_COMPLETE"


async def test_only_what_goes_is_left_behind(running: Program) -> None:
    """Its neighbours, and a stack in its place, stay where they are."""
    files = FILES | {"other.yaml": FILES["inner.yaml"]}
    await running.create("s", {"web": nested(**RETAINED), "db": nested()}, files=files)
    await running.until_ended("s")
    web, db = await child_of(running, "s", "web"), await child_of(running, "s", "db")
    await running.update("s", "PUT", template=template({"db": nested()}), files=files)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    await outermost(running, web)
    assert (await running.stack(db))["path"] == "db"
    again = template({"db": nested(), "web": nested()})
    await running.update("s", "PUT", template=again, files=files)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    fresh = await child_of(running, "s", "web")
    assert fresh != web
    assert (await running.stack(fresh))["path"] == "web"
    await outermost(running, web)


async def test_a_resource_that_is_renamed_takes_what_is_inside_along(running: Program) -> None:
    await running.create("s", {"deep": nested("x", "outer.yaml")}, files=FILES)
    await running.until_ended("s")
    deep = await child_of(running, "s", "deep")
    inner = await child_of(running, deep, "inner")
    moved = [{"from": "deep", "to": "broad"}]
    wanted = template({"broad": nested("y", "outer.yaml")})
    await running.update("s", "PUT", template=wanted, files=FILES, moved=moved)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await child_of(running, "s", "broad") == deep
    for stack_id, path in ((deep, "broad"), (inner, "broad/inner")):
        shown = await running.stack(stack_id)
        assert (shown["path"], shown["stack_status"]) == (path, "UPDATE_COMPLETE")


@pytest.mark.asyncio(loop_scope="module")
async def test_moves_between_stacks_leave_what_is_inside_alone(tree: Program) -> None:
    await tree.create("t", {"own": resource()})
    await tree.until_ended("t")
    deep, inner = await child_of(tree, "s", "deep"), await child_of(tree, "s", "deep", "inner")
    other = await tree.stack("t")
    for source, name, kind, said in (
        ("s", "deep", nested("x", "outer.yaml"), "cannot be moved to another parent"),
        (inner, "two", resource(), "cannot be changed by a move by itself. Update stack s."),
    ):
        wanted = template({"own": resource(), "new": kind})
        moved = [{"from": {"stack": source, "resource": name}, "to": "new"}]
        body = {"template": wanted, "files": FILES, "moved": moved}
        status, answer = await tree.call("PUT", f"/stacks/t/{other['id']}", body)
        assert status == 400, answer
        assert said in answer["error"]["message"]
    assert await child_of(tree, "s", "deep") == deep
