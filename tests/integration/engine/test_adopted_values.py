"""An answer `adopt` to a drift hook makes the observed values the desired ones, until the template
agrees or has another value."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.store.encryption.secret_values import EncryptedDocument
from engine.store.fault_points import inject_fault
from engine.types.contract import Failed
from engine.types.observation import Difference, Observation
from engine.words import ObservedState
from engine.work.observer.observer import Observer
from tests.support.changes import LONG_WAIT, put, thing
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things
from tests.support.http_things import thing as listed_thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Json, Program, template
from tests.support.scripted_type import SharedThing, World

HOLD: Json = {"convergence": {"observe": {"every": "10m"}, "on_drift": "hold"}}


def changed(desired: Json, observed: Json, path: str = "size") -> Observation:
    return Observation(ObservedState.CHANGED, [Difference(path, desired, observed)])


class ComparedThing(SharedThing):
    """Its observations compare the objects of the world with the properties."""

    def _observe(self, call: Any) -> Observation:
        world = self.world_of(call)
        found, size = world.things.get(call.physical_id), call.properties.get("size")
        if call.resource_name in world.observed or found in (None, size):
            return super()._observe(call)
        return changed(size, found)


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest.fixture(scope="module")
def shared_type(worlds: dict[str, World]) -> ComparedThing:
    return ComparedThing(worlds)


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def observe(run: Program) -> None:
    """Observe all stacks that a policy has scheduled, or that are requested."""
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at is not null"
    )
    registry, policies = paused_observer(run)
    repairs = run.engine.repairs
    observer = Observer(
        run.database, registry, policies, repair=repairs.start, approved=repairs.start_approved
    )
    await observer.observe_due()


async def created(run: Program, resources: Json, environment: Json = HOLD) -> None:
    await run.create("s", resources, environment=environment)
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")


async def updated(run: Program, resources: Json, **body: Json) -> None:
    await put(run, "s", resources, environment=HOLD, **body)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")


async def hooks(run: Program) -> list[Json]:
    _, found = await run.call("GET", "/hooks?state=waiting&stack=s&point=drift")
    return list(found["hooks"])


async def hook(run: Program) -> Json:
    await observe(run)
    (found,) = await hooks(run)
    return found


def change_object(world: World, name: str, size: Json) -> None:
    """Change the object of a resource without Headgate."""
    (physical_id,) = [one for one in world.things if one.startswith(f"{name}-")]
    world.things[physical_id] = size


def size_of(world: World, name: str) -> Json:
    (size,) = [size for one, size in world.things.items() if one.startswith(f"{name}-")]
    return size


async def adopt(run: Program, user: str = "ann") -> None:
    status, answered = await run.signal(await hook(run), "adopt", user=user)
    assert (status, answered.get("decision")) == (200, "adopt"), answered


async def adopted(run: Program) -> list[tuple[str, str, Json, Json, str]]:
    """(resource, path, value, value of the template, by) of the adopted values of the stack."""
    drift = await run.stack_request("GET", "s", "/drift")
    return [
        (one["resource_path"], one["path"], one["value"], one["template"], one["adopted_by"])
        for one in drift["adopted"]
    ]


async def previewed(
    run: Program, resources: Json
) -> tuple[str, Json, list[tuple[str, Json, Json]]]:
    """(kind, changes, adopted values) of the resource `a` in the preview of an update."""
    body = {"template": template(resources), "environment": HOLD}
    found = await run.stack_request("PUT", "s", "/preview", body)
    ((kind, one),) = [
        (kind, one)
        for kind, each in found["resource_changes"].items()
        for one in each
        if one["resource_name"] == "a"
    ]
    values = [(each["path"], each["value"], each["template"]) for each in one["adopted"]]
    return kind, one["changes"], values


async def test_the_observed_value_becomes_the_desired_one(run: Program, world: World) -> None:
    await created(run, {"a": thing(3), "b": thing(3)})
    change_object(world, "a", 5)
    found = await hook(run)
    assert found["allowed"] == ["repair", "adopt", "ignore", "reject", "continue"]
    done = len(world.done)
    status, answered = await run.signal(found, "adopt", user="ann", reason="it is needed")
    assert (status, answered["state"], answered["decision"]) == (200, "answered", "adopt")
    assert (await run.stack_request("GET", "s", "/drift"))["observing"]
    await observe(run)
    drift = await run.stack_request("GET", "s", "/drift")
    assert drift["resources"] == [] and await hooks(run) == []
    assert await adopted(run) == [("a", "size", 5, 3, "ann")]
    # Nothing was sent to the provider, and no change of the stack was started.
    assert len(world.done) == done and size_of(world, "a") == 5
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    log = await run.stack_request("GET", "s", "/decisions")
    assert [(one["kind"], one["by"], one["reason"]) for one in log["decisions"]] == [
        ("adopt", "ann", "it is needed")
    ]
    history = await run.stack_request("GET", "s", "/history")
    (answer,) = [one for one in history["events"] if one["type"] == "headgate.hook.answered"]
    assert "ann adopted the observed values of a" in str(answer), answer


async def test_later_updates_keep_the_adopted_value_and_show_it(run: Program, world: World) -> None:
    resources = {"a": thing(3), "b": thing(3)}
    await created(run, resources)
    change_object(world, "a", 5)
    await adopt(run)
    assert await previewed(run, resources) == ("unchanged", {}, [("size", 5, 3)])
    await updated(run, resources)
    assert size_of(world, "a") == 5
    # Another property of the same resource changes: the update sends the adopted value.
    moved = {"a": thing(3, metadata={"x": 1}), "b": thing(4)}
    await updated(run, moved)
    again = {"a": thing(3, place="there"), "b": thing(4)}
    kind, changes, values = await previewed(run, again)
    assert (kind, changes, values) == (
        "replaced", {"place": {"from": "here", "to": "there"}}, [("size", 5, 3)],
    )  # fmt: skip
    await updated(run, again)
    assert size_of(world, "a") == 5
    assert await adopted(run) == [("a", "size", 5, 3, "ann")]
    await observe(run)
    assert await hooks(run) == []


async def test_an_override_ends_when_the_template_changes_the_property(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    await adopt(run)
    kind, changes, values = await previewed(run, {"a": thing(7)})
    assert (kind, changes, values) == ("updated", {"size": {"from": 5, "to": 7}}, [])
    await updated(run, {"a": thing(7)})
    assert size_of(world, "a") == 7 and await adopted(run) == []
    # It does not come back with the earlier value of the template.
    await updated(run, {"a": thing(3)})
    assert size_of(world, "a") == 3 and await adopted(run) == []


async def test_an_override_ends_when_the_template_agrees(run: Program, world: World) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    await adopt(run)
    done = len(world.done)
    assert await previewed(run, {"a": thing(5)}) == ("unchanged", {}, [])
    await updated(run, {"a": thing(5)})
    assert len(world.done) == done and await adopted(run) == []
    await updated(run, {"a": thing(3)})
    assert size_of(world, "a") == 3


async def test_a_failed_update_keeps_the_override_until_it_succeeds(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    await adopt(run)
    world.script("update", "a", Failed("no"))
    await put(run, "s", {"a": thing(7)}, environment=HOLD)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert await adopted(run) == [("a", "size", 5, 3, "ann")]
    await updated(run, {"a": thing(7)})
    assert size_of(world, "a") == 7 and await adopted(run) == []


@pytest.mark.parametrize("size", [7, 5], ids=["changed", "agrees"])
async def test_a_rollback_brings_the_override_back(run: Program, world: World, size: Json) -> None:
    await created(run, {"a": thing(3), "b": thing(3)})
    change_object(world, "a", 5)
    await adopt(run)
    world.script("update", "b", Failed("no"))
    wanted = {"a": thing(size), "b": thing(4, depends_on="a")}
    await put(run, "s", wanted, environment=HOLD, disable_rollback=False)
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE", await run.events("s")
    assert size_of(world, "a") == 5 and await adopted(run) == [("a", "size", 5, 3, "ann")]
    # After a complete update, it has ended for good.
    await updated(run, {"a": thing(size), "b": thing(3)})
    await updated(run, {"a": thing(3), "b": thing(3)})
    assert size_of(world, "a") == 3 and await adopted(run) == []
    world.script("update", "b", Failed("no"))
    wanted = {"a": thing(9), "b": thing(4, depends_on="a")}
    await put(run, "s", wanted, environment=HOLD, disable_rollback=False)
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert size_of(world, "a") == 3 and await adopted(run) == []


async def test_a_rollback_during_the_operation_that_ends_an_override_brings_it_back(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(3), "b": thing(3)})
    for name in "ab":
        change_object(world, name, 5)
        await adopt(run)
    world.script("update", "a", LONG_WAIT)
    wanted = {"a": thing(7), "b": thing(3, depends_on="a")}
    await put(run, "s", wanted, environment=HOLD, disable_rollback=False)
    await run.until_parked("s", 1)
    await run.act("s", "cancel_update")
    await run.stack_request("POST", "s", "/resources/a/signal", {})
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE", await run.events("s")
    assert (size_of(world, "a"), size_of(world, "b")) == (5, 5)
    overrides = [("a", "size", 5, 3, "ann"), ("b", "size", 5, 3, "ann")]
    assert await adopted(run) == overrides
    # They end as others do.
    await updated(run, {"a": thing(9), "b": thing(3)})
    assert size_of(world, "a") == 9 and await adopted(run) == overrides[1:]


async def test_a_rollback_brings_the_overrides_of_members_back(run: Program, world: World) -> None:
    def group(size: int) -> Json:
        properties = {"count": 1, "resource_def": thing(size)}
        return {"type": "OS::Heat::ResourceGroup", "properties": properties}

    await created(run, {"group": group(3), "b": thing(3)})
    change_object(world, "0", 5)
    await adopt(run)
    world.script("update", "b", Failed("no"))
    wanted = {"group": group(7), "b": thing(4, depends_on="group")}
    await put(run, "s", wanted, environment=HOLD, disable_rollback=False)
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE", await run.events("s")
    assert size_of(world, "0") == 5 and await adopted(run) == [("group/0", "size", 5, 3, "ann")]


async def test_the_value_of_another_resource_can_be_overridden(run: Program, world: World) -> None:
    resources = {"source": thing(3), "a": thing({"get_attr": ["source", "size"]})}
    await created(run, resources)
    change_object(world, "a", 5)
    await adopt(run)
    await updated(run, resources | {"a": {**resources["a"], "metadata": {"x": 1}}})
    assert size_of(world, "a") == 5 and await adopted(run) == [("a", "size", 5, 3, "ann")]
    await updated(run, resources | {"source": thing(4)})
    assert size_of(world, "a") == 4 and await adopted(run) == []


async def test_a_repair_creates_the_resource_with_the_adopted_value(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    await adopt(run)
    world.things.clear()
    status, _ = await run.signal(await hook(run), "continue", user="bob")
    assert status == 200
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert size_of(world, "a") == 5 and await adopted(run) == [("a", "size", 5, 3, "ann")]


async def test_another_adoption_replaces_the_first(run: Program, world: World) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    await adopt(run)
    change_object(world, "a", 6)
    await adopt(run, user="bob")
    assert await adopted(run) == [("a", "size", 6, 3, "bob")]
    change_object(world, "a", 3)
    await adopt(run, user="bob")
    assert await adopted(run) == []


@pytest.mark.parametrize("size", [3, 6], ids=["the template's value", "another value"])
async def test_a_patch_ends_the_override_of_its_property(
    run: Program, world: World, size: int
) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    await adopt(run)
    environment = HOLD | {"hooks": [{"at": "a", "on": "pre-replace", "patch": ["size"]}]}
    await put(run, "s", {"a": thing(3, place="there")}, environment=environment)
    (found,) = await run.waiting_hooks("s")
    status, answered = await run.signal(found, "patch", properties={"size": size})
    assert status == 200, answered
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert size_of(world, "a") == size and await adopted(run) == []
    # The next update returns to the template, so it would end another adoption.
    change_object(world, "a", 8)
    status, error = await run.signal(await hook(run), "adopt")
    assert status == 400 and "a hook's answer has changed" in str(error), error


async def test_a_snapshot_has_the_adopted_values(run: Program, world: World) -> None:
    await created(run, {"a": thing(3)})
    stack_id = (await run.stack("s"))["id"]
    first = await take_snapshot(run, stack_id)
    change_object(world, "a", 5)
    await adopt(run)
    before = await take_snapshot(run, stack_id)
    await updated(run, {"a": thing(7)})
    assert await adopted(run) == []
    after = await take_snapshot(run, stack_id)
    await restore(run, stack_id, before)
    assert size_of(world, "a") == 5 and await adopted(run) == [("a", "size", 5, 3, "ann")]
    await restore(run, stack_id, first)
    assert size_of(world, "a") == 3 and await adopted(run) == []
    await restore(run, stack_id, before)
    assert size_of(world, "a") == 5 and await adopted(run) == [("a", "size", 5, 3, "ann")]
    await restore(run, stack_id, after)
    assert size_of(world, "a") == 7 and await adopted(run) == []


async def take_snapshot(run: Program, stack_id: str) -> str:
    status, taken = await run.call("POST", f"/stacks/s/{stack_id}/snapshots", {})
    assert status == 200, taken
    assert await run.until_ended("s") == "SNAPSHOT_COMPLETE", await run.events("s")
    return str(taken["id"])


async def restore(run: Program, stack_id: str, snapshot_id: str) -> None:
    path = f"/stacks/s/{stack_id}/snapshots/{snapshot_id}/restore"
    assert (await run.call("POST", path, {}))[0] == 202
    assert await run.until_ended("s") == "RESTORE_COMPLETE", await run.events("s")


async def test_a_member_of_a_nested_stack(run: Program, world: World) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": thing(3)},
    }
    await created(run, {"group": group})
    change_object(world, "1", 5)
    await adopt(run)
    assert await adopted(run) == [("group/1", "size", 5, 3, "ann")]
    grown = {"group": {**group, "properties": {"count": 3, "resource_def": thing(3)}}}
    await updated(run, grown)
    assert size_of(world, "1") == 5 and size_of(world, "2") == 3
    assert await adopted(run) == [("group/1", "size", 5, 3, "ann")]


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (Observation(ObservedState.MISSING), "the resource is missing"),
        (Observation(ObservedState.DEGRADED, (), "it is ill"), "does not work"),
        (changed(3, "******"), "secret"),
        (changed(3, None), "no value"),
        (changed(3, "x" * 5_000), "longer than 1,000 characters"),
        (changed(3, 5, "color"), "cannot take it over"),
        (changed("here", "there", "place"), "cannot take it over"),
    ],
    ids=["missing", "degraded", "secret", "none", "long", "no property", "not updatable"],
)
async def test_what_cannot_be_adopted_is_refused_with_the_reason(
    run: Program, world: World, observation: Observation, reason: str
) -> None:
    await created(run, {"a": thing(3)})
    world.observed["a"] = observation
    found = await hook(run)
    status, error = await run.signal(found, "adopt")
    assert (status, error["error"]["type"]) == (400, "AnswerInvalid"), error
    assert reason in str(error), error
    assert [one["id"] for one in await hooks(run)] == [found["id"]]
    assert await adopted(run) == []
    log = await run.stack_request("GET", "s", "/decisions")
    assert log["decisions"] == []


async def test_values_of_a_resource_with_secrets_are_not_adopted(
    run: Program, world: World
) -> None:
    text = template({"a": thing({"get_param": "secret"})})
    text["parameters"] = {"secret": {"type": "string", "hidden": True, "default": "very secret"}}
    await run.create("s", {}, template=text, environment=HOLD)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    change_object(world, "a", "another secret")
    status, error = await run.signal(await hook(run), "adopt")
    assert status == 400 and "secret properties" in str(error)
    assert "answer repair, or ignore the drift for a time" in str(error)
    assert "very secret" not in str(error) and "another secret" not in str(error)


async def test_values_of_a_resource_with_a_secret_update_policy_stay_adopted(
    run: Program, world: World
) -> None:
    def text(metadata: int) -> Json:
        policy = {"x": {"get_param": "secret"}}
        resources = {"a": thing(3, update_policy=policy, metadata={"x": metadata})}
        parameters = {"secret": {"type": "string", "hidden": True, "default": "very secret"}}
        return template(resources) | {"parameters": parameters}

    await run.create("s", {}, template=text(1), environment=HOLD)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    change_object(world, "a", 5)
    await adopt(run)
    await run.update("s", "PUT", template=text(2), environment=HOLD)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert size_of(world, "a") == 5 and await adopted(run) == [("a", "size", 5, 3, "ann")]


async def test_values_of_a_resource_with_secret_metadata_are_not_adopted(
    run: Program, world: World
) -> None:
    text = template({"a": thing(3, metadata={"x": {"get_param": "secret"}})})
    text["parameters"] = {"secret": {"type": "string", "hidden": True, "default": "very secret"}}
    await run.create("s", {}, template=text, environment=HOLD)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    change_object(world, "a", 5)
    status, error = await run.signal(await hook(run), "adopt")
    assert status == 400 and "secret properties or metadata" in str(error)


async def test_an_override_ends_when_its_resource_gets_a_secret(run: Program, world: World) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    await adopt(run)
    text = template({"a": thing(3, place={"get_param": "secret"})})
    text["parameters"] = {"secret": {"type": "string", "hidden": True, "default": "here"}}
    await run.update("s", "PUT", template=text, environment=HOLD)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert size_of(world, "a") == 3 and await adopted(run) == []


async def test_the_answer_is_about_the_drift_that_was_observed(run: Program, world: World) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    found = await hook(run)
    await run.database.pool.execute("update resource set updated_at = clock_timestamp()")
    status, error = await run.signal(found, "adopt")
    assert (status, error["error"]["type"]) == (409, "HookChanged"), error
    await adopt(run)
    assert await adopted(run) == [("a", "size", 5, 3, "ann")]


async def test_nothing_is_adopted_during_a_change(run: Program, world: World) -> None:
    await created(run, {"a": thing(3), "b": thing()})
    change_object(world, "a", 5)
    found = await hook(run)
    world.script("update", "b", LONG_WAIT)
    await put(run, "s", {"a": thing(3), "b": thing(2)}, environment=HOLD)
    await run.until_parked("s", 1)
    status, error = await run.signal(found, "adopt")
    assert (status, error["error"]["type"]) == (409, "ActionInProgress"), error


async def test_nothing_is_adopted_before_the_last_change_is_applied(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(3), "b": thing(3)})
    world.script("update", "b", Failed("no"))
    resources = {"a": thing(4, depends_on=["b"]), "b": thing(4)}
    await put(run, "s", resources, environment=HOLD)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    change_object(world, "a", 5)
    found = await hook(run)
    status, error = await run.signal(found, "adopt")
    assert (status, error["error"]["type"]) == (400, "AnswerInvalid"), error
    assert "has not been applied" in str(error) and "Update the stack" in str(error)
    await updated(run, resources)
    assert size_of(world, "a") == 4
    change_object(world, "a", 5)
    await adopt(run)
    await updated(run, resources)
    assert size_of(world, "a") == 5 and await adopted(run) == [("a", "size", 5, 4, "ann")]


async def test_nothing_is_adopted_in_a_nested_stack_before_the_last_change_reaches_it(
    run: Program, world: World
) -> None:
    def resources(size: int) -> Json:
        properties = {"count": 1, "resource_def": thing(size)}
        group = {"type": "OS::Heat::ResourceGroup", "properties": properties, "depends_on": ["b"]}
        return {"group": group, "b": thing(size)}

    await created(run, resources(3))
    world.script("update", "b", Failed("no"))
    await put(run, "s", resources(4), environment=HOLD)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    change_object(world, "0", 5)
    status, error = await run.signal(await hook(run), "adopt")
    assert status == 400 and "has not been applied" in str(error), error


async def test_nothing_is_adopted_while_an_operation_outlives_its_traversal(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    found = await hook(run)
    world.script("check", "a", LONG_WAIT)
    await run.stack_request("POST", "s", "/actions", {"check": None})
    await run.until_parked("s", 1)
    await run.stack_request("POST", "s", "/actions", {"cancel_without_rollback": None})
    assert await run.until_ended("s") == "CHECK_FAILED", await run.events("s")
    status, error = await run.signal(found, "adopt")
    assert (status, error["error"]["type"]) == (409, "ActionInProgress"), error
    assert "has not ended" in str(error) and await adopted(run) == []


async def test_several_approvals_are_of_a_repair(run: Program, world: World) -> None:
    policy = {"convergence": HOLD["convergence"] | {"hold": {"approvals": 2}}}
    await created(run, {"a": thing(3)}, policy)
    change_object(world, "a", 5)
    found = await hook(run)
    assert found["allowed"] == ["repair", "ignore", "reject", "continue"]
    status, error = await run.signal(found, "adopt")
    assert (status, error["error"]["type"]) == (400, "AnswerInvalid"), error
    assert "the 2 approvals are of a repair" in str(error), error
    assert "Change the template, or answer repair, ignore or reject" in str(error), error
    assert [one["id"] for one in await hooks(run)] == [found["id"]]


async def test_other_hooks_do_not_allow_it(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()}, environment={"resource_registry": {
        "resources": {"a": {"hooks": "pre-create"}}}})  # fmt: skip
    (found,) = await run.waiting_hooks("s")
    assert "adopt" not in found["allowed"]
    status, error = await run.signal(found, "adopt")
    assert (status, error["error"]["type"]) == (400, "AnswerInvalid")


@pytest.mark.parametrize("point", ["answer.before", "answer.after"])
async def test_a_fault_during_the_answer_loses_and_doubles_nothing(
    run: Program, world: World, point: str
) -> None:
    await created(run, {"a": thing(3)})
    change_object(world, "a", 5)
    found = await hook(run)
    with inject_fault(f"{point}:1:raise"):
        await run.signal(found, "adopt", user="ann")
    status, answered = await run.signal(found, "adopt", user="ann")
    assert (status, answered["decision"]) == (200, "adopt")
    assert await adopted(run) == [("a", "size", 5, 3, "ann")]
    log = await run.stack_request("GET", "s", "/decisions")
    assert [one["kind"] for one in log["decisions"]] == ["adopt"]


async def test_an_object_of_a_service_over_http(run: Program) -> None:
    async with serve_things() as things:
        await created(run, {"a": http_thing(things, size=3)})
        (one,) = things.objects.values()
        one["size"] = 5
        assert await is_encrypted(run)
        await adopt(run)
        assert await is_encrypted(run)
        assert await adopted(run) == [("a", "$.size", 5, 3, "ann")]
        requests = things.requests["update"]
        await updated(run, {"a": http_thing(things, size=3, color="red")})
        (one,) = things.objects.values()
        assert (one["size"], one["color"]) == (5, "red")
        assert things.requests["update"] == requests + 1
        await observe(run)
        assert await hooks(run) == []
        await updated(run, {"a": http_thing(things, size=4, color="red")})
        (one,) = things.objects.values()
        assert one["size"] == 4 and await adopted(run) == []


@pytest.mark.parametrize("text", ["${secrets.tok}", "${key}", "a ${id} $${b", "$${outputs.note}"])
async def test_adopted_text_is_no_placeholder(run: Program, text: str) -> None:
    def noted(note: str, **more: Json) -> Json:
        own: Json = {
            "create": {"url": "/things", "body": {"tok": "s3cr3t-of-a", "note": note, **more}},
            "update": {"url": "/things/${id}", "body": {"note": note, **more}},
            "attributes": {"tok": "$.tok", "note": "$.note"},
            "hidden": ["tok"],
            "compare": {"$.note": note},
        }
        return listed_thing(things, listed=False, **own)

    async with serve_things() as things:
        await created(run, {"a": noted("one")})
        (one,) = things.objects.values()
        one["note"] = text
        await adopt(run)
        assert await adopted(run) == [("a", "$.note", text, "one", "ann")]
        await observe(run)
        assert await hooks(run) == []
        # A repair sends the text, and so does an update.
        one["note"] = "other"
        assert (await run.signal(await hook(run), "repair"))[0] == 200
        await observe(run)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert one["note"] == text
        await updated(run, {"a": noted("one", color="red")})
        assert (one["note"], one["color"]) == (text, "red")
        outputs = (await run.stack_request("GET", "s", "/resources/a"))["resource"]["attributes"][
            "outputs"
        ]
        assert outputs == {"note": text}
        await observe(run)
        assert await hooks(run) == []
        # A second adoption keeps the value of the template, also in the bodies.
        one["note"] = "two ${id}"
        await adopt(run)
        assert await adopted(run) == [("a", "$.note", "two ${id}", "one", "ann")]
        await updated(run, {"a": noted("one", color="blue")})
        assert (one["note"], one["color"]) == ("two ${id}", "blue")
        await updated(run, {"a": noted("new")})
        assert one["note"] == "new" and await adopted(run) == []


async def test_a_value_that_the_object_no_longer_has_is_not_adopted(run: Program) -> None:
    async with serve_things() as things:
        await created(run, {"a": http_thing(things, size=3)})
        (one,) = things.objects.values()
        del one["size"]
        found = await hook(run)
        assert found["resource"]["drift"]["reason"] == "the response has no value at $.size"
        why = await run.stack_request("GET", "s", "/why")
        (sentence,) = (one["sentence"] for one in why["drift"])
        assert "it is changed ($.size; the response has no value at $.size)" in sentence
        assert "for the answer repair, ignore or reject" in sentence
        status, error = await run.signal(found, "adopt")
        assert (status, error["error"]["type"]) == (400, "AnswerInvalid"), error
        assert "cannot adopt: the object has no value at $.size" in str(error)
        assert (await run.signal(found, "repair"))[0] == 200
        await observe(run)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert one["size"] == 3
        await observe(run)
        assert await hooks(run) == []


async def is_encrypted(run: Program) -> bool:
    """Whether the properties and the data of the only resource are encrypted."""
    async with run.database.connection() as conn:
        row = await conn.fetchrow("select properties, data from resource")
    assert row is not None
    return all(isinstance(one, EncryptedDocument) for one in row.values())


def http_thing(things: Things, size: int, **values: Json) -> Json:
    body = {"size": size, **values}
    requests = {
        "create": {"url": "/things", "body": body},
        "update": {"url": "/things/${id}", "body": body},
    }
    return listed_thing(things, size, listed=False, **requests)
