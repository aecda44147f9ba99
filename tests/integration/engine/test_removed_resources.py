"""Resources that an update removes: deleted after everything else has changed, and left by an update
that fails."""

from collections.abc import AsyncIterator

import pytest

from engine.types.contract import Failed
from tests.support.changes import put, thing
from tests.support.program import Json, Program, program, resource
from tests.support.scripted_type import World

#: Enough changed and removed resources for a barrier.
MANY = 40


@pytest.fixture
async def plain(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url) as opened:
        yield opened


def failing() -> Json:
    return {"type": "OS::Heat::TestResource", "properties": {"fail": True}}


async def names(run: Program, name: str = "s") -> set[str]:
    return set(await run.resources(name))


@pytest.mark.parametrize("tie", [{}, {"depends_on": "a"}], ids=["no edge", "depends_on"])
async def test_a_failed_update_leaves_the_resources_that_it_would_remove(
    plain: Program, tie: Json
) -> None:
    await plain.create("s", {"a": resource(), "b": resource(**tie)})
    assert await plain.until_ended("s") == "CREATE_COMPLETE"
    await put(plain, "s", {"b": resource(), "c": failing()})
    assert await plain.until_ended("s") == "UPDATE_FAILED"
    found = await plain.resources("s")
    assert found["a"]["resource_status"] == "CREATE_COMPLETE"
    assert found["a"]["physical_resource_id"]
    await put(plain, "s", {"b": resource()})
    assert await plain.until_ended("s") == "UPDATE_COMPLETE"
    assert await names(plain) == {"b"}


async def test_a_removed_resource_is_deleted_after_all_changes(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing()})
    await run.until_ended("s")
    await put(run, "s", {"b": thing(2), "c": thing(), "d": thing(depends_on="c")})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert world.operations("a") == ["create", "delete"]
    assert [call.resource_name for call in world.calls][-1] == "a"


async def test_a_hook_before_a_delete_opens_after_all_changes(run: Program, world: World) -> None:
    """A reviewer sees a delete when nothing else of the update can fail."""
    hook = {"hooks": [{"at": "a", "on": "pre-delete"}]}
    await run.create("s", {"a": thing(), "b": thing()}, environment=hook)
    await run.until_ended("s")
    world.script("update", "b", Failed("broken"))
    await put(run, "s", {"b": thing(2)}, environment=hook)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert (await run.call("GET", "/hooks?state=waiting&stack=s"))[1]["hooks"] == []
    await put(run, "s", {"b": thing(2)}, environment=hook)
    (waiting,) = await run.waiting_hooks("s")
    assert waiting["point"] == "pre-delete"
    await run.signal(waiting)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_many_removed_resources_wait_for_many_changes(plain: Program) -> None:
    before = {f"r{n}": resource() for n in range(MANY)} | {f"c{n}": resource() for n in range(MANY)}
    after: Json = {f"c{n}": resource("new") for n in range(MANY)}
    await plain.create("s", before)
    assert await plain.until_ended("s") == "CREATE_COMPLETE"
    await put(plain, "s", after | {"c0": failing()})
    assert await plain.until_ended("s") == "UPDATE_FAILED"
    assert await names(plain) == before.keys()
    await put(plain, "s", after)
    assert await plain.until_ended("s") == "UPDATE_COMPLETE"
    assert await names(plain) == after.keys()


async def test_the_barrier_is_no_gate_of_the_stack(plain: Program) -> None:
    """A breakpoint of the whole stack opens once, after all deletes."""
    before = {f"r{n}": resource() for n in range(MANY)} | {f"c{n}": resource() for n in range(MANY)}
    after: Json = {f"c{n}": resource("new") for n in range(MANY)}
    environment = {"hooks": [{"on": "post-stack-update"}]}
    await plain.create("s", before)
    await plain.until_ended("s")
    await put(plain, "s", after, environment=environment)
    (waiting,) = await plain.waiting_hooks("s")
    assert waiting["point"] == "post-stack-update"
    assert await names(plain) == after.keys()
    await plain.signal(waiting)
    assert await plain.until_ended("s") == "UPDATE_COMPLETE"
