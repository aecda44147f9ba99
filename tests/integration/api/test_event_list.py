"""Events and resources of a stack as lists: filtered, sorted, a page at a time."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.support.program import Json, Program, resource

TYPE = "OS::Heat::TestResource"


@pytest.fixture
async def stack(running: Program) -> AsyncIterator[tuple[Program, str]]:
    """Two resources, one after the other, and an update of one."""
    described = resource("x", description="The first")
    made = await running.create("s", {"a": described, "b": {"type": "OS::Heat::None"}})
    await running.until_ended("s")
    await running.update("s", template={
        "heat_template_version": "2018-08-31",
        "resources": {"a": resource("y", description="The first"), "b": {"type": "OS::Heat::None"}},
    })  # fmt: skip
    await running.until_ended("s")
    yield running, f"/stacks/s/{made}"


async def listed(run: Program, path: str) -> list[Json]:
    status, said = await run.call("GET", path)
    assert status == 200, said
    return list(said["events"])


def ids(events: list[Json]) -> list[str]:
    return [one["id"] for one in events]


async def test_events_are_filtered_in_every_way(stack: tuple[Program, str]) -> None:
    run, path = stack
    whole = await listed(run, f"{path}/events")
    assert len(whole) == 10  # four of the stack, four of a, two of b
    wanted: dict[str, Callable[[Json], bool]] = {
        "resource_name=a": lambda one: one["resource_name"] == "a",
        "resource_name=s": lambda one: one["resource_name"] == "s",
        "resource_name=a&resource_name=s": lambda one: one["resource_name"] in ("a", "s"),
        "resource_type=OS::Heat::Stack": lambda one: one["resource_name"] == "s",
        "resource_type=OS::Heat::None": lambda one: one["resource_name"] == "b",
        "resource_action=UPDATE": lambda one: one["resource_status"].startswith("UPDATE"),
        "resource_status=COMPLETE": lambda one: one["resource_status"].endswith("COMPLETE"),
        "resource_status=UPDATE_COMPLETE": lambda one: one["resource_status"] == "UPDATE_COMPLETE",
        "resource_status=FAILED": lambda one: False,
    }
    for query, is_wanted in wanted.items():
        found = await listed(run, f"{path}/events?{query}")
        assert ids(found) == [one["id"] for one in whole if is_wanted(one)], query
    newest = await listed(run, f"{path}/events?resource_name=a&limit=1&sort_dir=desc")
    assert [one["resource_status"] for one in newest] == ["UPDATE_COMPLETE"]
    for name in ("a", "b", "s"):
        of_one = await listed(run, f"{path}/resources/{name}/events")
        assert ids(of_one) == [one["id"] for one in whole if one["resource_name"] == name]
    assert (await run.call("GET", f"{path}/resources/c/events"))[0] == 404


@pytest.mark.parametrize(
    "order",
    ["", "sort_dir=desc", "sort_keys=resource_type", "sort_keys=resource_type&sort_dir=desc"],
)
async def test_pages_are_the_whole_list_and_end(stack: tuple[Program, str], order: str) -> None:
    run, path = stack
    whole = await listed(run, f"{path}/events?{order}")
    seen: list[Json] = []
    while page := await listed(
        run, f"{path}/events?{order}&limit=3" + (f"&marker={seen[-1]['id']}" if seen else "")
    ):
        seen += page
        assert len(seen) <= len(whole)
    assert ids(seen) == ids(whole)
    types = {"a": TYPE, "b": "OS::Heat::None", "s": "OS::Heat::Stack"}
    if "type" in order:
        said = [types[one["resource_name"]] for one in whole]
        assert said == sorted(said, reverse="desc" in order)


async def test_an_event_has_the_type_and_properties_of_its_resource(
    stack: tuple[Program, str],
) -> None:
    run, path = stack
    for name, kind, properties in (("a", TYPE, {"value": "y"}), ("s", "OS::Heat::Stack", {})):
        one = (await listed(run, f"{path}/resources/{name}/events"))[-1]
        _, said = await run.call("GET", f"{path}/resources/{name}/events/{one['id']}")
        shown = said["event"]
        assert {key: shown[key] for key in one} == one
        assert (shown["resource_type"], shown["resource_properties"].get("value")) == (
            kind, properties.get("value"),
        )  # fmt: skip
    (last,) = await listed(run, f"{path}/events?sort_dir=desc&limit=1")
    status, _ = await run.call("GET", f"{path}/resources/b/events/{last['id']}")
    assert status == 404


async def test_wrong_orders_and_markers_of_events(stack: tuple[Program, str]) -> None:
    run, path = stack
    for wrong in ("sort_keys=colour", "sort_dir=up", "marker=x", "limit=-1", "nested_depth=x"):
        status, said = await run.call("GET", f"{path}/events?{wrong}")
        assert status == 400 and wrong.partition("=")[0] in said["error"]["message"], said
    nobodys = "7f599edc-9522-4a30-93e3-75f43c50906c"
    assert await listed(run, f"{path}/events?marker={nobodys}") == []


async def test_resources_in_detail_and_by_every_filter(stack: tuple[Program, str]) -> None:
    run, path = stack
    _, whole = await run.call("GET", f"{path}/resources?with_detail=True&nested_depth=5")
    by_name = {one["resource_name"]: one for one in whole["resources"]}
    assert by_name["a"]["description"] == "The first" and by_name["b"]["description"] == ""
    assert by_name["a"]["attributes"]["output"] == "y"
    for query, names in {
        f"type={TYPE}": ["a"], "name=b": ["b"], "action=UPDATE": ["a"], "status=FAILED": [],
        "status=COMPLETE": ["a", "b"], "id=x": [], "type=No": [],
        f"physical_resource_id={by_name['a']['physical_resource_id']}": ["a"],
    }.items():  # fmt: skip
        _, found = await run.call("GET", f"{path}/resources?{query}")
        assert sorted(one["resource_name"] for one in found["resources"]) == names, query
    _, one = await run.call("GET", f"{path}/resources/a?with_attr=nothing")
    assert one["resource"]["description"] == "The first"
    assert one["resource"]["attributes"].keys() == {"output", "nothing"}
