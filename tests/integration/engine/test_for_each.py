"""Resources with `for_each` from the request to the last event: names, updates, hooks and paths."""

from urllib.parse import quote

from tests.support.changes import expect_error, thing, until_complete
from tests.support.program import Json, Program
from tests.support.scripted_type import World


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
    assert 'web["b"]' in names


async def test_a_resource_is_found_by_its_name_in_a_path(run: Program) -> None:
    await create(run, loop(["a"]))
    await run.until_ended("s")
    name = quote('web["a"]')
    shown = await run.stack_request("GET", "s", f"/resources/{name}")
    assert shown["resource"]["resource_name"] == 'web["a"]'
    events = await run.stack_request("GET", "s", f"/resources/{name}/events")
    assert {one["resource_name"] for one in events["events"]} == {'web["a"]'}


async def test_clients_of_heat_may_write_the_name_without_brackets(run: Program) -> None:
    await create(run, loop(["a", "b"]))
    await run.until_ended("s")
    shown = await run.stack_request("GET", "s", "/resources/web-a")
    assert shown["resource"]["resource_name"] == 'web["a"]'
    events = await run.stack_request("GET", "s", "/resources/web-a/events")
    assert {one["resource_name"] for one in events["events"]} == {'web["a"]'}
    one = events["events"][0]["id"]
    shown = await run.stack_request("GET", "s", f"/resources/web-a/events/{one}")
    assert shown["event"]["resource_name"] == 'web["a"]'
    await run.stack_request("PATCH", "s", "/resources/web-b", {"mark_unhealthy": True})
    assert (await run.resources("s"))['web["b"]']["resource_status"] == "CHECK_FAILED"
    stack = await run.stack("s")
    status, _ = await run.call("GET", f"/stacks/s/{stack['id']}/resources/web-c")
    assert status == 404


async def test_a_partial_update_selects_one_or_all_by_name(run: Program, world: World) -> None:
    await create(run, loop(["a", "b", "c"]))
    await run.until_ended("s")
    await run.update("s", "PUT", template=loop(["a", "b", "c"], 2), only=['web["b"]'])
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert [len(world.operations(f'web["{key}"]')) for key in "abc"] == [1, 2, 1]
    await run.stack_request("PATCH", "s", "", {"only": ["web"]})
    await until_complete(run, "s")
    assert [len(world.operations(f'web["{key}"]')) for key in "abc"] == [2, 2, 2]
    status, error = await expect_error(run, "PATCH", "s", "", {"only": ['web["d"]']})
    assert status == 400 and "matches no resource" in error["message"]


async def test_breakpoints_of_one_and_of_all(run: Program) -> None:
    await create(run, loop(["a", "b"], hooks="pre-create"))
    waiting = await run.waiting_hooks("s", 2)
    assert {one["resource_name"] for one in waiting} == {'web["a"]', 'web["b"]'}
    await run.stack_request("DELETE", "s", "")


async def test_a_breakpoint_in_the_environment_names_one_key(run: Program) -> None:
    environment = {"resource_registry": {"resources": {'web["b"]': {"hooks": "pre-create"}}}}
    await create(run, loop(["a", "b"]), environment=environment)
    (hook,) = await run.waiting_hooks("s")
    assert hook["resource_name"] == 'web["b"]'
    path = quote('/resources/web["b"]/signal')
    await run.stack_request("POST", "s", path, {"unset_hook": "pre-create"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_preview_names_the_resources_by_key(run: Program) -> None:
    await create(run, loop(["a", "b"]))
    await run.until_ended("s")
    found = await run.stack_request("PUT", "s", "/preview", {"template": loop(["b", "c"])})
    changes = found["resource_changes"]
    assert [one["resource_name"] for one in changes["added"]] == ['web["c"]']
    assert [one["resource_name"] for one in changes["deleted"]] == ['web["a"]']


async def test_each_key_may_have_a_nested_stack(run: Program, world: World) -> None:
    inner = """
heat_template_version: headgate
parameters: {n: {type: number}, keys: {type: json, default: [x]}}
resources:
  one:
    type: Test::Thing
    for_each: {get_param: keys}
    properties: {size: "${n}"}
outputs: {ids: {value: {get_resource: one}}}
"""
    document: Json = {
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
    await create(run, document, files={"inner.yaml": inner})
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
