"""The list of stacks: filters, order and pages."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from engine.service import StackRequest
from engine.store.database import Database
from engine.store.stacks import stack_lists
from engine.store.stacks.stack_lists import StackFilter
from tests.support.changes import until_deleted
from tests.support.idle_engine import idle_engine
from tests.support.program import Program, identity_headers, resource, template

#: By name: the owner, the tags, and other keys of the request.
STACKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "one": ("ann", "x,y", {"timeout_mins": 5}),
    "three": ("ann", "", {"disable_rollback": False}),
    "two": ("bob", "x", {"timeout_mins": 7}),
}
HIDDEN = "inner"


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return {"server.hidden_stack_tags": [HIDDEN]}


@pytest_asyncio.fixture(loop_scope="session")
async def listed(in_own_project: Program) -> Program:
    in_own_project.project = "p"
    for name, (owner, tags, more) in STACKS.items():
        await create_stack(in_own_project, name, owner=owner, tags=tags or None, **more)
    await create_stack(in_own_project, "hidden", owner="eve", tags=f"{HIDDEN},x")
    return in_own_project


async def create_stack(run: Program, name: str, *, owner: str, **more: Any) -> None:
    body = {"stack_name": name, "template": template({"a": resource()}), **more}
    status, response = await run.call("POST", "/stacks", body, headers=identity_headers(owner))
    assert status == 201, response
    await run.until_ended(name)


async def names(run: Program, query: str) -> list[str]:
    status, response = await run.call("GET", f"/stacks?{query}")
    assert status == 200, response
    return [stack["stack_name"] for stack in response["stacks"]]


FILTERS: dict[str, set[str]] = {
    "tags=x": {"one", "two"},
    "tags=x,y": {"one"},
    "tags_any=y,z": {"one"},
    "tags_any=x&tags_any=z": {"one", "two"},
    "not_tags=x,y": {"two", "three"},
    "not_tags_any=y,z": {"two", "three"},
    "not_tags_any=x,y": {"three"},
    "tags=x&not_tags=y": {"two"},
    "username=ann": {"one", "three"},
    "stack_owner=ann&username=bob": {"one", "two", "three"},
    "stack_action=create&name=one&name=two": {"one", "two"},
    "status=CREATE_COMPLETE": {"one", "two", "three"},
    "status=FAILED": set(),
    "status=CREATE_COMPLETE&tags=y": {"one"},
    "disable_rollback=False": {"three"},
    "disable_rollback=true": {"one", "two"},
    "timeout_mins=5": {"one"},
    "timeout_mins=5&timeout_mins=7": {"one", "two"},
    "stack_status_reason=Stack+CREATE+completed+successfully": {"one", "two", "three"},
    "stack_status_reason=Stack": set(),
    "tenant=p": {"one", "two", "three"},
    "stack_user_project_id=q": set(),
    "owner_id=7f599edc-9522-4a30-93e3-75f43c50906c": set(),
    "parent=one": set(),
    "show_nested=true": {"one", "two", "three"},
    "show_hidden=true": {"one", "two", "three", "hidden"},
    "show_hidden=true&tags=x&not_tags_any=y": {"two", "hidden"},
    "tags=x&not_tags_any=y": {"two"},
    "name=hidden": set(),
    "colour=red": {"one", "two", "three"},
}


async def test_filters_of_stacks(listed: Program) -> None:
    assert {query: set(await names(listed, query)) for query in FILTERS} == FILTERS


async def test_stacks_of_all_projects(listed: Program) -> None:
    body = {"stack_name": "one", "template": template({"a": resource()})}
    assert (await listed.call("POST", "//v1/q/stacks", body))[0] == 201
    _, response = await listed.call("GET", "/stacks?global_tenant=True&name=one")
    assert {one["project"] for one in response["stacks"]} == {"p", "q"}
    _, response = await listed.call("GET", "/stacks?global_tenant=True&tenant=q")
    (only,) = response["stacks"]
    assert f"/v1/q/stacks/one/{only['id']}" in only["links"][0]["href"]
    _, response = await listed.call("GET", "/stacks?name=one")
    assert [one.get("project") for one in response["stacks"]] == [None]


async def test_invalid_filters_are_refused(listed: Program) -> None:
    for wrong in ("disable_rollback=yes", "timeout_mins=soon", "show_hidden=1", "show_nested=x",
                  "with_count=2", "global_tenant=all"):  # fmt: skip
        status, response = await listed.call("GET", f"/stacks?{wrong}")
        assert status == 400 and wrong.partition("=")[0] in response["error"]["message"], response


async def test_several_sort_keys(listed: Program) -> None:
    await listed.update("three", tags="now")
    await listed.until_ended("three")
    assert await names(listed, "sort_keys=stack_status,stack_name&sort_dir=asc") == [
        "one", "two", "three",
    ]  # fmt: skip
    assert await names(listed, "sort_keys=stack_status&sort_keys=stack_name&sort_dir=desc") == [
        "three", "two", "one",
    ]  # fmt: skip
    assert await names(listed, "sort_keys=updated_time&sort_dir=desc&limit=1") == ["three"]
    assert await names(listed, "sort_dir=asc") == ["one", "three", "two"]


async def test_many_stacks_are_sorted_by_indexed_keys_only(
    listed: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_lists, "MAX_SORTED_STACKS", 2)
    for keys in ("stack_status", "updated_time", "stack_name,creation_time"):
        status, response = await listed.call("GET", f"/stacks?sort_keys={keys}")
        message = response["error"]["message"]
        assert status == 400 and "more than 2 stacks" in message, response
        assert "Sort by creation_time or stack_name." in message
    assert await names(listed, "sort_keys=stack_name&sort_dir=asc") == ["one", "three", "two"]
    assert await names(listed, "sort_keys=creation_time&sort_dir=asc") == ["one", "three", "two"]


async def test_pages_of_all_projects_continue_after_the_marker(database: Database) -> None:
    engine = idle_engine(database)
    request = StackRequest(name="s", template=template({"a": resource()}))
    created = [(await engine.stacks.create(f"p{n % 3}", replace(request, name=f"s{n}"))).id
               for n in range(7)]  # fmt: skip
    for descending in (False, True):
        found: list[UUID] = []
        while len(found) % 2 == 0:
            wanted = StackFilter(
                limit=2, descending=descending, marker=found[-1] if found else None
            )
            found += [one.id for one in (await engine.reads.list_stacks(None, wanted)).stacks]
        assert found == (created[::-1] if descending else created)


async def test_pages_continue_after_the_marker(listed: Program) -> None:
    query = "sort_keys=stack_status,stack_name&sort_dir=asc&limit=2"
    _, first = await listed.call("GET", f"/stacks?{query}")
    marker = first["stacks"][-1]["id"]
    assert [stack["stack_name"] for stack in first["stacks"]] == ["one", "three"]
    assert await names(listed, f"{query}&marker={marker}") == ["two"]
    _, counted = await listed.call("GET", "/stacks?tags=x&limit=1&with_count=true")
    assert (len(counted["stacks"]), counted["count"]) == (1, 2)


async def test_the_count_is_that_of_all_pages(listed: Program) -> None:
    _, unpaged = await listed.call("GET", "/stacks?sort_dir=asc")
    last = unpaged["stacks"][-1]["id"]
    query = f"sort_dir=asc&with_count=true&marker={last}"
    _, after = await listed.call("GET", f"/stacks?{query}")
    assert (after["stacks"], after["count"]) == ([], 3)
    _, hidden = await listed.call("GET", f"/stacks?{query}&show_hidden=true")
    assert ([one["stack_name"] for one in hidden["stacks"]], hidden["count"]) == (["hidden"], 4)


async def test_a_page_continues_after_a_deleted_stack(listed: Program) -> None:
    stack = await listed.stack("three")
    await listed.stack_request("DELETE", "three")
    await until_deleted(listed, "three")
    for direction, rest in (("asc", ["two"]), ("desc", ["one"])):
        query = f"sort_keys=created_at&sort_dir={direction}&marker={stack['id']}"
        assert await names(listed, query) == rest


async def test_a_put_without_tags_removes_them_and_a_patch_keeps_them(listed: Program) -> None:
    body = {"template": template({"a": resource()})}
    for method, kept in (("PATCH", ["x"]), ("PUT", [])):
        await listed.stack_request(method, "two", body=body)
        await listed.until_ended("two")
        response = await listed.stack_request("GET", "two")
        assert response["stack"]["tags"] == kept


async def test_stacks_are_found_by_their_tags_as_they_change(listed: Program) -> None:
    """In the order of the list; each stack once, also if it has several of the tags."""
    await listed.update("three", tags="x,z")
    await listed.until_ended("three")
    assert await names(listed, "tags=x") == ["two", "three", "one"]
    assert await names(listed, "tags=x&sort_dir=asc") == ["one", "three", "two"]
    assert await names(listed, "tags=x,z") == ["three"]
    assert await names(listed, "tags_any=x,y,z&limit=2") == ["two", "three"]
    marker = (await listed.stack("three"))["id"]
    assert await names(listed, f"tags_any=x,y,z&marker={marker}") == ["one"]
    await listed.update("three", tags="z")
    await listed.until_ended("three")
    assert await names(listed, "tags=x") == ["two", "one"]
    await listed.stack_request("DELETE", "two")
    await until_deleted(listed, "two")
    assert await names(listed, "tags=x") == ["one"]
    assert await names(listed, "tags=x&show_deleted=true") == ["two", "one"]
    async with listed.database.connection() as conn:
        rows = await conn.fetch(STORED_TAGS)
    assert [tuple(row) for row in rows] == [
        ("hidden", HIDDEN), ("hidden", "x"), ("one", "x"), ("one", "y"), ("three", "z"),
    ]  # fmt: skip


STORED_TAGS = """
select s.name, g.tag from stack_tag g join stack s on s.id = g.stack_id and s.project = g.project
   and s.created_at = g.created_at order by 1, 2
"""


async def test_only_root_stacks_are_found_by_their_tags(database: Database) -> None:
    """Nested stacks inherit the tags; one that is detached becomes a root stack."""
    async with database.connection() as conn:
        await conn.execute(TAGGED)
        found = f"select array(select tag from stack_tag where stack_id = '{UUID(int=2)}')"
        assert await conn.fetchval(found) == []
        await conn.execute("update stack set parent_id = null")
        assert await conn.fetchval(found) == ["x"]
        await conn.execute("delete from stack")
        assert await conn.fetchval("select count(*) from stack_tag") == 0


TAGGED = f"""
insert into stack (id, project, name, owner, version, traversal, tags, parent_id)
values ('{UUID(int=1)}', 'p', 'a', 'o', 1, 1, array['x', 'x'], null),
       ('{UUID(int=2)}', 'p', 'b', 'o', 1, 1, array['x'], '{UUID(int=1)}')
"""
