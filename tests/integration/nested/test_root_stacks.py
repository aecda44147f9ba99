"""Requests that only the root stack accepts, and nested stacks that become root stacks."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, program, resource, template

RETAINED: Json = {"deletion_policy": "Retain"}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(postgres: TestServer) -> AsyncIterator[Program]:
    """A stack `s` with the nested stack deep/inner."""
    async with postgres.new_database() as url, program(url) as run:
        await run.create("s", {"deep": nested("x", "outer.yaml")}, files=FILES)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        yield run


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
@pytest.mark.parametrize("request_name", REFUSED)
async def test_actions_on_a_nested_stack_are_refused_with_the_root_stacks_remedy(
    tree: Program, request_name: str
) -> None:
    method, rest, body, remedy = REFUSED[request_name]
    inner = await child_of(tree, "s", "deep", "inner")
    before = await tree.stack(inner)
    status, response = await tree.call(
        method, f"/stacks/{before['stack_name']}/{inner}{rest}", body
    )
    assert (status, response["error"]["type"]) == (400, "NotSupported"), response
    message = response["error"]["message"]
    assert "is the resource deep/inner of stack s, and cannot be " in message
    assert message.endswith(remedy)
    assert await tree.stack(inner) == before


@pytest.mark.asyncio(loop_scope="module")
async def test_nested_resources_can_be_protected(tree: Program) -> None:
    inner = await child_of(tree, "s", "deep", "inner")
    for protected in (True, False):
        await tree.stack_request("PATCH", inner, "/resources/one", {"protect": protected})
        response = await tree.stack_request("GET", inner, "/resources/one")
        assert response["resource"]["protected"] is protected


async def test_a_nested_stack_cannot_be_adopted_without_its_resources(running: Program) -> None:
    adopted = {"name": "web", "resource_id": "x", "type": "inner.yaml", "action": "CREATE",
             "status": "COMPLETE", "metadata": {}, "resource_data": {}}  # fmt: skip
    data = {"template": template({"web": nested()}), "files": FILES, "resources": {"web": adopted}}
    status, response = await running.call(
        "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": data}
    )
    assert status == 400
    assert (
        "resources.web: The export has no resources of the nested stack"
        in (response["error"]["message"])
    )
    _, document = await running.call("GET", "/stacks?show_nested=true")
    assert document["stacks"] == []


async def root_stack(http: Program, stack_id: str) -> Json:
    stack = await http.stack(stack_id)
    assert (stack["parent"], stack["root"], stack["path"]) == (None, None, "")
    return stack


@pytest.mark.parametrize("action", ["delete", "update"])
async def test_a_retained_nested_stack_becomes_a_root_stack(running: Program, action: str) -> None:
    """With its own nested stacks; it can then be updated and deleted by itself."""
    await running.create("s", {"deep": nested("x", "outer.yaml", **RETAINED), "plain": resource()},
                         files=FILES)  # fmt: skip
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    stack_id = (await running.stack("s"))["id"]
    deep = await child_of(running, "s", "deep")
    inner = await child_of(running, deep, "inner")
    if action == "delete":
        await running.stack_request("DELETE", "s")
    else:
        await running.update("s", "PUT", template=template({"plain": resource()}))
    assert await running.until_ended(stack_id) == f"{action.upper()}_COMPLETE"
    detached = await root_stack(running, deep)
    inner_stack = await running.stack(inner)
    assert (inner_stack["parent"], inner_stack["root"], inner_stack["path"]) == (
        deep,
        deep,
        "inner",
    )
    _, response = await running.call("GET", "/stacks")
    assert deep in {one["id"] for one in response["stacks"]}
    assert [one["id"] for one in response["stacks"] if one["id"] == inner] == []

    await running.update(deep, "PATCH", parameters={"value": "alone"})
    assert await running.until_ended(deep) == "UPDATE_COMPLETE"
    outputs = (await running.stack(deep))["outputs"]
    assert [one["output_value"] for one in outputs] == ["alone"]
    await running.call("DELETE", f"/stacks/{detached['stack_name']}/{deep}")
    assert await running.until_ended(deep) == "DELETE_COMPLETE"
    assert (await running.stack(inner))["stack_status"] == "DELETE_COMPLETE"


async def test_only_the_removed_nested_stack_is_detached(running: Program) -> None:
    """Other nested stacks, and a new one of the same name, keep their parent."""
    files = FILES | {"other.yaml": FILES["inner.yaml"]}
    await running.create("s", {"web": nested(**RETAINED), "db": nested()}, files=files)
    await running.until_ended("s")
    web, db = await child_of(running, "s", "web"), await child_of(running, "s", "db")
    await running.update("s", "PUT", template=template({"db": nested()}), files=files)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    await root_stack(running, web)
    assert (await running.stack(db))["path"] == "db"
    with_new_web = template({"db": nested(), "web": nested()})
    await running.update("s", "PUT", template=with_new_web, files=files)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    fresh = await child_of(running, "s", "web")
    assert fresh != web
    assert (await running.stack(fresh))["path"] == "web"
    await root_stack(running, web)


async def test_a_renamed_resource_keeps_its_nested_stacks(running: Program) -> None:
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
        response = await running.stack(stack_id)
        assert (response["path"], response["stack_status"]) == (path, "UPDATE_COMPLETE")


@pytest.mark.asyncio(loop_scope="module")
async def test_nested_stacks_cannot_be_moved_to_another_stack(tree: Program) -> None:
    await tree.create("t", {"own": resource()})
    await tree.until_ended("t")
    deep, inner = await child_of(tree, "s", "deep"), await child_of(tree, "s", "deep", "inner")
    other = await tree.stack("t")
    for source, name, kind, message in (
        ("s", "deep", nested("x", "outer.yaml"), "cannot be moved to another parent"),
        (inner, "two", resource(), "cannot be changed by a move by itself. Update stack s."),
    ):
        wanted = template({"own": resource(), "new": kind})
        moved = [{"from": {"stack": source, "resource": name}, "to": "new"}]
        body = {"template": wanted, "files": FILES, "moved": moved}
        status, answer = await tree.call("PUT", f"/stacks/t/{other['id']}", body)
        assert status == 400, answer
        assert message in answer["error"]["message"]
    assert await child_of(tree, "s", "deep") == deep


async def delete_nested(http: Program, *path: str) -> tuple[int, Json]:
    stack_id = await child_of(http, "s", *path)
    stack = await http.stack(stack_id)
    return await http.call("DELETE", f"/stacks/{stack['stack_name']}/{stack_id}")


async def deleted(http: Program, stack_id: str) -> bool:
    status, shown = await http.call("GET", f"/stacks/{stack_id}")
    return status == 404 or bool(shown["stack"]["stack_status"] == "DELETE_COMPLETE")


@pytest.fixture
async def permissive(database_url: str) -> AsyncIterator[Program]:
    """The operator allows users to delete nested stacks by themselves."""
    async with program(database_url, {"server.delete_nested_stacks": True}) as run:
        yield run


async def test_a_nested_stack_can_be_deleted_by_itself_if_the_operator_allows_it(
    permissive: Program,
) -> None:
    await permissive.create("s", {"deep": nested("x", "outer.yaml")}, files=FILES)
    assert await permissive.until_ended("s") == "CREATE_COMPLETE"
    inner = await child_of(permissive, "s", "deep", "inner")
    status, _ = await delete_nested(permissive, "deep", "inner")
    assert status == 204
    await eventually(lambda: deleted(permissive, inner))
    assert (await permissive.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    # As in Heat, a check notices it, the next update creates it again, and a delete accepts it.
    await permissive.act("s", "check")
    assert await permissive.until_ended("s") == "CHECK_FAILED"
    await permissive.update("s")
    assert await permissive.until_ended("s") == "UPDATE_COMPLETE"
    again = await child_of(permissive, "s", "deep", "inner")
    assert again != inner
    assert (await permissive.stack(again))["stack_status"].endswith("COMPLETE")
    assert (await delete_nested(permissive, "deep", "inner"))[0] == 204
    await eventually(lambda: deleted(permissive, again))
    await permissive.stack_request("DELETE", "s")
    await eventually(lambda: deleted(permissive, "s"))


async def test_a_nested_stack_of_a_changing_stack_cannot_be_deleted(permissive: Program) -> None:
    waits = {"hooks": [{"at": "last", "on": ["pre-create"]}]}
    resources = {
        "deep": nested("x", "outer.yaml"), "last": resource(depends_on="deep"),
    }  # fmt: skip
    await permissive.create("s", resources, files=FILES, environment=waits)
    await permissive.waiting_hooks("s")
    status, response = await delete_nested(permissive, "deep")
    assert (status, response["error"]["type"]) == (409, "ActionInProgress")
    status, response = await delete_nested(permissive, "deep", "inner")
    assert status == 409
    assert "Wait until the action of s ends" in response["error"]["message"]
