"""Updates in all their forms, and what they leave alone."""

from engine.types.contract import Failed
from tests.support.changes import ended_again, ended_as, gone, put, thing
from tests.support.program import Json, Program
from tests.support.things import World

PARAMETERS = {
    "size": {"type": "number", "default": 1},
    "secret": {"type": "string", "hidden": True, "default": "s3cret-word"},
}


def sized(**more: Json) -> Json:
    """One resource, as large as the parameter says."""
    return {
        "heat_template_version": "2018-08-31",
        "parameters": PARAMETERS,
        "resources": {"a": thing({"get_param": "size"}, **more)},
    }


async def physical(run: Program, name: str) -> str:
    return str((await run.resources("s"))[name]["physical_resource_id"])


async def test_parameters_alone_and_back_to_the_default(run: Program, world: World) -> None:
    body = {"stack_name": "s", "template": sized(), "parameters": {"size": 5}}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await run.until_ended("s")
    await run.update("s", parameters={"size": 7})
    await ended_again(run, "s")
    assert list(world.things.values()) == [7]
    await run.update("s", clear_parameters=["size"])
    await ended_again(run, "s")
    assert list(world.things.values()) == [1]
    assert world.operations("a") == ["create", "update", "update"]


async def test_what_a_failed_create_was_begun_with_is_known_to_who_clears_it_away(
    run: Program, world: World
) -> None:
    world.will("create", "a", Failed("no", None, {"key": "k"}))
    await run.create("s", {"a": thing(7)})
    assert await run.until_ended("s") == "CREATE_FAILED"
    await run.at("DELETE", "s")
    await gone(run, "s")
    call = world.calls[-1]
    assert world.operations("a") == ["create", "delete"]
    assert call.properties["size"] == 7 and call.data == {"key": "k"}


async def test_metadata_alone_calls_no_operation(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(metadata={"role": "old"})})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(metadata={"role": "new"})})
    await ended_again(run, "s")
    said = await run.at("GET", "s", "/resources/a/metadata")
    assert said == {"metadata": {"role": "new"}} and world.operations("a") == ["create"]


async def test_a_change_of_type_replaces(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "user": thing({"get_resource": "a"})})
    await run.until_ended("s")
    other = {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}
    await put(run, "s", {"a": other, "user": thing({"get_resource": "a"})})
    await ended_again(run, "s")
    new = await physical(run, "a")
    assert world.done == [
        ("create", "a"), ("create", "user"), ("update", "user"), ("delete", "a"),
    ]  # fmt: skip
    assert list(world.things.values()) == [new]


async def test_another_name_without_a_move_is_another_resource(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await put(run, "s", {"b": thing()})
    await ended_again(run, "s")
    assert sorted(world.done[1:]) == [("create", "b"), ("delete", "a")]


async def test_an_attribute_that_changes_ripples_as_far_as_it_is_read(
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
    await ended_again(run, "s")
    assert world.done[5:] == [("update", "a"), ("update", "b"), ("update", "c")]
    graph = await run.at("GET", "s", "/graph")
    assert {one["resource_name"] for one in graph["nodes"]} == {"a", "b", "c"}


async def test_an_update_that_changes_nothing_has_no_nodes(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(), "b": thing(depends_on="a")})
    await ended_again(run, "s")
    assert (await run.at("GET", "s", "/graph"))["nodes"] == []
    assert (await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE"


async def test_of_many_updates_at_once_the_last_one_wins(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(0), "b": thing(0, depends_on="a")})
    await run.until_ended("s")
    for size in range(1, 9):
        await put(run, "s", {"a": thing(size), "b": thing(size, depends_on="a")})
    await ended_again(run, "s")
    assert list(world.things.values()) == [8, 8]
    said = await run.at("GET", "s", "/versions")
    assert said["traversals"][0]["state"] == "complete"
    assert said["versions"][0]["version"] == 9


async def test_an_update_after_a_rollback_takes_a_version_of_its_own(
    run: Program, world: World
) -> None:
    """Versions are never written twice: the stack points at an older one meanwhile."""
    await run.create("s", {"a": thing(1)}, disable_rollback=False)
    await run.until_ended("s")
    world.will("update", "a", Failed("no"))
    await put(run, "s", {"a": thing(2)})
    await ended_as(run, "s", "ROLLBACK_COMPLETE")
    await put(run, "s", {"a": thing(3)})
    await ended_again(run, "s")
    said = await run.at("GET", "s", "/versions")
    assert [(one["version"], one["current"]) for one in said["versions"]] == [
        (3, True), (2, False), (1, False),
    ]  # fmt: skip
    assert list(world.things.values()) == [3]


async def test_a_hook_before_a_check_tells_no_secret(run: Program, world: World) -> None:
    held = {"hooks": [{"at": "a", "on": "pre-check"}]}
    wanted = sized() | {"resources": {"a": thing({"get_param": "secret"})}}
    body = {"stack_name": "s", "template": wanted, "environment": held}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await run.until_ended("s")
    await run.act("s", "check")
    (hook,) = await run.waiting("s")
    _, shown = await run.call("GET", f"/hooks/{hook['id']}")
    assert shown["resource"]["properties"]["size"] == "******"
    assert "s3cret-word" not in str(shown)


async def test_a_preview_tells_no_secret(run: Program) -> None:
    wanted = sized() | {"resources": {"a": thing({"get_param": "secret"})}}
    body = {"stack_name": "s", "template": wanted}
    status, said = await run.call("POST", "/stacks/preview", body)
    assert status == 200 and "s3cret-word" not in str(said)
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await run.until_ended("s")
    changed = {"template": wanted, "parameters": {"secret": "0ther-word"}}
    said = await run.at("PUT", "s", "/preview", changed)
    (one,) = said["resource_changes"]["updated"]
    assert one["changes"]["size"] == {"from": "******", "to": "******"}
    assert "s3cret-word" not in str(said) and "0ther-word" not in str(said)
