"""Resources with `for_each` from the request to the last event: names, updates, hooks and paths."""

from urllib.parse import quote, unquote

import pytest

from tests.support.changes import expect_error, thing, until_complete
from tests.support.program import Json, Program
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def loop(keys: Json, size: Json = 1, **more: Json) -> Json:
    web = thing(size, for_each=keys, **more)
    user = {"type": "Test::Thing", "properties": {"size": 7}, "depends_on": "web"}
    return {
        "heat_template_version": "headgate",
        "resources": {"web": web, "user": user},
        "outputs": {"ids": {"value": {"get_resource": "web"}}},
    }


async def create(run: Program, document: Json, **more: Json) -> None:
    body = {"stack_name": "s", "template": document, **more}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response


async def test_a_key_in_the_middle_goes_and_the_others_are_not_touched(
    run: Program, world: World
) -> None:
    await create(run, loop(["a", "b", "c"]))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    before = await run.resources("s")
    assert [*sorted(before)] == ["user", 'web["a"]', 'web["b"]', 'web["c"]']
    stack = await run.stack("s")
    (output,) = stack["outputs"]
    assert output["output_value"] == {
        key: before[f'web["{key}"]']["physical_resource_id"] for key in "abc"
    }
    await run.update("s", "PUT", template=loop(["a", "c"]))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert world.operations('web["b"]') == ["create", "delete"]
    assert world.operations('web["a"]') == world.operations('web["c"]') == ["create"]
    assert [*sorted(await run.resources("s"))] == ["user", 'web["a"]', 'web["c"]']
    names = {one["resource_name"] for one in await run.events("s")}
    assert "web-b" in names and 'web["b"]' not in names


@pytest.mark.parametrize("name", ["web-a", quote('web["a"]')], ids=["plain", "template"])
async def test_routes_of_one_resource_take_both_names(run: Program, name: str) -> None:
    await create(run, loop(["a", "b"]))
    await run.until_ended("s")
    shown = await run.stack_request("GET", "s", f"/resources/{name}")
    assert names_of(shown["resource"]) == ("web-a", 'web["a"]')
    events = await run.stack_request("GET", "s", f"/resources/{name}/events")
    assert {names_of(one) for one in events["events"]} == {("web-a", 'web["a"]')}
    one = events["events"][0]["id"]
    shown = await run.stack_request("GET", "s", f"/resources/{name}/events/{one}")
    assert names_of(shown["event"]) == ("web-a", 'web["a"]')
    details = await run.stack_request("GET", "s", f"/resources/{name}/inspect")
    assert details["name"] == 'web["a"]'
    await run.stack_request("GET", "s", f"/resources/{name}/metadata")
    await run.stack_request("PATCH", "s", f"/resources/{name}", {"mark_unhealthy": True})
    assert (await run.resources("s"))['web["a"]']["resource_status"] == "CHECK_FAILED"
    stack = await run.stack("s")
    for missing in ("web-c", f"web-c/events/{one}", f"web-b/events/{one}", "web-c/events"):
        status, _ = await run.call("GET", f"/stacks/s/{stack['id']}/resources/{missing}")
        assert status == 404


def names_of(document: Json) -> tuple[str, str]:
    """The names in a document of the Orchestration API: Heat's, which is in two fields and a link,
    and the one in the template."""
    shown = document["resource_name"]
    assert document["logical_resource_id"] == shown
    paths = [unquote(one["href"]).partition("/resources/")[2] for one in document["links"]]
    assert all(path == "" or path.split("/")[0] == shown for path in paths) and any(paths)
    return shown, document["headgate_resource_name"]


async def test_lists_have_the_names_of_heat_with_those_of_the_template_beside(run: Program) -> None:
    await create(run, loop(["a", "b"]))
    await run.until_ended("s")
    found = (await run.stack_request("GET", "s", "/resources"))["resources"]
    by_name = {one["resource_name"]: one for one in found}
    assert [names_of(by_name[name]) for name in ("web-a", "user")] == [
        ("web-a", 'web["a"]'),
        ("user", "user"),
    ]
    events = await run.events("s")
    assert {one["resource_name"] for one in events} == {"s", "web-a", "web-b", "user"}
    assert all(names_of(one) for one in events)


@pytest.mark.parametrize("name", ["web-a", quote('web["a"]')], ids=["plain", "template"])
async def test_filters_take_both_names(run: Program, name: str) -> None:
    await create(run, loop(["a", "b"]))
    await run.until_ended("s")
    found = await run.stack_request("GET", "s", f"/resources?name={name}")
    assert [names_of(one) for one in found["resources"]] == [("web-a", 'web["a"]')]
    found = await run.stack_request("GET", "s", f"/events?resource_name={name}")
    assert {names_of(one) for one in found["events"]} == {("web-a", 'web["a"]')}
    # Events stay when the resource is gone.
    await run.update("s", "PUT", template=loop(["b"]))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    found = await run.stack_request("GET", "s", f"/resources/{name}/events")
    assert "DELETE_COMPLETE" in {one["resource_status"] for one in found["events"]}


async def test_dependents_and_parents_have_the_names_of_heat(run: Program) -> None:
    document = two_apps()
    document["resources"]["base"] = thing(5)
    document["resources"]["app"]["depends_on"] = "base"
    await create(run, document, files={"inner.yaml": INNER})
    await run.until_ended("s")
    found = await run.stack_request("GET", "s", "/resources?nested_depth=1")
    by_path = {
        (one.get("headgate_parent_resource"), one["headgate_resource_name"]): one
        for one in found["resources"]
    }
    assert sorted(by_path[None, "base"]["required_by"]) == ["app-a", "app-b"]
    inner = by_path['app["a"]', 'one["x"]']
    assert (inner["parent_resource"], inner["resource_name"]) == ("app-a", "one-x")
    single = await run.stack_request("GET", "s", "/resources/base")
    assert sorted(single["resource"]["required_by"]) == ["app-a", "app-b"]
    body = {"template": document, "files": {"inner.yaml": INNER}, "show_nested": True}
    _, described = await run.call("POST", "/validate?show_nested=true", body)
    assert {
        name: one["headgate_resource_name"] for name, one in described["NestedParameters"].items()
    } == {"app-a": 'app["a"]', "app-b": 'app["b"]'}


async def test_previews_have_the_names_of_heat_and_paths_of_the_template(run: Program) -> None:
    files = {"inner.yaml": INNER}
    body = {"stack_name": "s", "template": two_apps(), "files": files}
    _, found = await run.call("POST", "/stacks/preview", body)
    added = {one["path"]: one for one in found["stack"]["resource_changes"]["added"]}
    inner = added['app["a"]/one["x"]']
    assert (inner["resource_name"], inner["headgate_resource_name"]) == ("one-x", 'one["x"]')
    assert inner["parent_resource"] == "app-a"
    assert inner["headgate_parent_resource"] == 'app["a"]'
    assert inner["resource_identity"]["path"] == "/resources/one-x"
    assert any(one["path"] == 'app["a"]' for one in added.values())


async def test_the_shown_type_of_a_mapped_resource_is_the_one_in_the_template(run: Program) -> None:
    document = loop(["a", "b"])
    document["resources"]["web"]["type"] = "My::Thing"
    registry = {"My::Thing": "Test::Thing", "resources": {"web-b": {"hooks": "pre-delete"}}}
    await create(run, document, environment={"resource_registry": registry})
    await run.until_ended("s")
    found = await run.resources("s")
    assert found['web["a"]']["resource_type"] == "My::Thing"
    assert found['web["a"]']["headgate_resolved_type"] == "Test::Thing"
    shown = await run.stack_request("GET", "s", "/resources/web-a")
    assert shown["resource"]["resource_type"] == "My::Thing"
    found = await run.stack_request("GET", "s", "/resources?type=My::Thing")
    assert len(found["resources"]) == 2
    for query in ("", "&nested_depth=1", "&sort_keys=resource_type"):
        path = f"/events?resource_type=My::Thing{query}"
        events = (await run.stack_request("GET", "s", path))["events"]
        assert [one["resource_name"] for one in events].count("web-a") == 2, query
        assert len(events) == 4, query
        mapped = await run.stack_request("GET", "s", f"/events?resource_type=Test::Thing{query}")
        assert {one["resource_name"] for one in mapped["events"]} == {"user"}, query


async def test_two_resources_with_one_name_for_clients_of_heat_are_refused(run: Program) -> None:
    document = loop(["a"])
    document["resources"]["web-a"] = thing(3)
    status, error = await run.call("POST", "/stacks", {"stack_name": "s", "template": document})
    (finding,) = error["error"]["findings"]
    assert status == 400 and finding["place"] == "resources.web.for_each"
    assert finding["reason"] == 'web["a"] and web-a would both be web-a for Heat\'s clients.'
    assert finding["remedy"] == "Rename one of the two, or use another key."


async def test_a_partial_update_selects_one_or_all_by_name(run: Program, world: World) -> None:
    await create(run, loop(["a", "b", "c"]))
    await run.until_ended("s")
    await run.update("s", "PUT", template=loop(["a", "b", "c"], 2), only=['web["b"]'])
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert [len(world.operations(f'web["{key}"]')) for key in "abc"] == [1, 2, 1]
    await run.stack_request("PATCH", "s", "", {"only": ["web-a"]})
    await until_complete(run, "s")
    assert [len(world.operations(f'web["{key}"]')) for key in "abc"] == [2, 2, 1]
    await run.stack_request("PATCH", "s", "", {"only": ["web"]})
    await until_complete(run, "s")
    assert [len(world.operations(f'web["{key}"]')) for key in "abc"] == [2, 2, 2]
    status, error = await expect_error(run, "PATCH", "s", "", {"only": ['web["d"]']})
    assert status == 400 and "matches no resource" in error["message"]


async def test_breakpoints_of_one_and_of_all(run: Program) -> None:
    await create(run, loop(["a", "b"], hooks="pre-create"))
    waiting = await run.waiting_hooks("s", 2)
    assert {one["resource_name"] for one in waiting} == {'web["a"]', 'web["b"]'}
    for path, names in {
        "web-a": "a", "web": "ab", 'web["b"]': "b", "web-*": "ab", "web-?": "ab", "*": "ab",
        "*-b": "b", "web-c": "", "we": "", "web-": "", "web-a/x": "", "a": "",
    }.items():  # fmt: skip
        _, response = await run.call("GET", f"/hooks?state=waiting&path={quote(path)}")
        found = sorted(one["resource_name"] for one in response["hooks"])
        assert found == [f'web["{key}"]' for key in names], path
    await run.stack_request("DELETE", "s", "")


@pytest.mark.parametrize("name", ['web["b"]', "web-b"], ids=["template", "plain"])
async def test_a_breakpoint_in_the_environment_names_one_key(run: Program, name: str) -> None:
    environment = {"resource_registry": {"resources": {name: {"hooks": "pre-create"}}}}
    await create(run, loop(["a", "b"]), environment=environment)
    (hook,) = await run.waiting_hooks("s")
    assert (hook["resource_name"], hook["path"]) == ('web["b"]', 'web["b"]')
    path = f"/resources/{quote(name)}/signal"
    await run.stack_request("POST", "s", path, {"unset_hook": "pre-create"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_preview_names_the_resources_by_key(run: Program) -> None:
    await create(run, loop(["a", "b"]))
    await run.until_ended("s")
    found = await run.stack_request("PUT", "s", "/preview", {"template": loop(["b", "c"])})
    changes = found["resource_changes"]
    assert [one["headgate_resource_name"] for one in changes["added"]] == ['web["c"]']
    assert [one["resource_name"] for one in changes["deleted"]] == ["web-a"]


INNER = """
heat_template_version: headgate
parameters: {n: {type: number}, keys: {type: json, default: [x]}}
resources:
  one:
    type: Test::Thing
    for_each: {get_param: keys}
    properties: {size: "${n}"}
outputs: {ids: {value: {get_resource: one}}}
"""


def two_apps() -> Json:
    return {
        "heat_template_version": "headgate",
        "resources": {
            "app": {
                "type": "inner.yaml",
                "for_each": {"a": 1, "b": 2},
                "properties": {"n": "${each.value}"},
            }
        },
        "outputs": {"all": {"value": {"get_attr": ["app", "ids"]}}},
    }


async def test_each_key_may_have_a_nested_stack(run: Program, world: World) -> None:
    await create(run, two_apps(), files={"inner.yaml": INNER})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert sorted(world.things.values()) == [1, 2]
    nested = [one["stack_name"] for one in await _stacks(run) if one["stack_name"] != "s"]
    assert sorted(name[: len("s-app-a-")] for name in nested) == ["s-app-a-", "s-app-b-"]
    (output,) = (await run.stack("s"))["outputs"]
    assert {key: [*one] for key, one in output["output_value"].items()} == {"a": ["x"], "b": ["x"]}


async def _stacks(run: Program) -> Json:
    _, found = await run.call("GET", "/stacks?show_nested=true")
    return found["stacks"]


async def test_more_resources_than_the_quota_are_refused_at_once(run: Program) -> None:
    keys = [f"k{number}" for number in range(20_000)]
    body = {"stack_name": "s", "template": loop(keys)}
    status, response = await run.call("POST", "/stacks", body)
    assert status in (400, 403) and "has 20001 resources" in response["error"]["message"]


@pytest.mark.parametrize("name", ['web["b"]', "web-b"], ids=["template", "plain"])
async def test_live_breakpoints_take_both_names(run: Program, name: str) -> None:
    document = loop(["a", "b"], depends_on="base")
    document["resources"]["base"] = thing(3, hooks="pre-create")
    await create(run, document)
    await run.waiting_hooks("s")
    rule = {"breakpoints": [f"{name}:post-create"]}
    added = await run.stack_request("POST", "s", "/breakpoints", rule)
    assert [one["at"] for one in added["breakpoints"]] == [name] and not added["too_late"]
    assert (await run.stack_request("POST", "s", "/run-to", {"resource": name}))["too_late"] == []
    for point in ("pre-create", "post-create"):
        (hook,) = await run.waiting_hooks("s")
        assert (hook["resource_name"], hook["point"]) == ('web["b"]', point)
        await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
