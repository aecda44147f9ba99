"""Types without `observe` that are observed by their check."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from engine import request_budget
from engine.types.contract import Call, Done, Failed, ResourceType, Wait
from engine.work.observer.observer import Observer
from engine.work.observer.provider_endpoints import ProviderEndpoints, RequestRates
from tests.integration.conftest import QUICK
from tests.support.changes import thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Http, Json, Program
from tests.support.scripted_type import SharedThing, World

ENDPOINT = "http://things.example"
#: Requests per minute: one more in 10 minutes, so that the time that a test takes does not matter.
SLOW = 0.1


class CheckedThing(SharedThing):
    check_observes = True
    observation_key = ResourceType.observation_key  # type: ignore[assignment]
    observe = ResourceType.observe  # type: ignore[assignment]

    def observation_endpoint(self, call: Call) -> str:
        return ENDPOINT


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return QUICK


@pytest.fixture(scope="module")
def shared_type(worlds: dict[str, World]) -> CheckedThing:
    return CheckedThing(worlds)


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    """A program whose observer does not run, so that tests run their own."""
    return things_in_own_project


def observer_of(run: Program, per_minute: float = 0.0) -> Observer:
    endpoints = ProviderEndpoints(run.database, RequestRates(per_minute), lambda: 0.0)
    return Observer(run.database, paused_observer(run)[0], endpoints=endpoints)


async def observe(run: Program, per_minute: float = 0.0) -> Json:
    await run.act("s", "observe")
    await observer_of(run, per_minute).observe_due()
    return await run.stack_request("GET", "s", "/drift")


async def create(run: Program, *names: str) -> None:
    await run.create("s", {name: thing() for name in names})
    assert await run.until_ended("s") == "CREATE_COMPLETE"


def found(drift: Json) -> dict[str, tuple[str, str]]:
    return {one["resource_name"]: (one["state"], one["reason"]) for one in drift["resources"]}


async def test_each_outcome_of_a_check_stands_for_a_state(run: Program, world: World) -> None:
    await create(run, *"abcdef")
    world.script("check", "b", Failed("it is slow"))
    world.script("check", "c", Wait(datetime(2100, 1, 1, tzinfo=UTC), {}, "it is starting"))
    world.script("check", "d", Failed("it is busy", retry=True))
    world.script("check", "e", "nonsense")  # type: ignore[arg-type]
    drift = await observe(run)
    assert found(drift) == {
        "b": ("degraded", "it is slow"),
        "c": ("unknown", "it is starting"),
        "d": ("unknown", "it is busy"),
        "e": ("unknown", "the check of the resource did not end"),
    }
    assert (drift["observable_resources"], drift["unobservable_resources"]) == (6, 0)
    assert all(one["since"] for one in drift["resources"])
    assert found(await observe(run)) == {}  # the checks succeed again


async def test_an_error_of_a_check_is_unknown(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(run, "a")

    def fail(self: CheckedThing, call: Call) -> Done:
        raise ValueError("a secret text")

    monkeypatch.setattr(CheckedThing, "check", fail)
    state, reason = found(await observe(run))["a"]
    assert state == "unknown" and "secret" not in reason


async def test_a_degraded_resource_is_repaired(run: Program, world: World) -> None:
    await create(run, "a")
    world.script("check", "a", Failed("it is slow"), Failed("it is slow"))
    assert set(found(await observe(run))) == {"a"}

    async def keep_observing() -> None:
        while True:
            await observer_of(run).observe_due()
            await asyncio.sleep(0.01)

    task = asyncio.create_task(keep_observing())
    try:
        await run.act("s", "converge")
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
    finally:
        task.cancel()
    assert found(await observe(run)) == {}
    assert world.operations("a").count("create") == 2


async def test_each_check_is_one_request_of_the_budget_and_of_the_usage(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_budget, "BURST", 2 * 60 / SLOW)
    await create(run, "a", "b", "c")
    drift = await observe(run, SLOW)
    assert [operation for operation, _ in world.done].count("check") == 2
    assert [one["resources"] for one in drift["paused"]] == [1]
    _, usage = await Http(run.session, run.url, run.project).call("GET", "/usage")
    assert (usage["usage"][0]["provider_requests"], usage["usage"][0]["observations"]) == (2, 2)


async def test_an_endpoint_whose_checks_all_fail_is_left_alone(run: Program, world: World) -> None:
    await create(run, "a", "b")
    for name in "ab":
        world.script("check", name, Failed("the service is away", retry=True))
    await observe(run)
    paused = (await run.stack_request("GET", "s", "/why"))["unknown"]
    assert [(sorted(one["resources"]), one["reason"]) for one in paused] == [
        (["a", "b"], "the service is away")
    ]
    _, usage = await Http(run.session, run.url, run.project).call("GET", "/usage")
    assert usage["endpoints"][0]["endpoint"] == ENDPOINT


async def test_a_type_that_does_not_declare_it_cannot_be_observed(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(run, "a")
    monkeypatch.setattr(CheckedThing, "check_observes", False)
    drift = await observe(run)
    assert (drift["observable_resources"], drift["unobservable_resources"]) == (0, 1)
    assert "check" not in world.operations("a")
    shown = await run.stack_request("GET", "s", "/resources/a/inspect")
    assert shown["observed"] is None
