"""Templates of Headgate's own version through snapshots, exports, adoptions and previews."""

import pytest

from tests.support.changes import expect_error, thing, until_complete, until_deleted, until_status
from tests.support.program import Json, Program
from tests.support.scripted_type import World

SIZES = {"a": 1, "b": 2}
INNER = """
heat_template_version: headgate
parameters: {sizes: {type: json}}
locals: {shown: {get_attr: [one, size]}}
resources:
  one: {type: "Test::Thing", for_each: {get_param: sizes}, properties: {size: "${each.value}"}}
outputs: {sizes: {value: "${shown}"}}
"""


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def template(sizes: Json = None, **more: Json) -> Json:
    """Loops in the stack and in a nested stack, locals, rules, lifecycles and conditions."""
    web = thing("${each.value}") | {
        "for_each": {"get_param": "sizes"},
        "depends_on": {"if": ["ordered", "first"]},
        "lifecycle": {"ignore_changes": ["place"]},
        "preconditions": [{"assert": {"equals": ["${count}", "${count}"]}, "message": "no"}],
        "postconditions": [
            {
                "assert": {
                    "equals": [{"get_attr": ['web["${each.key}"]', "size"]}, "${each.value}"]
                },
                "message": "size of ${each.key}",
            }
        ],
    }
    nested = {"type": "inner.yaml", "properties": {"sizes": {"get_param": "sizes"}}}
    return {
        "heat_template_version": "headgate",
        "parameters": {
            "sizes": {"type": "json", "default": sizes or SIZES, "schema": {"minProperties": 1}}
        },
        "conditions": {"ordered": True},
        "locals": {"count": {"length": {"get_param": "sizes"}}},
        "rules": [{"assert": {"not": {"equals": ["${count}", 9]}}, "message": "nine"}],
        "resources": {"first": thing(), "web": web, "n": nested, **more},
        "outputs": {
            "sizes": {"value": {"get_attr": ["web", "size"]}},
            "nested": {"value": {"get_attr": ["n", "sizes"]}},
        },
    }


async def create(run: Program, name: str = "s", **more: Json) -> None:
    body = {"stack_name": name, "template": template(), "files": {"inner.yaml": INNER}, **more}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    await run.until_ended(name)


async def outputs(run: Program, name: str = "s") -> Json:
    found = (await run.stack(name))["outputs"]
    return {one["output_key"]: one["output_value"] for one in found}


async def update(run: Program, sizes: Json, **more: Json) -> None:
    body = {"template": template(sizes), "files": {"inner.yaml": INNER}, **more}
    await run.update("s", "PUT", **body)
    await until_complete(run, "s")


async def test_snapshots_return_to_earlier_keys(run: Program, world: World) -> None:
    await create(run)
    assert await outputs(run) == {"sizes": SIZES, "nested": SIZES}
    kept = await run.stack_request("POST", "s", "/snapshots", {"name": "kept"})
    await until_status(run, "s", "SNAPSHOT_COMPLETE")
    await update(run, {"b": 3, "c": 4})
    assert await outputs(run) == {"sizes": {"b": 3, "c": 4}, "nested": {"b": 3, "c": 4}}
    await run.stack_request("POST", "s", f"/snapshots/{kept['id']}/restore", {})
    await until_status(run, "s", "RESTORE_COMPLETE")
    assert await outputs(run) == {"sizes": SIZES, "nested": SIZES}
    assert sorted(world.things.values()) == [1, 1, 1, 2, 2]


async def test_an_abandoned_stack_is_adopted_with_its_keys(run: Program, world: World) -> None:
    await create(run)
    things = dict(world.things)
    export = await run.stack_request("DELETE", "s", "/abandon")
    assert world.things == things
    body = {"stack_name": "t", "template": template(), "files": {"inner.yaml": INNER},
            "adopt_stack_data": export}  # fmt: skip
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("t") == "ADOPT_COMPLETE"
    assert world.things == things
    assert sorted(await run.resources("t")) == ["first", "n", 'web["a"]', 'web["b"]']
    await run.stack_request("DELETE", "t", "")
    await until_deleted(run, "t")
    assert world.things == {}


async def test_previews_of_an_unchanged_stack_show_no_change(run: Program) -> None:
    await create(run)
    body = {"template": template(), "files": {"inner.yaml": INNER}}
    shown = await run.stack_request("PUT", "s", "/preview", body)
    changes = shown["resource_changes"]
    assert [changes[kind] for kind in ("added", "updated", "replaced", "deleted")] == [[]] * 4
    body = {"template": template({"b": 2, "c": 3}), "files": {"inner.yaml": INNER}}
    shown = await run.stack_request("PUT", "s", "/preview?show_nested=true", body)
    changes = shown["resource_changes"]
    assert {one["path"] for one in changes["added"]} == {'web["c"]', 'n/one["c"]'}
    assert {one["path"] for one in changes["deleted"]} == {'web["a"]', 'n/one["a"]'}


async def test_a_key_is_moved_and_a_resource_imported(run: Program, world: World) -> None:
    await create(run)
    world.things["theirs"] = 7
    moved = template({"b": 2, "x": 1})
    moved["moved"] = [{"from": 'web["a"]', "to": 'web["x"]'}]
    moved["import"] = [{"resource": "got", "id": "theirs"}]
    moved["resources"]["got"] = thing(7)
    before = (await run.resources("s"))['web["a"]']["physical_resource_id"]
    await run.update("s", "PUT", template=moved, files={"inner.yaml": INNER})
    await until_complete(run, "s")
    found = await run.resources("s")
    assert found['web["x"]']["physical_resource_id"] == before
    assert found["got"]["physical_resource_id"] == "theirs"
    status, error = await expect_error(
        run,
        "PUT",
        "s",
        "",
        {"template": template({str(n): 1 for n in range(9)}), "files": {"inner.yaml": INNER}},
    )
    assert status == 400 and "rule failed: nine" in error["message"]
