"""Hooks about drift: they open without a change, and their answers repair, leave or ignore it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from aiohttp import web

from engine.hot.schema.type_schema import Attribute, Kind
from engine.store.fault_points import inject_fault
from engine.types.contract import Done, Failed
from engine.types.observation import Difference, Observation
from engine.words import ObservedState
from engine.work.observer.drift_hooks import DriftHooks
from engine.work.observer.observer import Observer
from tests.support.changes import LONG_WAIT, put, thing
from tests.support.command_line import completed
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things
from tests.support.http_things import thing as http_thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Json, Program, eventually, program, template
from tests.support.receiver import Received, Receiver, running_receiver, until
from tests.support.scripted_type import Thing, World

HOLD: Json = {"observe": {"every": "10m"}, "on_drift": "hold"}
WEBHOOKS = {"channels.webhook.allow": ["127.0.0.0/8"]}
MISSING = Observation(ObservedState.MISSING)


def changed(size: int) -> Observation:
    return Observation(ObservedState.CHANGED, [Difference("$.size", 1, size)])


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return HTTP_SETTINGS | WEBHOOKS


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


@pytest.fixture
async def configured(
    database_url: str, world: World, settings: dict[str, Any], paused_observers: None
) -> AsyncIterator[Program]:
    async with program(database_url, settings, types=[Thing(world)]) as running:
        yield running


def observer_of(run: Program) -> Observer:
    registry, policies = paused_observer(run)
    repairs = run.engine.repairs
    return Observer(
        run.database, registry, policies, repair=repairs.start, approved=repairs.start_approved
    )


async def observe(run: Program) -> None:
    """Observe all stacks that a policy has scheduled, or that are requested, also after an endpoint
    has failed."""
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at is not null"
    )
    await run.database.pool.execute(
        "with requests as (delete from failed_request) delete from provider_failure"
    )
    await observer_of(run).observe_due()


async def created(
    run: Program, resources: Json, convergence: Json = HOLD, name: str = "s", **more: Json
) -> None:
    await run.create(name, resources, environment={"convergence": convergence}, **more)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)


async def hooks(run: Program, state: str = "waiting", stack: str = "s") -> list[Json]:
    _, found = await run.call("GET", f"/hooks?state={state}&stack={stack}&point=drift")
    return list(found["hooks"])


async def hook(run: Program) -> Json:
    (found,) = await hooks(run)
    return found


async def hook_events(run: Program) -> list[tuple[str, str]]:
    """(moment, resource) of the events of hooks."""
    history = await run.stack_request("GET", "s", "/history?nested=true")
    return [
        (one["type"].removeprefix("headgate.hook."), one["subject"])
        for one in history["events"]
        if one["type"].startswith("headgate.hook.")
    ]


async def traversals(run: Program) -> list[Json]:
    """The changes of the stack, newest first."""
    found: list[Json] = (await run.stack_request("GET", "s", "/versions"))["traversals"]
    return found


async def drift_of(run: Program) -> list[Json]:
    found: list[Json] = (await run.stack_request("GET", "s", "/drift"))["resources"]
    return found


async def test_drift_opens_a_hook_once_without_a_change(run: Program, world: World) -> None:
    await created(run, {"a": thing(), "reader": thing({"get_resource": "a"})})
    await observe(run)
    assert await hooks(run) == []
    world.observed["a"] = changed(7)
    for _ in range(3):
        await observe(run)
    found = await hook(run)
    assert (found["point"], found["resource_name"], found["path"]) == ("drift", "a", "a")
    assert found["allowed"] == ["repair", "adopt", "ignore", "reject", "continue"]
    assert found["deadline"] is None and found["node"] is None
    assert found["requested_by"] == "observer"
    resource = found["resource"]
    assert resource["operation"] == "drift" and resource["dependents"] == ["reader"]
    assert resource["changes"] == {"$.size": {"from": 7, "to": 1}}
    drift = resource["drift"]
    assert drift["state"] == "changed"
    assert drift["differences"] == [{"path": "$.size", "desired": 1, "observed": 7}]
    assert await hook_events(run) == [("waiting", "a")]
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    assert len(await traversals(run)) == 1
    _, detail = await run.call("GET", f"/hooks/{found['id']}")
    assert detail == found


@pytest.mark.parametrize("decision", ["repair", "continue"])
async def test_an_answer_repairs_the_resource_and_what_depends_on_it(
    run: Program, world: World, decision: str
) -> None:
    await created(run, {"a": thing(), "reader": thing({"get_resource": "a"}), "b": thing()})
    world.observed = {"a": MISSING, "b": MISSING}
    await observe(run)
    first, second = await hooks(run)
    assert (first["resource_name"], second["resource_name"]) == ("a", "b")
    status, answered = await run.signal(first, decision, user="ada")
    assert status == 200, answered
    assert (answered["state"], answered["decision"]) == ("answered", decision)
    # The stack is observed at once, not at the next interval.
    assert (await run.stack_request("GET", "s", "/drift"))["observing"] is True
    # Both words are the same answer, and any other comes too late.
    for again, expected in (("repair", 200), ("continue", 200), ("reject", 409)):
        assert (await run.signal(first, again, user="ada"))[0] == expected
    assert len(await traversals(run)) == 1
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("a").count("create") == 2
    assert world.operations("reader") != ["create"]
    assert world.operations("b") == ["create"]
    newest, _ = await traversals(run)
    assert newest["requested_by"] == "ada"
    # The hook of the other resource still waits, and what was repaired is not asked again.
    del world.observed["a"]
    await observe(run)
    assert [one["id"] for one in await hooks(run)] == [second["id"]]
    assert len(await traversals(run)) == 2
    assert await hook_events(run) == [("waiting", "a"), ("waiting", "b"), ("answered", "a")]


async def test_an_approved_repair_that_fails_is_not_rolled_back(run: Program, world: World) -> None:
    """A rollback would change `c`, which has no drift."""
    await created(run, {"a": thing(), "c": thing()}, disable_rollback=False)
    world.observed["a"] = changed(7)
    await observe(run)
    found = await hook(run)
    world.script("create", "a", Failed("no"))
    assert (await run.signal(found, "continue"))[0] == 200
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_FAILED", await run.events("s")
    actions = [
        one["action"] for one in (await run.stack_request("GET", "s", "/versions"))["traversals"]
    ]
    assert actions == ["UPDATE", "CREATE"] and world.operations("c") == ["create"]


async def test_an_approved_repair_is_of_the_drift_that_was_shown(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    await observe(run)
    first = await hook(run)
    assert (await run.signal(first))[0] == 200
    world.observed["a"] = changed(8)
    await observe(run)
    assert len(await traversals(run)) == 1
    second = await hook(run)
    assert second["resource"]["changes"] == {"$.size": {"from": 8, "to": 1}}


async def test_drift_that_ended_before_its_repair_is_not_repaired(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    await observe(run)
    assert (await run.signal(await hook(run)))[0] == 200
    del world.observed["a"]
    await observe(run)
    assert len(await traversals(run)) == 1 and await hooks(run) == []


async def test_a_repair_that_drifts_again_is_asked_again(run: Program, world: World) -> None:
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    for count in (2, 3):
        await observe(run)
        assert (await run.signal(await hook(run)))[0] == 200
        await observe(run)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(await traversals(run)) == count
    await observe(run)
    await hook(run)
    assert len(await traversals(run)) == 3


async def test_rejected_drift_is_asked_again_only_if_it_changes(run: Program, world: World) -> None:
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    await observe(run)
    status, answered = await run.signal(await hook(run), "reject", user="ada", reason="wanted")
    assert (status, answered["decision"]) == (200, "reject")
    for _ in range(2):
        await observe(run)
    assert await hooks(run) == [] and len(await drift_of(run)) == 1
    world.observed["a"] = changed(8)
    await observe(run)
    assert (await hook(run))["resource"]["drift"]["differences"][0]["observed"] == 8
    log = await run.stack_request("GET", "s", "/decisions")
    assert [(one["kind"], one["by"], one["reason"]) for one in log["decisions"]] == [
        ("reject", "ada", "wanted")
    ]
    assert await hook_events(run) == [("waiting", "a"), ("answered", "a"), ("waiting", "a")]


@pytest.mark.parametrize(
    ("decision", "data"), [("ignore", {"for": "2h"}), ("reject", {"ignore": {"for": "2h"}})]
)
async def test_ignored_drift_is_not_asked_until_the_time_is_over(
    run: Program, world: World, decision: str, data: Json
) -> None:
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    await observe(run)
    found = await hook(run)
    assert (await run.signal(found, "reject", data={"ignore": {"for": "soon"}}))[0] == 400
    for bad in (None, {"for": "soon"}, {"for": "367d"}, {"ignore": {"for": "2h"}}):
        assert (await run.signal(found, "ignore", data=bad))[0] == 400
    assert (await run.signal(found, data=data))[0] == 400
    status, answered = await run.signal(found, decision, data=data)
    assert (status, answered["decision"]) == (200, decision), answered
    # The same answer again changes nothing; with another time it is another answer.
    until_time = await run.database.pool.fetchval("select ignored_until from drift_hook")
    longer = {"for": "366d"} if decision == "ignore" else {"ignore": {"for": "366d"}}
    repeated = [(data, 200), (longer, 409), ({"for": "garbage"}, 400)]
    if decision == "ignore":
        repeated.append((None, 400))
    for again, expected in repeated:
        assert (await run.signal(found, decision, data=again))[0] == expected
    assert await run.database.pool.fetchval("select ignored_until from drift_hook") == until_time
    log = await run.stack_request("GET", "s", "/decisions")
    assert [(one["kind"], one["data"]) for one in log["decisions"]] == [(decision, data)]
    # Also another difference, and drift that ended meanwhile.
    world.observed["a"] = changed(8)
    await observe(run)
    del world.observed["a"]
    await observe(run)
    world.observed["a"] = changed(7)
    await observe(run)
    assert await hooks(run) == []
    await run.database.pool.execute("update drift_hook set ignored_until = now()")
    await observe(run)
    assert (await hook(run))["id"] != found["id"]


async def test_a_hook_is_about_the_drift_there_is(run: Program, world: World) -> None:
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    await observe(run)
    first = await hook(run)
    world.observed["a"] = Observation(ObservedState.UNKNOWN, reason="it is slow")
    await observe(run)
    assert (await hook(run))["id"] == first["id"]
    world.observed["a"] = changed(8)
    await observe(run)
    second = await hook(run)
    assert second["id"] != first["id"]
    (gone,) = await hooks(run, "superseded")
    assert gone["id"] == first["id"]
    status, error = await run.signal(first)
    assert (status, error["error"]["type"]) == (409, "HookSuperseded")
    del world.observed["a"]
    await observe(run)
    assert await hooks(run) == []
    assert await hook_events(run) == [
        ("waiting", "a"), ("superseded", "a"), ("waiting", "a"), ("superseded", "a"),
    ]  # fmt: skip
    assert await run.database.pool.fetchval("select count(*) from drift_hook") == 0


async def test_a_change_closes_the_hooks_of_its_resources(run: Program, world: World) -> None:
    await created(run, {"a": thing(), "b": thing()})
    world.observed = {"a": changed(7), "b": changed(7)}
    await observe(run)
    first, second = await hooks(run)
    await put(run, "s", {"a": thing(2), "b": thing()}, environment={"convergence": HOLD})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert [one["id"] for one in await hooks(run)] == [second["id"]]
    (closed,) = await hooks(run, "superseded")
    assert closed["id"] == first["id"]
    world.observed = {"b": changed(7)}
    await observe(run)
    assert [one["id"] for one in await hooks(run)] == [second["id"]]
    await run.stack_request("DELETE", "s")

    async def gone() -> bool:
        return (await run.call("GET", "/stacks/s"))[0] == 404

    await eventually(gone)
    counts = "select count(*) from hook where state = 'waiting'"
    assert await run.database.pool.fetchval(counts) == 0
    assert await run.database.pool.fetchval("select count(*) from drift_hook") == 0


async def test_no_hook_opens_during_a_change(run: Program, world: World) -> None:
    await created(run, {"a": thing(), "b": thing()})
    world.script("update", "b", LONG_WAIT)
    await put(run, "s", {"a": thing(), "b": thing(2)}, environment={"convergence": HOLD})
    await run.until_parked("s", 1)
    world.observed["a"] = changed(7)
    await observe(run)
    assert await hooks(run) == [] and len(await drift_of(run)) == 1


async def test_without_the_policy_the_hook_closes(run: Program, world: World) -> None:
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    await observe(run)
    await hook(run)
    await put(run, "s", {"a": thing()}, environment={})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await observe(run)
    assert await hooks(run) == []
    assert await hook_events(run) == [("waiting", "a"), ("superseded", "a")]


async def test_rights_approvals_and_the_audit_log(run: Program, world: World) -> None:
    hold = {"answer_by": ["role:dba"], "approvals": 2}
    await created(run, {"a": thing()}, HOLD | {"hold": hold})
    world.observed["a"] = MISSING
    await observe(run)
    found = await hook(run)
    assert found["answer_by"] == ["role:dba"] and found["approvals"]["needed"] == 2
    status, error = await run.signal(found, user="eve", roles="member")
    assert (status, error["error"]["type"]) == (403, "MayNotAnswer")
    status, one = await run.signal(found, "repair", user="ada", roles="dba")
    assert (status, one["state"], one["approvals"]["given"]) == (200, "waiting", 1)
    await observe(run)
    assert len(await traversals(run)) == 1
    status, two = await run.signal(found, user="bob", roles="dba")
    assert (status, two["state"]) == (200, "answered")
    log = await run.stack_request("GET", "s", "/decisions")
    assert [(one["kind"], one["by"]) for one in log["decisions"]] == [
        ("refused", "eve"), ("repair", "ada"), ("continue", "bob"),
    ]  # fmt: skip
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await hook_events(run) == [("waiting", "a"), ("approved", "a"), ("answered", "a")]


@pytest.mark.parametrize(
    "settings",
    [
        {
            "convergence.rules": [
                {"observe": "10m", "on_drift": "hold", "hold": {"answer_by": ["role:operator"]}}
            ]
        }
    ],
    ids=["rule"],
)
async def test_a_rule_of_the_operator_holds_drift(configured: Program, world: World) -> None:
    await created(configured, {"a": thing()}, {"on_drift": "ignore"})
    world.observed["a"] = MISSING
    await observe(configured)
    found = await hook(configured)
    assert found["by_operator"] and found["answer_by"] == ["role:operator"]
    assert (await configured.signal(found, user="eve"))[0] == 403
    assert (await configured.signal(found, roles="operator"))[0] == 200


async def test_an_unanswered_hook_is_reminded_and_escalated(run: Program, world: World) -> None:
    hold = {"answer_by": ["user:ada"], "remind": "1h", "escalate": {"after": "1d", "to": ["user:bob"]}}  # fmt: skip
    await created(run, {"a": thing()}, HOLD | {"hold": hold})
    world.observed["a"] = MISSING
    await observe(run)
    found = await hook(run)
    await run.database.pool.execute(
        "update hook set opened_at = opened_at - interval '1h', wake_at = now() where point = 'drift'"
    )
    await run.database.pool.execute("select pg_notify('headgate_hook', '')")

    async def reminded() -> bool:
        reminders: int = (await hook(run))["reminders"]
        return reminders == 1

    await eventually(reminded)
    assert await hook_events(run) == [("waiting", "a"), ("reminder", "a")]
    now = await hook(run)
    assert (now["id"], now["state"]) == (found["id"], "waiting")


async def test_a_fault_between_observation_and_hook_loses_and_doubles_nothing(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    with inject_fault("drift.before:1:raise"):
        await observe(run)
    assert await hooks(run) == [] and len(await drift_of(run)) == 1
    assert await hook_events(run) == []
    with inject_fault("drift.after:1:raise"):
        await observe(run)
    await hook(run)
    await observe(run)
    await hook(run)
    assert await hook_events(run) == [("waiting", "a")]


async def test_two_observers_open_one_hook(run: Program, world: World) -> None:
    await created(run, {"a": thing()}, name="s")
    await created(run, {"a": thing()}, name="t")
    world.observed["a"] = changed(7)
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s'"
    )
    one, two = observer_of(run), observer_of(run)
    async with asyncio.TaskGroup() as group:
        group.create_task(one.observe_due())
        group.create_task(two.observe_due())
    await hook(run)
    policy = one._policies.policy(HOLD, run.project)
    stack_id = UUID(str((await run.stack("s"))["id"]))
    assert await DriftHooks(run.database, uuid4).read_due({stack_id: policy}) == []
    assert await hook_events(run) == [("waiting", "a")]


async def test_a_member_of_a_group_is_repaired_through_the_group(
    run: Program, world: World
) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": thing()},
    }  # fmt: skip
    await created(run, {"group": group, "a": thing()})
    world.observed = {"0": MISSING, "1": MISSING}
    for _ in range(2):
        await observe(run)
    first, second = await hooks(run)
    assert [first["path"], second["path"]] == ["group/0", "group/1"]
    assert (await run.signal(second))[0] == 200
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("1").count("create") == 2
    assert world.operations("0").count("create") == 1
    assert world.operations("a").count("create") == 1


@pytest.mark.parametrize("end", ["UPDATE_FAILED", "UPDATE_STOPPED"])
async def test_drift_of_an_incomplete_stack_is_held_and_its_approved_repair_says_why_it_waits(
    run: Program, world: World, end: str
) -> None:
    await created(run, {"a": thing(), "b": thing()})
    world.script("update", "b", Failed("broken") if end == "UPDATE_FAILED" else LONG_WAIT)
    await put(run, "s", {"a": thing(), "b": thing(2)}, environment={"convergence": HOLD})
    if end == "UPDATE_STOPPED":
        await run.until_parked("s", 1)
        await run.act("s", "stop")
    assert await run.until_ended("s") == end
    world.observed["a"] = MISSING
    await observe(run)
    assert (await run.signal(await hook(run)))[0] == 200
    assert (await run.stack("s"))["stack_status"] == end
    for _ in range(2):
        await observe(run)
    assert len(await traversals(run)) == 2
    (found,) = await drift_of(run)
    assert "UPDATE, is not complete" in found["unrepaired"]
    if end == "UPDATE_STOPPED":
        await run.stack_request("POST", "s", "/resources/b/signal", {})
    await put(run, "s", {"a": thing(), "b": thing(2)}, environment={"convergence": HOLD})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert world.operations("a").count("create") == 2


async def test_what_the_stack_does_not_own_is_not_repaired(run: Program) -> None:
    async with serve_things() as things:
        things.objects["foreign"] = {"id": "foreign", "state": "ready", "size": 1}
        resources = {"a": {**http_thing(things), "external_id": "foreign"}}
        await created(run, resources)
        things.objects["foreign"]["size"] = 7
        await observe(run)
        assert (await run.signal(await hook(run)))[0] == 200
        for _ in range(2):
            await observe(run)
        assert len(await traversals(run)) == 1
        (found,) = await drift_of(run)
        assert "does not own" in found["unrepaired"]


async def test_a_suspension_closes_hooks(run: Program, world: World) -> None:
    await created(run, {"a": thing(), "b": thing()})
    world.observed["a"] = MISSING
    await observe(run)
    found = await hook(run)
    await run.act("s", "suspend")
    assert await run.until_ended("s") == "SUSPEND_COMPLETE"
    assert await hooks(run) == []
    (closed,) = await hooks(run, "superseded")
    assert closed["id"] == found["id"]


async def test_secret_values_are_masked(run: Program) -> None:
    async with serve_things() as things:
        await _check_masked(run, things)


async def _check_masked(run: Program, things: Things) -> None:
    parameters = {"size": {"type": "number", "default": 47110815, "hidden": True}}
    resource = http_thing(things, {"get_param": "size"})  # type: ignore[arg-type]
    sent = {
        "stack_name": "s", "template": template({"a": resource}, parameters=parameters),
        "environment": {"convergence": HOLD},
    }  # fmt: skip
    status, answer = await run.call("POST", "/stacks", sent)
    assert status == 201, answer
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    (found,) = things.objects.values()
    found["size"] = 47120815
    await observe(run)
    shown = await hook(run)
    assert shown["resource"]["changes"] == {"$.size": {"from": "******", "to": "******"}}
    assert "47110815" not in str(shown) and "47120815" not in str(shown)


async def test_a_pause_repeats_no_secret_attribute_with_other_resources(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_ = paused_observer(run)[0].get("Test::Thing")
    kept = {"kept": Attribute(Kind.ANY, secret=True)}
    schema = replace(type_.schema, attributes={**type_.schema.attributes, **kept})
    monkeypatch.setattr(type(type_), "schema", schema)
    monkeypatch.setattr(type(type_), "observation_key", lambda self, call: "same")
    word = "correct-horse-battery"
    world.script("create", "a", Done("id-a", {"kept": word}))
    world.things |= {"id-a": 1}
    await created(run, {"a": thing()})
    await created(run, {"b": thing()}, name="t")
    world.observed["a"] = Observation.unknown(f"refused {word}", "refused", retry_after=600)
    await observe(run)
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at is not null"
    )
    await observer_of(run).observe_due()
    for name in ("s", "t"):
        shown = await run.stack_request("GET", name, "/drift")
        assert {one["reason"] for one in (*shown["resources"], *shown["paused"])} == {"refused"}
        assert word not in str(await run.stack_request("GET", name, "/why"))
    rows = "select reason from provider_failure union all select reason from failed_request"
    assert [one["reason"] for one in await run.database.pool.fetch(rows)] == ["refused"]


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


async def test_a_webhook_receives_the_difference_and_its_response_repairs(
    run: Program, receiver: Receiver
) -> None:
    """From a deleted object of a service to its repair: over HTTP, a webhook, and back."""

    async def respond(received: Received) -> web.StreamResponse:
        if received.event["type"] != "headgate.hook.waiting":
            return web.Response()
        drift = received.event["data"]["resource"]["drift"]
        decision = "continue" if drift["state"] == "missing" else "reject"
        return web.json_response({"decision": decision, "reason": "checked"})

    receiver.handle = respond
    async with serve_things() as things:
        await created(run, {"a": http_thing(things)})
        body = {"channel": "webhook", "target": receiver.url, "events": ["headgate.hook.*"]}
        assert (await run.call("POST", "/subscriptions", body))[0] == 201
        things.objects.clear()
        await observe(run)
        await until(lambda: [one["type"] for one in receiver.events] == [
            "headgate.hook.waiting", "headgate.hook.answered",
        ])  # fmt: skip
        waiting, answered = receiver.events
        assert waiting["subject"] == answered["subject"] == "a"
        assert waiting["data"]["hook"]["deadline"] is None
        assert waiting["data"]["resource"]["drift"]["state"] == "missing"
        assert answered["data"]["resource"] == {"name": "a", "type": "Headgate::HTTP"}
        assert answered["data"]["hook"]["channel"] == "webhook"
        await observe(run)
        assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
        assert len(things.objects) == 1
        await observe(run)
        assert await hooks(run) == [] and await drift_of(run) == []


async def test_the_explanation_of_a_stack_has_the_drift_that_waits(
    run: Program, world: World
) -> None:
    hold = HOLD | {"hold": {"answer_by": ["role:operator"]}}
    await created(run, {"a": thing(), "b": thing(), "c": thing()}, hold)
    world.observed = {"a": changed(7), "b": MISSING}
    await observe(run)
    why = await run.stack_request("GET", "s", "/why")
    assert why["nodes"] == []
    found = {one["path"]: one for one in why["drift"]}
    waiting = {one["path"]: one for one in await hooks(run)}
    drifted = {one["path"]: one for one in await drift_of(run)}
    assert found.keys() == {"a", "b"}
    for path, one in found.items():
        assert one["hook_id"] == waiting[path]["id"]
        assert one["opened_at"] == waiting[path]["opened_at"]
        assert one["since"] == drifted[path]["since"]
        assert one["differences"] == drifted[path]["differences"]
        assert one["allowed"] == waiting[path]["allowed"]
        assert one["answer_by"] == ["role:operator"]
    a, b = found["a"], found["b"]
    assert a["sentence"] == (
        f"a has differed from its recorded state since {a['since']}: it is changed ($.size). It "
        f"waits at drift since {a['opened_at']} for the answer repair, adopt, ignore or reject of "
        "role:operator; no subscription was notified."
    )
    assert "it is missing. It waits" in b["sentence"]
    assert "answer repair, ignore or reject of role:operator" in b["sentence"]


async def test_one_command_answers_all_hooks_about_drift_of_a_stack(
    run: Program, world: World
) -> None:
    """That which `why` and `stack show` print, if several hooks wait."""
    names = ("a", "b", "c")
    await created(run, {name: thing() for name in names})
    world.observed = {"a": MISSING, "b": changed(7), "c": changed(8)}
    await observe(run)
    shown = await headgate(run, "why", "s")
    for one in (
        "s:a:drift (missing)",
        "s:b:drift (changed: $.size)",
        "s:c:drift (changed: $.size)",
    ):
        assert f"To answer {one}: headgate hook repair" in shown, shown
    command = "hook repair --stack s --point drift"
    assert f"To repair all 3: headgate {command}" in shown
    assert f"To repair all 3: headgate {command}" in await headgate(run, "stack", "show", "s")
    await headgate(run, *command.split(), "--yes")
    assert await hooks(run) == []
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    for name in names:
        assert world.operations(name) != ["create"]
    world.observed.clear()
    await observe(run)
    assert await hooks(run) == [] and len(await traversals(run)) == 2
    # The other bulk command leaves the drift of all.
    world.observed = {name: MISSING for name in names}
    await observe(run)
    command = "hook ignore --stack s --point drift --for 2h"
    await headgate(run, *command.split(), "--yes")
    await observe(run)
    assert await hooks(run) == [] and len(await traversals(run)) == 2


async def headgate(run: Program, *arguments: str) -> str:
    """What the command printed."""
    environment = {"HEADGATE_URL": run.url, "HEADGATE_PROJECT": run.project}
    done = await asyncio.to_thread(completed, *arguments, environment=environment)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout
