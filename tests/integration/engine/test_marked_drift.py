"""Resources that a converge has only marked, because it ended before an operation on them began."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.types.contract import Failed
from engine.types.observation import Difference, Observation
from engine.words import ObservedState
from tests.support.changes import observed, thing
from tests.support.program import Program
from tests.support.scripted_type import SharedThing, World

CHANGED = Observation(ObservedState.CHANGED, [Difference("size", 1, 9)])
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


async def test_an_operation_that_failed_is_repeated_and_is_no_drift(
    run: Program, world: World
) -> None:
    hook = await converge_to_hook(run, CHANGED, world)
    world.script("update", "a", Failed("no"))
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert await states(run) == {}
