"""Updates: parameters, metadata, types, names, attributes and versions."""

import json

import pytest

from engine.types.contract import Failed
from tests.support.changes import put, thing, until_complete, until_deleted, until_status
from tests.support.program import Json, Program, resource, template
from tests.support.scripted_type import World

PARAMETERS = {
    "size": {"type": "number", "default": 1},
    "secret": {"type": "string", "hidden": True, "default": "s3cret-word"},
}
USED = ("a", "b", "c")


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def sized(**more: Json) -> Json:
    """One resource whose size is the parameter."""
    return {
        "heat_template_version": "2018-08-31",
        "parameters": PARAMETERS,
        "resources": {"a": thing({"get_param": "size"}, **more)},
    }


async def physical(run: Program, name: str) -> str:
    return str((await run.resources("s"))[name]["physical_resource_id"])


async def test_an_update_of_parameters_alone_and_back_to_the_default(
    run: Program, world: World
) -> None:
    body = {"stack_name": "s", "template": sized(), "parameters": {"size": 5}}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await run.until_ended("s")
    await run.update("s", parameters={"size": 7})
    await until_complete(run, "s")
    assert list(world.things.values()) == [7]
    await run.update("s", clear_parameters=["size"])
    await until_complete(run, "s")
    assert list(world.things.values()) == [1]
    assert world.operations("a") == ["create", "update", "update"]


async def test_an_operation_gets_the_metadata_of_its_resource(run: Program, world: World) -> None:
    template = sized(metadata={"a": {"get_param": "size"}, "b": ["c"]})
    body = {"stack_name": "s", "template": template, "parameters": {"size": 5}}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await run.until_ended("s")
    await run.update("s", parameters={"size": 7})
    await until_complete(run, "s")
    found = [call.metadata for call in world.calls]
    assert found == [{"a": 5, "b": ["c"]}, {"a": 7, "b": ["c"]}]


async def test_a_delete_after_a_failed_create_gets_the_properties_and_data_of_the_create(
    run: Program, world: World
) -> None:
    world.script("create", "a", Failed("no", None, {"key": "k"}))
    await run.create("s", {"a": thing(7)})
    assert await run.until_ended("s") == "CREATE_FAILED"
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    call = world.calls[-1]
    assert world.operations("a") == ["create", "delete"]
    assert call.properties["size"] == 7 and call.data == {"key": "k"}


async def test_a_replacement_gets_the_data_of_the_failed_resource_that_it_replaces(
    run: Program, world: World
) -> None:
    world.script("create", "a", Failed("too late", None, {"read": ["m1"]}))
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_FAILED"
    await put(run, "s", {"a": thing()})
    await until_complete(run, "s")
    first, again = (call for call in world.calls if call.previous is None)
    assert (first.replaced_data, again.replaced_data) == ({}, {"read": ["m1"]})
    assert again.data == {}


async def test_what_a_failed_replacement_may_have_made_is_deleted_by_the_next_update(
    run: Program, world: World
) -> None:
    """Its create has no physical ID, but data by which the delete finds what it has made."""
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    old = await physical(run, "a")
    world.script("create", "a", Failed("no answer", None, {"lost": "k"}))
    await put(run, "s", {"a": thing(place="there")})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert await physical(run, "a") == old and [*world.things] == [old]
    await put(run, "s", {"a": thing(place="there")})
    await until_complete(run, "s")
    assert world.operations("a") == ["create", "create", "create", "delete", "delete"]
    deletes = {call.physical_id: call.data for call in world.calls[-2:]}
    assert deletes == {None: {"lost": "k"}, old: {"mine": old}}
    assert [*world.things] == [await physical(run, "a")] != [old]


async def test_an_update_of_metadata_alone_calls_no_operation(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(metadata={"role": "old"})})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(metadata={"role": "new"})})
    await until_complete(run, "s")
    metadata = await run.stack_request("GET", "s", "/resources/a/metadata")
    assert metadata == {"metadata": {"role": "new"}} and world.operations("a") == ["create"]


async def test_a_change_of_type_is_a_replacement(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "user": thing({"get_resource": "a"})})
    await run.until_ended("s")
    other = {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}
    await put(run, "s", {"a": other, "user": thing({"get_resource": "a"})})
    await until_complete(run, "s")
    new = await physical(run, "a")
    assert world.done == [
        ("create", "a"), ("create", "user"), ("update", "user"), ("delete", "a"),
    ]  # fmt: skip
    assert list(world.things.values()) == [new]


async def test_a_renamed_resource_without_a_move_is_a_new_one(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await put(run, "s", {"b": thing()})
    await until_complete(run, "s")
    assert sorted(world.done[1:]) == [("create", "b"), ("delete", "a")]


async def test_a_changed_attribute_updates_its_readers_transitively(
    run: Program, world: World
) -> None:
    def chain(size: int) -> Json:
        return {
            "a": thing(size),
            "b": thing({"get_attr": ["a", "size"]}),
            "c": thing({"get_attr": ["b", "size"]}),
            "apart": thing(1),
            "later": thing(1, depends_on="a"),
        }

    await run.create("s", chain(1))
    await run.until_ended("s")
    await put(run, "s", chain(2))
    await until_complete(run, "s")
    assert world.done[5:] == [("update", "a"), ("update", "b"), ("update", "c")]
    graph = await run.stack_request("GET", "s", "/graph")
    assert {one["resource_name"] for one in graph["nodes"]} == {"a", "b", "c"}


async def test_an_update_that_changes_nothing_has_no_nodes(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(), "b": thing(depends_on="a")})
    await until_complete(run, "s")
    assert (await run.stack_request("GET", "s", "/graph"))["nodes"] == []
    assert (await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE"


async def test_the_last_of_many_concurrent_updates_wins(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(0), "b": thing(0, depends_on="a")})
    await run.until_ended("s")
    for size in range(1, 9):
        await put(run, "s", {"a": thing(size), "b": thing(size, depends_on="a")})
    await until_complete(run, "s")
    assert list(world.things.values()) == [8, 8]
    versions = await run.stack_request("GET", "s", "/versions")
    assert versions["traversals"][0]["state"] == "complete"
    assert versions["versions"][0]["version"] == 9


async def test_an_update_after_a_rollback_has_a_new_version(run: Program, world: World) -> None:
    """Stored versions never change, and the stack's current version is an older one after a
    rollback.
    """
    await run.create("s", {"a": thing(1)}, disable_rollback=False)
    await run.until_ended("s")
    world.script("update", "a", Failed("no"))
    await put(run, "s", {"a": thing(2)})
    await until_status(run, "s", "ROLLBACK_COMPLETE")
    await put(run, "s", {"a": thing(3)})
    await until_complete(run, "s")
    versions = await run.stack_request("GET", "s", "/versions")
    assert [(one["version"], one["current"]) for one in versions["versions"]] == [
        (3, True), (2, False), (1, False),
    ]  # fmt: skip
    assert list(world.things.values()) == [3]


async def test_a_hook_before_a_check_masks_secrets(run: Program, world: World) -> None:
    breakpoints = {"hooks": [{"at": "a", "on": "pre-check"}]}
    wanted = sized() | {"resources": {"a": thing({"get_param": "secret"})}}
    body = {"stack_name": "s", "template": wanted, "environment": breakpoints}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await run.until_ended("s")
    await run.act("s", "check")
    (hook,) = await run.waiting_hooks("s")
    _, response = await run.call("GET", f"/hooks/{hook['id']}")
    assert response["resource"]["properties"]["size"] == "******"
    assert "s3cret-word" not in str(response)


async def test_a_dry_run_masks_secrets(run: Program) -> None:
    wanted = sized() | {"resources": {"a": thing({"get_param": "secret"})}}
    body = {"stack_name": "s", "template": wanted}
    status, response = await run.call("POST", "/stacks/preview", body)
    assert status == 200 and "s3cret-word" not in str(response)
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await run.until_ended("s")
    changed = {"template": wanted, "parameters": {"secret": "0ther-word"}}
    response = await run.stack_request("PUT", "s", "/preview", changed)
    (one,) = response["resource_changes"]["updated"]
    assert one["changes"]["size"] == {"from": "******", "to": "******"}
    assert "s3cret-word" not in str(response) and "0ther-word" not in str(response)


async def test_a_dry_run_shows_what_is_public_beside_secrets(run: Program) -> None:
    parameters = {"secret": {"type": "string", "hidden": True}, "label": {"type": "string"}}
    given = parameters | {name: {"type": "string"} for name in ("joined", "chosen")}
    files = {"app.yaml": json.dumps(template({"r": resource()}, parameters=given))}
    used = {
        **{name: {"get_param": name} for name in parameters},
        "joined": {"list_join": ["-", [{"get_param": "secret"}, {"get_attr": ["r", "output"]}]]},
        "chosen": {"get_param": ["words", {"get_param": "secret"}]},
    }
    words = {"s3cret-word": "first choice", "0ther-word": "second choice"}
    wanted = template(
        {"r": resource("known"), "app": {"type": "app.yaml", "properties": used}},
        parameters=parameters | {"words": {"type": "json", "default": words}},
    )
    body: Json = {"template": wanted, "files": files}
    before = {"secret": "s3cret-word", "label": "one"}
    created = {"stack_name": "s", **body, "parameters": before}
    assert (await run.call("POST", "/stacks", created))[0] == 201
    await run.until_ended("s")
    after = {"secret": "0ther-word", "label": "two"}
    response = await run.stack_request("PUT", "s", "/preview", {**body, "parameters": after})
    (one,) = response["resource_changes"]["updated"]
    masked = {"from": "******", "to": "******"}
    assert one["changes"] == {
        "label": {"from": "one", "to": "two"}, "secret": masked, "joined": masked, "chosen": masked,
    }  # fmt: skip
    assert "s3cret-word" not in str(response) and "0ther-word" not in str(response)
    assert "choice" not in str(response["resource_changes"])


async def test_dependents_of_resources_that_are_replaced_together_depend_on_both_replacements(
    run: Program, world: World
) -> None:
    """Both old resources are deleted in one transaction, and their dependent is not in the graph."""

    def resources(place: str) -> Json:
        used = {name: thing(place=place) for name in USED}
        return used | {"user": thing(depends_on=sorted(USED))}

    await run.create("s", resources("here"))
    await run.until_ended("s")
    await put(run, "s", resources("there"))
    await until_complete(run, "s")
    assert world.operations("user") == ["create"]
    for name in USED:
        shown = await run.stack_request("GET", "s", f"/resources/{name}")
        assert shown["resource"]["required_by"] == ["user"], name
    world.done.clear()
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    assert world.done[0] == ("delete", "user")


async def test_names_that_a_request_clears_and_that_do_not_exist_are_warnings(run: Program) -> None:
    body = {"stack_name": "s", "template": sized(), "parameters": {"size": 5}}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await run.until_ended("s")
    cleared = {"clear_parameters": ["sise", "size"], "hooks": {"clear": ["b:pre-update", "a"]}}
    document = await run.stack_request("PATCH", "s", "/preview", cleared)
    assert [(one["code"], one["path"], one["message"]) for one in document["warnings"]] == [
        ("NoEffect", "clear_parameters",
         '"sise" is not a parameter of the template. Did you mean "size"?'),
        ("UnmatchedPattern", "hooks.clear[0]",
         '"b" matches no resource, so no breakpoint is skipped. Resources are: a.'),
    ]  # fmt: skip
    path = f"/stacks/s/{(await run.stack('s'))['id']}"
    status, document = await run.call("PATCH", path, {"hooks": {"clear": ["a:pre-updat"]}})
    assert (status, document["error"]["place"]) == (400, "hooks.clear[0]")
    assert document["error"]["remedy"] == 'Did you mean "pre-update"?'
