"""Lists of events and resources: filters, order and pages."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests.support.program import Json, Program, resource

TYPE = "OS::Heat::TestResource"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


@pytest_asyncio.fixture(loop_scope="session")
async def stack(running: Program) -> AsyncIterator[tuple[Program, str]]:
    """A stack with two resources, created in order, and an update of one."""
    described = resource("x", description="The first")
    created = await running.create("s", {"a": described, "b": {"type": "OS::Heat::None"}})
    await running.until_ended("s")
    await running.update("s", template={
        "heat_template_version": "2018-08-31",
        "resources": {"a": resource("y", description="The first"), "b": {"type": "OS::Heat::None"}},
    })  # fmt: skip
    await running.until_ended("s")
    yield running, f"/stacks/s/{created}"


async def listed(run: Program, path: str) -> list[Json]:
    status, response = await run.call("GET", path)
    assert status == 200, response
    return list(response["events"])


def ids(events: list[Json]) -> list[str]:
    return [one["id"] for one in events]


async def test_every_filter_of_events(stack: tuple[Program, str]) -> None:
    run, path = stack
    unpaged = await listed(run, f"{path}/events")
    assert len(unpaged) == 10  # four of the stack, four of a, two of b
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
        assert ids(found) == [one["id"] for one in unpaged if is_wanted(one)], query
    newest = await listed(run, f"{path}/events?resource_name=a&limit=1&sort_dir=desc")
    assert [one["resource_status"] for one in newest] == ["UPDATE_COMPLETE"]
    for name in ("a", "b", "s"):
        of_one = await listed(run, f"{path}/resources/{name}/events")
        assert ids(of_one) == [one["id"] for one in unpaged if one["resource_name"] == name]
    assert (await run.call("GET", f"{path}/resources/c/events"))[0] == 404


@pytest.mark.parametrize(
    "order",
    ["", "sort_dir=desc", "sort_keys=resource_type", "sort_keys=resource_type&sort_dir=desc"],
)
async def test_the_pages_together_are_the_list(stack: tuple[Program, str], order: str) -> None:
    run, path = stack
    unpaged = await listed(run, f"{path}/events?{order}")
    seen: list[Json] = []
    while page := await listed(
        run, f"{path}/events?{order}&limit=3" + (f"&marker={seen[-1]['id']}" if seen else "")
    ):
        seen += page
        assert len(seen) <= len(unpaged)
    assert ids(seen) == ids(unpaged)
    types = {"a": TYPE, "b": "OS::Heat::None", "s": "OS::Heat::Stack"}
    if "type" in order:
        types_shown = [types[one["resource_name"]] for one in unpaged]
        assert types_shown == sorted(types_shown, reverse="desc" in order)


async def test_an_event_has_the_type_and_properties_of_its_resource(
    stack: tuple[Program, str],
) -> None:
    run, path = stack
    for name, kind, properties in (("a", TYPE, {"value": "y"}), ("s", "OS::Heat::Stack", {})):
        one = (await listed(run, f"{path}/resources/{name}/events"))[-1]
        _, response = await run.call("GET", f"{path}/resources/{name}/events/{one['id']}")
        shown = response["event"]
        assert {key: shown[key] for key in one} == one
        assert (shown["resource_type"], shown["resource_properties"].get("value")) == (
            kind, properties.get("value"),
        )  # fmt: skip
    (last,) = await listed(run, f"{path}/events?sort_dir=desc&limit=1")
    status, _ = await run.call("GET", f"{path}/resources/b/events/{last['id']}")
    assert status == 404


async def test_invalid_sort_keys_and_markers_of_events(stack: tuple[Program, str]) -> None:
    run, path = stack
    for wrong in ("sort_keys=colour", "sort_dir=up", "marker=x", "limit=-1", "nested_depth=x"):
        status, response = await run.call("GET", f"{path}/events?{wrong}")
        assert status == 400 and wrong.partition("=")[0] in response["error"]["message"], response
    nobodys = "7f599edc-9522-4a30-93e3-75f43c50906c"
    assert await listed(run, f"{path}/events?marker={nobodys}") == []


async def test_resources_with_detail_and_every_filter(stack: tuple[Program, str]) -> None:
    run, path = stack
    _, unpaged = await run.call("GET", f"{path}/resources?with_detail=True&nested_depth=5")
    by_name = {one["resource_name"]: one for one in unpaged["resources"]}
    assert by_name["a"]["description"] == "The first" and by_name["b"]["description"] == ""
    assert by_name["a"]["attributes"]["output"] == "y"
    for query, names in {
        f"type={TYPE}": ["a"], "name=b": ["b"], "action=UPDATE": ["a"], "status=FAILED": [],
        "status=COMPLETE": ["a", "b"], "id=x": [], "type=No": [],
        f"physical_resource_id={by_name['a']['physical_resource_id']}": ["a"],
    }.items():  # fmt: skip
        _, response = await run.call("GET", f"{path}/resources?{query}")
        assert sorted(one["resource_name"] for one in response["resources"]) == names, query
    _, one = await run.call("GET", f"{path}/resources/a?with_attr=nothing")
    assert one["resource"]["description"] == "The first"
    assert one["resource"]["attributes"].keys() == {"output", "nothing"}


async def test_resources_and_events_have_the_type_of_the_template(running: Program) -> None:
    """As in Heat: the type as written, also for filters and sorting; the mapped one is beside."""
    mapped = {"resource_registry": {"My::T": TYPE, "A::Nested": "n.yaml"}}
    inner = f"{{heat_template_version: 2018-08-31, resources: {{i: {{type: My::T}}, j: {{type: {TYPE}}}}}}}"
    resources = {"a": {"type": "My::T"}, "b": {"type": TYPE}, "n": {"type": "A::Nested"}}
    made = await running.create("s", resources, environment=mapped, files={"n.yaml": inner})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    path = f"/stacks/s/{made}"
    _, response = await running.call("GET", f"{path}/resources?nested_depth=1")
    assert {
        one["resource_name"]: (one["resource_type"], one["headgate_resolved_type"])
        for one in response["resources"]
    } == {"a": ("My::T", TYPE), "b": (TYPE, TYPE), "n": ("A::Nested", "n.yaml"),
          "i": ("My::T", TYPE), "j": (TYPE, TYPE)}  # fmt: skip
    _, response = await running.call("GET", f"{path}/resources?type=My::T")
    assert [one["resource_name"] for one in response["resources"]] == ["a"]
    _, response = await running.call("GET", f"{path}/resources/a")
    assert response["resource"]["resource_type"] == "My::T"
    for query, names in {
        "resource_type=My::T": ["a", "a"],
        f"resource_type={TYPE}": ["b", "b"],
        "resource_type=My::T&nested_depth=1": ["a", "a", "i", "i"],
        "sort_keys=resource_type": ["n", "n", "a", "a", "s", "s", "b", "b"],
    }.items():
        found = await listed(running, f"{path}/events?{query}")
        assert sorted(one["resource_name"] for one in found) == sorted(names), query
        if "sort_keys" in query:
            assert [one["resource_name"] for one in found] == names
            marker = await listed(running, f"{path}/events?{query}&marker={found[2]['id']}")
            assert ids(marker) == ids(found)[3:]
    event = next(iter(await listed(running, f"{path}/events?resource_name=a")))
    _, response = await running.call("GET", f"{path}/resources/a/events/{event['id']}")
    shown = response["event"]
    assert (shown["resource_type"], shown["headgate_resolved_type"]) == ("My::T", TYPE)


async def test_a_resource_has_its_old_type_until_the_update_replaces_it(running: Program) -> None:
    made = await running.create("s", {"a": {"type": TYPE}})
    await running.until_ended("s")
    new = {"heat_template_version": "2018-08-31", "resources": {"a": {"type": "My::T"}}}
    mapped = {"resource_registry": {"My::T": "OS::Heat::RandomString"}}

    async def shown_types() -> tuple[str, str]:
        _, response = await running.call("GET", f"/stacks/s/{made}/resources/a")
        shown = response["resource"]
        return shown["resource_type"], shown["headgate_resolved_type"]

    hooks = {"add": ["a:pre-replace"]}
    await running.update("s", template=new, environment=mapped, hooks=hooks)
    (hook,) = await running.waiting_hooks("s")
    assert await shown_types() == (TYPE, TYPE)
    await running.signal(hook)
    await running.until_ended("s")
    assert await shown_types() == ("My::T", "OS::Heat::RandomString")
