"""Which stacks a list shows, and in which order."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.changes import gone
from tests.support.program import Program, program, resource, template, who

#: By name: its owner, its tags, and what else it says.
STACKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "one": ("ann", "x,y", {"timeout_mins": 5}),
    "three": ("ann", "", {"disable_rollback": False}),
    "two": ("bob", "x", {"timeout_mins": 7}),
}
HIDDEN = "inner"


@pytest.fixture
async def listed(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"server.hidden_stack_tags": [HIDDEN]}) as running:
        for name, (owner, tags, more) in STACKS.items():
            await made(running, name, owner=owner, tags=tags or None, **more)
        await made(running, "hidden", owner="eve", tags=f"{HIDDEN},x")
        yield running


async def made(run: Program, name: str, *, owner: str, **more: Any) -> None:
    body = {"stack_name": name, "template": template({"a": resource()}), **more}
    status, said = await run.call("POST", "/stacks", body, headers=who(owner))
    assert status == 201, said
    await run.until_ended(name)


async def names(run: Program, query: str) -> list[str]:
    status, said = await run.call("GET", f"/stacks?{query}")
    assert status == 200, said
    return [stack["stack_name"] for stack in said["stacks"]]


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


async def test_a_list_shows_what_is_asked_for(listed: Program) -> None:
    assert {query: set(await names(listed, query)) for query in FILTERS} == FILTERS


async def test_stacks_of_every_project_for_whoever_may(listed: Program) -> None:
    body = {"stack_name": "one", "template": template({"a": resource()})}
    assert (await listed.call("POST", "//v1/q/stacks", body))[0] == 201
    _, said = await listed.call("GET", "/stacks?global_tenant=True&name=one")
    assert {one["project"] for one in said["stacks"]} == {"p", "q"}
    _, said = await listed.call("GET", "/stacks?global_tenant=True&tenant=q")
    (only,) = said["stacks"]
    assert f"/v1/q/stacks/one/{only['id']}" in only["links"][0]["href"]
    _, said = await listed.call("GET", "/stacks?name=one")
    assert [one.get("project") for one in said["stacks"]] == [None]


async def test_what_is_no_filter_is_refused_by_name(listed: Program) -> None:
    for wrong in ("disable_rollback=yes", "timeout_mins=soon", "show_hidden=1", "show_nested=x",
                  "with_count=2", "global_tenant=all"):  # fmt: skip
        status, said = await listed.call("GET", f"/stacks?{wrong}")
        assert status == 400 and wrong.partition("=")[0] in said["error"]["message"], said


async def test_several_keys_sort_one_after_the_other(listed: Program) -> None:
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


async def test_pages_go_on_where_the_last_ended(listed: Program) -> None:
    query = "sort_keys=stack_status,stack_name&sort_dir=asc&limit=2"
    _, first = await listed.call("GET", f"/stacks?{query}")
    marker = first["stacks"][-1]["id"]
    assert [stack["stack_name"] for stack in first["stacks"]] == ["one", "three"]
    assert await names(listed, f"{query}&marker={marker}") == ["two"]
    _, counted = await listed.call("GET", "/stacks?tags=x&limit=1&with_count=true")
    assert (len(counted["stacks"]), counted["count"]) == (1, 2)


async def test_the_count_is_of_all_pages_also_on_an_empty_one(listed: Program) -> None:
    _, whole = await listed.call("GET", "/stacks?sort_dir=asc")
    last = whole["stacks"][-1]["id"]
    query = f"sort_dir=asc&with_count=true&marker={last}"
    _, after = await listed.call("GET", f"/stacks?{query}")
    assert (after["stacks"], after["count"]) == ([], 3)
    _, hidden = await listed.call("GET", f"/stacks?{query}&show_hidden=true")
    assert ([one["stack_name"] for one in hidden["stacks"]], hidden["count"]) == (["hidden"], 4)


async def test_a_page_goes_on_behind_a_stack_that_went_in_between(listed: Program) -> None:
    stack = await listed.stack("three")
    await listed.at("DELETE", "three")
    await gone(listed, "three")
    for direction, rest in (("asc", ["two"]), ("desc", ["one"])):
        query = f"sort_keys=created_at&sort_dir={direction}&marker={stack['id']}"
        assert await names(listed, query) == rest
