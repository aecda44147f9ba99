"""Resources that a converge has only marked, because it ended before an operation on them began."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from engine.types.contract import Failed
from engine.types.observation import Difference, Observation
from engine.words import ObservedState
from tests.support.changes import observed, put, thing
from tests.support.program import Program
from tests.support.scripted_type import SharedThing, World

CHANGED = Observation(ObservedState.CHANGED, [Difference("size", 1, 9)])
Write = Callable[[Program], Awaitable[None]]
SLOW = Observation(ObservedState.DEGRADED, reason="it is slow")


class UpdatedThing(SharedThing):
    replaces_tainted = False


@pytest.fixture(scope="module")
def things_settings() -> Mapping[str, Any]:
    return {}


@pytest.fixture(scope="module")
def shared_type(worlds: dict[str, World]) -> UpdatedThing:
    return UpdatedThing(worlds)


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def states(run: Program) -> dict[str, str]:
    drift = await observed(run)
    return {one["resource_name"]: one["state"] for one in drift["resources"]}


async def converge_to_hook(run: Program, found: Observation, world: World) -> Any:
    """A converge that waits before its only operation; return its hook."""
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    world.observed["a"] = found
    assert await states(run) == {"a": str(found.state)}
    await run.update("s", converge=True, hooks={"add": ["a:pre-update"]})
    (hook,) = await run.waiting_hooks("s")
    return hook


@pytest.mark.parametrize("found", [CHANGED, SLOW], ids=["changed", "degraded"])
@pytest.mark.parametrize("end", ["stop", "cancel_without_rollback", "reject"])
async def test_a_converge_that_ends_early_leaves_the_drift_to_the_next(
    run: Program, world: World, found: Observation, end: str
) -> None:
    hook = await converge_to_hook(run, found, world)
    if end == "reject":
        await run.signal(hook, "reject")
    else:
        await run.act("s", end)
    assert (await run.until_ended("s")) in ("UPDATE_FAILED", "UPDATE_STOPPED")
    assert "update" not in world.operations("a")
    for _ in range(2):
        assert await states(run) == {"a": str(found.state)}
    await run.update("s", converge=True, hooks={"add": ["a:pre-update"]})
    (hook,) = await run.waiting_hooks("s")
    await run.signal(hook)
    del world.observed["a"]
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("a").count("update") == 1
    assert await states(run) == {}


async def rejected(run: Program, world: World, found: Observation, end: str = "reject") -> None:
    """A converge of `a` that ended before its operation; the stack has `b`, too."""
    await run.create("s", {"a": thing(), "b": thing()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    world.observed["a"] = found
    assert await states(run) == {"a": str(found.state)}
    await run.update("s", converge=True, hooks={"add": ["a:pre-update"]})
    (hook,) = await run.waiting_hooks("s")
    if end == "reject":
        await run.signal(hook, "reject")
    else:
        await run.act("s", end)
    assert (await run.until_ended("s")) in ("UPDATE_FAILED", "UPDATE_STOPPED")


async def protect(run: Program) -> None:
    """Protect `a`, or end its protection."""
    path = f"/stacks/s/{(await run.stack('s'))['id']}/resources/a"
    _, found = await run.call("GET", path)
    is_protected = found["resource"]["protected"]
    status, found = await run.call("PATCH", path, {"protect": not is_protected})
    assert status == 200, found


async def update_other(run: Program) -> None:
    await put(run, "s", {"a": thing(), "b": thing(2)}, only=["b"])
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


@pytest.mark.parametrize("write", [protect, update_other])
@pytest.mark.parametrize("found", [CHANGED, SLOW], ids=["changed", "degraded"])
@pytest.mark.parametrize("end", ["stop", "reject"])
async def test_another_write_of_a_marked_resource_leaves_its_drift_listed(
    run: Program, world: World, found: Observation, end: str, write: Write
) -> None:
    await rejected(run, world, found, end)
    for _ in range(2):
        await write(run)
        assert await states(run) == {"a": str(found.state)}
    assert "update" not in world.operations("a")
    await run.update("s", converge=True, hooks={"clear": ["*"]})
    del world.observed["a"]
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("a").count("update") == 1
    assert await states(run) == {}


@pytest.mark.parametrize("write", [protect, update_other])
async def test_a_write_after_an_operation_that_failed_lists_no_drift(
    run: Program, world: World, write: Write
) -> None:
    """The recorded state is not certain: the operation has begun."""
    await rejected(run, world, CHANGED)
    world.script("update", "a", Failed("no"))
    await run.update("s", hooks={"clear": ["*"]})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert await states(run) == {}
    await write(run)
    assert await states(run) == {}


async def test_an_operation_that_failed_is_repeated_and_is_no_drift(
    run: Program, world: World
) -> None:
    hook = await converge_to_hook(run, CHANGED, world)
    world.script("update", "a", Failed("no"))
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert await states(run) == {}


#: A trigger that refuses to store the success of an update of `a`.
REFUSE = """
create function refuse_success() returns trigger language plpgsql as $$
begin
    if new.name = 'a' and new.action = 'UPDATE' and new.status = 'COMPLETE' then
        raise program_limit_exceeded;
    end if;
    return new;
end $$;
create trigger refuse_success before update on resource
    for each row execute function refuse_success();
"""


async def test_an_operation_whose_result_cannot_be_stored_has_begun(
    run: Program, world: World
) -> None:
    """It can have changed the resource, so differences are no drift."""
    hook = await converge_to_hook(run, CHANGED, world)
    async with run.database.connection() as conn:
        await conn.execute(REFUSE)
        try:
            await run.signal(hook)
            assert await run.until_ended("s") == "UPDATE_FAILED"
        finally:
            await conn.execute("drop function refuse_success cascade")
    assert world.operations("a").count("update") > 0
    (failed,) = (await run.resources("s")).values()
    assert "internal error" in failed["resource_status_reason"]
    assert await states(run) == {}
