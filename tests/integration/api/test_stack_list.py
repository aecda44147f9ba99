"""Which stacks a list shows, and in which order."""

from collections.abc import AsyncIterator

import pytest

from tests.support.program import Program, resource, template, who

STACKS = {"one": ("ann", "x,y"), "three": ("ann", ""), "two": ("bob", "x")}


@pytest.fixture
async def listed(running: Program) -> AsyncIterator[Program]:
    for name, (owner, tags) in STACKS.items():
        body = {"stack_name": name, "template": template({"a": resource()}), "tags": tags or None}
        status, said = await running.call("POST", "/stacks", body, headers=who(owner))
        assert status == 201, said
        await running.until_ended(name)
    yield running


async def names(run: Program, query: str) -> list[str]:
    status, said = await run.call("GET", f"/stacks?{query}")
    assert status == 200, said
    return [stack["stack_name"] for stack in said["stacks"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tags=x", {"one", "two"}),
        ("tags=x,y", {"one"}),
        ("tags_any=y,z", {"one"}),
        ("tags_any=x&tags_any=z", {"one", "two"}),
        ("not_tags=x,y", {"two", "three"}),
        ("not_tags_any=y,z", {"two", "three"}),
        ("not_tags_any=x,y", {"three"}),
        ("tags=x&not_tags=y", {"two"}),
        ("username=ann", {"one", "three"}),
        ("stack_owner=ann&username=bob", {"one", "two", "three"}),
        ("stack_action=create&name=one&name=two", {"one", "two"}),
        ("status=CREATE_COMPLETE", {"one", "two", "three"}),
        ("status=FAILED", set()),
    ],
)
async def test_a_list_shows_what_is_asked_for(listed: Program, query: str, found: set[str]) -> None:
    assert set(await names(listed, query)) == found


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
