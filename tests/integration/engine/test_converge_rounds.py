"""Converges with several rounds: the engine observes the stack after each, and starts the next one
if the stack still differs."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from engine.plan.drift import ConvergeRound
from engine.principal import principal_of_name
from engine.service.converge_rounds import ConvergeStart
from engine.service.requests.requests import StackRequest
from engine.store.access import trusts
from engine.store.fault_points import inject_fault
from engine.store.observer.converge_requests import PendingConverge
from engine.types.contract import Call, Failed
from engine.types.observation import Difference, Observation
from engine.words import ObservedState, ResourceId
from engine.work.observer.converge_rounds import ConvergeRounds
from tests.support.changes import LONG_WAIT, expect_error, put, thing
from tests.support.program import Json, Program, eventually
from tests.support.scripted_type import SharedThing, World

CHANGED = Observation(ObservedState.CHANGED, [Difference("size", 1, 7)])
UNKNOWN = Observation.unknown("no answer", "no answer")


class RelapsingThing(SharedThing):
    """A thing that changes again after its repair. relapses: how often, by name of the resource."""

    replaces_tainted = False

    def __init__(self, worlds: dict[str, World]) -> None:
        super().__init__(worlds)
        self.relapses = dict[str, int]()

    def observe(self, calls: Sequence[Call]) -> dict[ResourceId, Observation]:
        return {call.resource_id: self._look(call) for call in calls}

    def _look(self, call: Call) -> Observation:
        name = call.resource_name
        updates = self.world_of(call).operations(name).count("update")
        if updates <= self.relapses.get(name, -1):
            return CHANGED
        return super()._observe(call)


@pytest.fixture(scope="module")
def things_settings() -> Mapping[str, Any]:
    return {}


@pytest.fixture(scope="module")
def shared_type(worlds: dict[str, World]) -> RelapsingThing:
    return RelapsingThing(worlds)


@pytest.fixture
def relapses(shared_type: RelapsingThing) -> dict[str, int]:
    shared_type.relapses = {}
    return shared_type.relapses


@pytest.fixture
def run(things_in_own_project: Program, relapses: dict[str, int]) -> Program:
    return things_in_own_project


async def created(run: Program, resources: Json, **more: Json) -> None:
    await run.create("s", resources, **more)
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")


async def converge(run: Program, rounds: int, **more: Json) -> None:
    await run.stack_request("POST", "s", "/actions", {"converge": {"rounds": rounds, **more}})


async def status(run: Program) -> Json:
    return (await run.stack_request("GET", "s", "/drift"))["converge"]


async def until_state(run: Program, *states: str) -> Json:
    async def reached() -> Json:
        found = await status(run)
        return found if found and found["state"] in states else None

    return await eventually(reached)


async def history(run: Program, kind: str) -> list[Json]:
    events = (await run.stack_request("GET", "s", "/history"))["events"]
    return [one for one in events if one["type"] == f"headgate.stack.{kind}"]


async def test_rounds_follow_until_the_stack_does_not_differ(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, {"a": thing(), "b": thing()})
    assert await status(run) is None
    relapses["a"] = 2
    await converge(run, 5)
    assert await until_state(run, "complete", "incomplete", "ended") == {
        "round": 3, "rounds": 5, "state": "complete",
        "reason": "After round 3 of 5, nothing differs",
    }  # fmt: skip
    assert (world.operations("a").count("update"), world.operations("b")) == (3, ["create"])
    started = await history(run, "update.started")
    assert [one["data"]["converge"] for one in started] == [
        {"round": number, "rounds": 5} for number in (1, 2, 3)
    ]
    assert started[1]["data"]["stack"]["reason"] == (
        "Stack UPDATE started (round 2 of 5 of a converge)"
    )
    (ended,) = await history(run, "converge.completed")
    assert ended["data"]["converge"] == {"round": 3, "rounds": 5}
    assert await history(run, "converge.failed") == []
    # A later change of the stack is of no converge.
    await put(run, "s", {"a": thing(3), "b": thing()})
    assert await run.until_ended("s") == "UPDATE_COMPLETE" and await status(run) is None
    assert (await history(run, "update.started"))[-1]["data"]["converge"] is None


async def test_the_stack_says_what_still_differs_when_the_rounds_are_used_up(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, {"a": thing(), "b": thing()})
    relapses |= {"a": 100, "b": 100}
    await converge(run, 2, only=["a"])
    found = await until_state(run, "complete", "incomplete", "ended")
    assert (found["round"], found["state"]) == (2, "incomplete")
    reason = "After round 2 of 2, 1 resource still differs: a (changed)."
    assert found["reason"].startswith(reason)
    assert world.operations("a").count("update") == 2 and world.operations("b") == ["create"]
    (event,) = await history(run, "converge.failed")
    assert event["data"]["stack"]["reason"] == found["reason"]
    assert event["data"]["stack"]["status"] == "FAILED"
    # The status of the stack is that of its last update.
    assert (await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE"


async def test_an_update_with_a_new_template_has_rounds_too(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, {"a": thing()})
    relapses["a"] = 1
    await put(run, "s", {"a": thing(2), "b": thing()}, converge={"rounds": 3})
    assert (await until_state(run, "complete", "incomplete", "ended"))["round"] == 2
    assert world.operations("a").count("update") == 2
    assert [call.properties["size"] for call in world.calls if call.resource_name == "a"][1:] == [
        2, 2,
    ]  # fmt: skip
    assert world.operations("b") == ["create"]


async def test_an_unknown_state_ends_the_converge_and_is_named(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, {"a": thing(), "b": thing()})
    relapses["a"] = 0
    world.observed["b"] = UNKNOWN
    await converge(run, 3)
    found = await until_state(run, "complete", "incomplete", "ended")
    assert found["state"] == "incomplete"
    assert found["reason"] == "After round 1 of 3, 1 resource has no known state: b (unknown)"


@pytest.mark.parametrize("action", ["stop", "cancel_without_rollback"])
async def test_no_round_follows_an_update_that_is_stopped_or_cancelled(
    run: Program, world: World, relapses: dict[str, int], action: str
) -> None:
    await created(run, {"a": thing()})
    relapses["a"] = 100
    world.script("update", "a", LONG_WAIT)
    await converge(run, 3)
    await run.until_parked("s", 1)
    await run.act("s", action)
    found = await until_state(run, "ended")
    assert found["round"] == 1 and "The update of round 1 of 3 is " in found["reason"]
    assert world.operations("a").count("update") == 1


async def test_no_round_follows_a_failed_update_or_another_change(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, {"a": thing()})
    relapses["a"] = 100
    world.script("update", "a", Failed("no"))
    await converge(run, 3)
    assert "is failed" in (await until_state(run, "ended"))["reason"]
    world.script("update", "a", LONG_WAIT)
    await converge(run, 3)
    await run.until_parked("s", 1)
    await put(run, "s", {"a": thing(5)})
    assert await status(run) is None
    await run.stack_request("POST", "s", "/resources/a/signal", {})
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    await until_ended(run)
    assert len(await history(run, "update.started")) == 3


async def test_a_round_does_not_supersede_a_change_that_begins_before_it(
    run: Program, world: World, relapses: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change of a user, after the next round was decided."""
    await created(run, {"a": thing(), "b": thing()})
    relapses["a"] = 100
    world.script("update", "b", LONG_WAIT)
    start, tried = ConvergeStart.__call__, asyncio.Event()

    async def start_after_a_change(self: ConvergeStart, pending: PendingConverge) -> str:
        await put(run, "s", {"a": thing(), "b": thing(5)})
        await run.until_parked("s", 1)
        refused = await start(self, pending)
        tried.set()
        return refused

    monkeypatch.setattr(ConvergeStart, "__call__", start_after_a_change)
    await converge(run, 3)
    await tried.wait()
    assert (await run.stack("s"))["stack_status"] == "UPDATE_IN_PROGRESS"
    assert await status(run) is None
    await run.stack_request("POST", "s", "/resources/b/signal", {})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await until_ended(run)
    started = await history(run, "update.started")
    assert [one["data"]["converge"] for one in started] == [{"round": 1, "rounds": 3}, None]


async def until_ended(run: Program) -> None:
    """Wait until no converge is continued."""

    async def check() -> bool:
        pending = "select count(*) from converge_request where state in ('running', 'observing')"
        return bool(await run.database.pool.fetchval(pending) == 0)

    await eventually(check)


async def test_each_round_stops_at_the_breakpoints_of_the_request(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, {"a": thing()})
    relapses["a"] = 1
    await converge(run, 2, hooks={"add": ["a:pre-update"]})
    for _ in range(2):
        (hook,) = await run.waiting_hooks("s")
        assert hook["point"] == "pre-update"
        await run.signal(hook)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await until_state(run, "complete"))["round"] == 2


@pytest.mark.parametrize(
    "fault",
    [f"{point}:{times}:raise" for point in ("round.before", "round.after") for times in (1, 2, 3)]
    + ["accept.before:3:raise", "accept.after:3:raise"],
)
async def test_a_fault_between_rounds_loses_and_doubles_none(
    run: Program, world: World, relapses: dict[str, int], fault: str
) -> None:
    """accept: of the second round; the first two are of the request."""
    await created(run, {"a": thing()})
    relapses["a"] = 1
    with inject_fault(fault):
        await converge(run, 3)
        assert (await until_state(run, "complete", "incomplete", "ended"))["round"] == 2
    assert world.operations("a").count("update") == 2
    assert len(await history(run, "converge.completed")) == 1
    assert len(await history(run, "update.started")) == 2


async def test_processes_that_continue_the_same_converge_start_each_round_once(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, {"a": thing()})
    relapses["a"] = 3
    loops = [ConvergeRounds(run.database, run.engine.start_round) for _ in range(4)]
    await converge(run, 10)

    async def ended() -> bool:
        await asyncio.gather(*(one.continue_all() for one in loops))
        return bool((await status(run))["state"] == "complete")

    await eventually(ended)
    assert (await status(run))["round"] == 4 and world.operations("a").count("update") == 4
    assert len(await history(run, "update.started")) == 4
    assert len(await history(run, "converge.completed")) == 1


async def test_a_credential_is_kept_encrypted_until_the_last_round_has_ended(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, {"a": thing()})
    relapses["a"] = 2
    stack_id = UUID((await run.stack("s"))["id"])
    credential = trusts.TRUST + "of-the-requester"
    await run.engine.observations.complete(run.project, stack_id)
    request = StackRequest(
        existing=True, converge=True, round=ConvergeRound(1, 2), credential=credential,
        requested_by=principal_of_name("ann"),
    )  # fmt: skip
    pool = run.database.pool
    kept = "select encrypted, trust from converge_request"
    world.script("update", "a", LONG_WAIT)
    await run.engine.stacks.update(run.project, stack_id, request)
    (row,) = await pool.fetch(kept)
    assert b"of-the-requester" not in row["encrypted"]
    assert row["trust"] == trusts.trust_id(credential)
    # The trust is deleted in Keystone only when no converge may need it.
    stored = trusts.StoredTrust(trusts.row_id(credential), run.project, row["encrypted"])
    async with run.database.transaction() as conn:
        await trusts.store(conn, stored, kept=trusts.RETRY * 0)
    await pool.execute("delete from credential")
    async with run.database.connection() as conn:
        assert await trusts.take_unused(conn) == []
    await run.until_parked("s", 1)
    await run.stack_request("POST", "s", "/resources/a/signal", {})
    assert (await until_state(run, "complete"))["round"] == 2
    assert world.calls[-1].credential == credential
    assert [tuple(one) for one in await pool.fetch(kept)] == [(None, None)]
    started = await history(run, "update.started")
    assert [one["data"]["converge"]["round"] for one in started] == [1, 2]
    by = await run.stack_request("GET", "s", "/versions")
    assert {one["requested_by"] for one in by["traversals"][:2]} == {"ann"}


@pytest.mark.parametrize(
    ("options", "place", "text"),
    [
        ({"rounds": 0}, "converge.rounds", "must be an integer from 1 to 10"),
        ({"rounds": 11}, "converge.rounds", "must be an integer from 1 to 10"),
        ({"rounds": True}, "converge.rounds", "must be an integer from 1 to 10"),
        ({"rounds": "2"}, "converge.rounds", "must be an integer from 1 to 10"),
        ({"rounds": 2, "plan_digest": "0" * 64}, "converge.rounds", "of one round only"),
        ({"ronds": 2}, "converge.ronds", "is not a known key"),
    ],
)
async def test_wrong_rounds_are_refused(run: Program, options: Json, place: str, text: str) -> None:
    await created(run, {"a": thing()})
    code, error = await expect_error(run, "POST", "s", "/actions", {"converge": options})
    assert code == 400 and text in str(error), error
    assert place in str(error)
    if "plan_digest" not in options:
        code, error = await expect_error(run, "PATCH", "s", "", {"converge": options})
        assert code == 400 and text in str(error) and place in str(error)
