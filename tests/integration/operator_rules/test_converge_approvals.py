"""Hooks of operator rules on a converge: who may answer them, and how a converge that stopped goes
on."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import pytest

from engine.types.observation import Difference, Observation
from engine.words import ObservedState
from tests.support import forks
from tests.support.changes import expire_hook, observed, thing
from tests.support.principals import PrincipalClient
from tests.support.program import Json, Program, eventually, identity_headers
from tests.support.scripted_type import SharedThing, World

CHANGED = Observation(ObservedState.CHANGED, [Difference("size", 1, 9)])
SLOW = Observation(ObservedState.DEGRADED, reason="it is slow")
#: Two of ann, ben and eve answer, but not the principal that requested the change.
APPROVED = {
    "on": ["pre-update"], "at": "guarded", "approvals": 2,
    "answer_by": ["user:ann", "user:ben", "user:eve"], "exclude": "requester",
}  # fmt: skip
#: The stack stops if the hook is not answered.
EXPIRES = {"on": ["pre-update"], "at": "brief", "timeout": "1h", "on_timeout": "stop"}


class UpdatedThing(SharedThing):
    """It relapses as often as `relapses` says, by name of the resource."""

    replaces_tainted = False

    def __init__(self, worlds: dict[str, World]) -> None:
        super().__init__(worlds)
        self.relapses = dict[str, int]()

    def _observe(self, call: Any) -> Observation:
        name = call.resource_name
        updates = self.world_of(call).operations(name).count("update")
        relapsed = updates <= self.relapses.get(name, -1)
        return CHANGED if relapsed else super()._observe(call)


@pytest.fixture(scope="module")
def things_settings() -> Mapping[str, Any]:
    return {"hooks.rules": [APPROVED, EXPIRES], "engine.poll": "1s"}


@pytest.fixture(scope="module")
def shared_type(worlds: dict[str, World]) -> UpdatedThing:
    return UpdatedThing(worlds)


@pytest.fixture
def relapses(shared_type: UpdatedThing) -> dict[str, int]:
    shared_type.relapses = {}
    return shared_type.relapses


@pytest.fixture
def run(things_in_own_project: Program, relapses: dict[str, int]) -> Program:
    return things_in_own_project


def user(run: Program, name: str) -> PrincipalClient:
    return PrincipalClient(run, identity_headers(name, "author,approver,reader"), run.project)


async def answer(
    run: Program, hook: Json, name: str, decision: str = "continue", **more: Json
) -> tuple[int, str]:
    """The status, and the type of the error, or the state of the hook."""
    body = {"decision": decision, **more}
    status, found = await user(run, name).call("POST", f"/hooks/{hook['id']}/signal", body)
    return status, found["error"]["type"] if status >= 400 else ""


async def state_of(run: Program, hook: Json) -> str:
    return str((await run.call("GET", f"/hooks/{hook['id']}"))[1]["state"])


async def created(run: Program, world: World, name: str = "guarded") -> None:
    """A stack of carl, and its resource that differs."""
    await user(run, "carl").create("s", {name: thing()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def drift_of(run: Program) -> dict[str, str]:
    return {one["resource_name"]: one["state"] for one in (await observed(run))["resources"]}


async def converge(client: PrincipalClient, **options: Json) -> None:
    await client.stack_request("POST", "s", "/actions", {"converge": options or None})


@pytest.mark.parametrize("state", ["changed", "degraded", "missing"])
async def test_only_those_whom_the_rule_names_approve_a_converge_and_not_its_requester(
    run: Program, world: World, state: str
) -> None:
    await created(run, world)
    if state == "missing":
        world.things.clear()
    else:
        world.observed["guarded"] = CHANGED if state == "changed" else SLOW
    assert await drift_of(run) == {"guarded": state}
    before = len(world.done)
    await converge(user(run, "eve"))
    (hook,) = await run.waiting_hooks("s")
    assert await answer(run, hook, "eve") == (403, "MayNotAnswer")  # the requester
    assert await answer(run, hook, "dora") == (403, "MayNotAnswer")  # not named
    assert await answer(run, hook, "ann") == (200, "")
    assert (await answer(run, hook, "ann"))[0] == 200  # counts once
    assert await state_of(run, hook) == "waiting" and len(world.done) == before
    assert await answer(run, hook, "ben") == (200, "")
    world.observed.clear()
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    repair = ["create", "delete"] if state == "missing" else ["update"]
    assert world.done[before:] == [(one, "guarded") for one in repair]
    assert await drift_of(run) == {}
    _, log = await run.call("GET", f"/hooks/{hook['id']}/decisions")
    by = [(one["by"], one["kind"]) for one in log["decisions"]]
    assert by == [
        ("eve", "refused"), ("dora", "refused"), ("ann", "continue"), ("ben", "continue"),
    ]  # fmt: skip


async def test_the_author_of_the_template_may_approve_a_converge_of_another(
    run: Program, world: World
) -> None:
    """The converge applies no other template than the stack has."""
    await user(run, "ann").create("s", {"guarded": thing()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    world.observed["guarded"] = CHANGED
    assert await drift_of(run) == {"guarded": "changed"}
    await converge(user(run, "eve"))
    (hook,) = await run.waiting_hooks("s")
    for approver in ("ann", "ben"):
        assert await answer(run, hook, approver) == (200, "")
    del world.observed["guarded"]
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_each_round_of_a_converge_needs_its_own_approvals_and_excludes_its_requester(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, world)
    relapses["guarded"] = 1
    assert await drift_of(run) == {"guarded": "changed"}
    await converge(user(run, "eve"), rounds=3)
    for number in (1, 2):

        async def waiting(number: int = number) -> Json:
            _, found = await run.call("GET", "/hooks?state=waiting&stack=s")
            drift = await run.stack_request("GET", "s", "/drift")
            current = drift["converge"]["round"] == number
            return found["hooks"] if current and found["hooks"] else None

        (hook,) = await eventually(waiting)
        assert world.operations("guarded").count("update") == number - 1
        assert await answer(run, hook, "eve") == (403, "MayNotAnswer")
        for approver in ("ann", "ben"):
            assert await answer(run, hook, approver) == (200, "")

    async def ended() -> bool:
        drift = await run.stack_request("GET", "s", "/drift")
        return bool(drift["converge"]["state"] == "complete")

    await eventually(ended)
    assert world.operations("guarded").count("update") == 2


async def test_a_rejected_converge_leaves_the_drift_to_the_next_which_needs_approvals_again(
    run: Program, world: World
) -> None:
    await created(run, world)
    world.observed["guarded"] = CHANGED
    assert await drift_of(run) == {"guarded": "changed"}
    await converge(user(run, "eve"))
    (hook,) = await run.waiting_hooks("s")
    assert await answer(run, hook, "ann") == (200, "")
    assert await answer(run, hook, "ben", "reject", reason="not now") == (200, "")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert "update" not in world.operations("guarded")
    assert await drift_of(run) == {"guarded": "changed"}
    await converge(user(run, "ben"))
    (hook,) = await run.waiting_hooks("s")
    assert await answer(run, hook, "ben") == (403, "MayNotAnswer")
    assert await answer(run, hook, "ann") == (200, "")
    assert await state_of(run, hook) == "waiting"  # the approval of the converge before is void
    assert await answer(run, hook, "eve") == (200, "")
    del world.observed["guarded"]
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def stopped_converge(run: Program, world: World, state: str) -> None:
    """A converge that ended because its hook was not answered in time."""
    await created(run, world, "brief")
    world.observed["brief"] = CHANGED if state == "changed" else SLOW
    assert await drift_of(run) == {"brief": state}
    await converge(user(run, "eve"))
    await expire_hook(run)
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    assert "update" not in world.operations("brief")
    stack = await run.stack("s")
    assert stack["stack_status_reason"].endswith("update the stack to continue")
    assert await drift_of(run) == {"brief": state}


async def headgate(run: Program, *arguments: str) -> tuple[int, str]:
    command = (*arguments, "--url", run.url, "--project", run.project)
    done = await asyncio.to_thread(forks.run, command, dict(os.environ))
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("state", ["changed", "degraded"])
async def test_a_converge_that_stopped_is_resumed_by_the_name_of_the_stack(
    run: Program, world: World, state: str
) -> None:
    """The hook opens again, and its answer repairs the resource once."""
    await stopped_converge(run, world, state)
    code, text = await headgate(run, "stack", "resume", "s")
    assert code == 0, text
    (hook,) = await run.waiting_hooks("s")
    assert hook["point"] == "pre-update" and "update" not in world.operations("brief")
    del world.observed["brief"]
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("brief").count("update") == 1
    assert await drift_of(run) == {}


async def test_a_converge_that_stopped_is_repeated_by_another_converge(
    run: Program, world: World
) -> None:
    await stopped_converge(run, world, "changed")
    code, text = await headgate(run, "stack", "converge", "s", "--yes")
    assert code == 0, text
    (hook,) = await run.waiting_hooks("s")
    del world.observed["brief"]
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("brief").count("update") == 1
    assert await drift_of(run) == {}


async def test_no_further_round_starts_after_a_round_that_stopped_also_if_it_is_resumed(
    run: Program, world: World, relapses: dict[str, int]
) -> None:
    await created(run, world, "brief")
    relapses["brief"] = 100
    assert await drift_of(run) == {"brief": "changed"}
    await converge(user(run, "eve"), rounds=5)
    await expire_hook(run)
    assert await run.until_ended("s") == "UPDATE_STOPPED"

    async def status() -> Json:
        return (await run.stack_request("GET", "s", "/drift"))["converge"]

    async def has_ended() -> bool:
        return (await status())["state"] not in ("running", "observing")

    await eventually(has_ended)
    assert (await status())["round"] == 1
    code, text = await headgate(run, "stack", "resume", "s")
    assert code == 0, text
    (hook,) = await run.waiting_hooks("s")
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert await drift_of(run) == {"brief": "changed"}
    assert world.operations("brief").count("update") == 1
    assert await status() is None  # the update that has resumed it is no converge
