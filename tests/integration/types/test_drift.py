"""Observed state: resources that were changed outside of Headgate are found, shown and repaired."""

import asyncio
import gc
import json
import os
import subprocess
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from tests.support import forks
from tests.support.changes import expect_error, observed, put
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.program import Json, Program, eventually


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


async def created(run: Program, resources: Json, name: str = "s") -> dict[str, str]:
    """Create a stack; return the physical ID of each resource."""
    await run.create(name, resources)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)
    return await ids(run, name)


async def ids(run: Program, name: str = "s") -> dict[str, str]:
    return {key: one["physical_resource_id"] for key, one in (await run.resources(name)).items()}


def states(drift: Json) -> dict[str, str]:
    return {one["resource_name"]: one["state"] for one in drift["resources"]}


async def test_all_objects_of_a_list_are_observed_by_one_request_for_each_page(
    run: Program, things: Things
) -> None:
    resources = {f"r{index}": thing(things) for index in range(8)}
    await created(run, resources | {"v": {"type": "OS::Heat::Value", "properties": {"value": 1}}})
    before = await run.stack_request("GET", "s", "/drift")
    assert (before["observed_at"], before["observing"], before["resources"]) == (None, False, [])
    things.requests.clear()
    drift = await observed(run)
    assert things.requests == {"list": 3}
    assert (drift["observable_resources"], drift["unobservable_resources"]) == (8, 1)
    assert drift["resources"] == [] and drift["observed_at"] is not None


@pytest.mark.parametrize("listed", [True, False])
async def test_each_state_is_observed_and_repaired(
    run: Program, things: Things, listed: bool
) -> None:
    names = ["changed", "failed", "missing", "same"]
    resources = {name: thing(things, listed=listed) for name in names}
    outputs = {"reference": {"value": {"get_resource": "missing"}}}
    body = {"heat_template_version": "2018-08-31", "resources": resources, "outputs": outputs}
    await run.call("POST", "/stacks", {"stack_name": "s", "template": body})
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    physical = await ids(run)
    del things.objects[physical["missing"]]
    things.objects[physical["changed"]]["size"] = 7
    things.objects[physical["failed"]]["state"] = "broken"
    drift = await observed(run)
    assert states(drift) == {"changed": "changed", "failed": "degraded", "missing": "missing"}
    by_name = {one["resource_name"]: one for one in drift["resources"]}
    assert by_name["changed"]["differences"] == [{"path": "$.size", "desired": 1, "observed": 7}]
    assert {one["found_by"] for one in drift["resources"]} == {"request"}
    assert by_name["failed"]["reason"] == "the object has failed: broken"
    assert by_name["missing"]["physical_resource_id"] == physical["missing"]
    # An observation changes nothing, and the same drift keeps its time.
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    again = await observed(run)
    assert [one["since"] for one in again["resources"]] == [
        one["since"] for one in drift["resources"]
    ]

    things.objects[physical["failed"]]["state"] = "ready"
    things.requests.clear()
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert things.requests["create"] == 1 and things.requests["update"] == 1
    now = await ids(run)
    assert now["missing"] != physical["missing"] and now["missing"] in things.objects
    assert [now[name] for name in ("changed", "failed", "same")] == [
        physical[name] for name in ("changed", "failed", "same")
    ]
    assert things.objects[now["changed"]]["size"] == 1
    assert (await run.stack("s"))["outputs"][0]["output_value"] == now["missing"]
    assert states(await observed(run)) == {}


async def test_an_action_converges_selected_resources(run: Program, things: Things) -> None:
    physical = await created(run, {name: thing(things) for name in "abc"})
    for name in "ab":
        del things.objects[physical[name]]
    path = f"/stacks/s/{await stack_id(run)}/actions"
    for wrong, place in (("soon", "converge"), ({"onyl": ["a"]}, "converge.onyl")):
        status, document = await run.call("POST", path, {"converge": wrong})
        assert status == 400 and place in str(document["error"]), document
    await run.stack_request("POST", "s", "/actions", {"converge": {"only": ["a"]}})
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    now = await ids(run)
    assert now["a"] != physical["a"] and (now["b"], now["c"]) == (physical["b"], physical["c"])
    await run.act("s", "converge")
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert sorted(things.objects) == sorted((await ids(run)).values())


async def test_a_converge_replaces_no_protected_resource(run: Program, things: Things) -> None:
    physical = await created(run, {"a": thing(things, update=None), "b": thing(things)})
    await run.stack_request("PATCH", "s", "/resources/a", {"protect": True})
    things.objects[physical["a"]]["size"] = 9
    del things.objects[physical["b"]]
    await run.act("s", "converge")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    reason = (await run.stack("s"))["stack_status_reason"]
    assert '"a" is protected: replace refused' in reason, reason
    after = await ids(run)
    assert after["a"] == physical["a"] and things.objects[physical["a"]]["size"] == 9
    await run.stack_request("PATCH", "s", "/resources/a", {"protect": False})
    await run.act("s", "converge")
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert sorted(things.objects) == sorted((await ids(run)).values())
    assert {one["size"] for one in things.objects.values()} == {1}


async def test_a_preview_tells_what_converge_will_repair(run: Program, things: Things) -> None:
    physical = await created(run, {"a": thing(things), "b": thing(things)})
    del things.objects[physical["a"]]
    await observed(run)
    status, preview = await run.call(
        "PATCH", f"/stacks/s/{await stack_id(run)}/preview", {"converge": True}
    )
    assert status == 200
    changes = preview["resource_changes"]
    assert [one["resource_name"] for one in changes["replaced"]] == ["a"]
    assert [one["resource_name"] for one in changes["unchanged"]] == ["b"]
    assert states(await observed(run)) == {"a": "missing"}


#: Of a repair, not of the creation.
HOLD_UPDATES: Json = {"hooks": [{"at": "a", "on": ["pre-update"]}]}


def reading(things: Things, name: str) -> Json:
    """A resource whose update refers to another one."""
    body = {"size": 1, "of": {"get_resource": name}}
    return thing(things, update={"url": "/things/${id}", "body": body})


async def read_plan(run: Program, query: str = "") -> Json:
    return await run.stack_request("GET", "s", f"/drift/plan{query}")


def planned(plan: Json) -> dict[str, list[str]]:
    """Paths by kind of change, without kinds that have none."""
    changes = plan["resource_changes"]
    return {kind: [one["path"] for one in found] for kind, found in changes.items() if found}


async def test_the_plan_of_a_converge_is_the_preview_of_that_update(
    run: Program, things: Things
) -> None:
    resources = {"a": thing(things), "b": reading(things, "c"), "c": thing(things)}
    await run.create("s", resources, environment=HOLD_UPDATES)
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    assert planned(await read_plan(run)) == {"unchanged": ["a", "b", "c"]}
    physical = await ids(run)
    things.objects[physical["a"]]["size"] = 7
    del things.objects[physical["c"]]
    await observed(run)
    things.requests.clear()
    plan = await read_plan(run)
    assert planned(plan) == {"updated": ["a", "b"], "replaced": ["c"]}
    (after_c,) = [one for one in plan["resource_changes"]["updated"] if one["path"] == "b"]
    assert after_c["unknown"] == ["update"], after_c
    assert [(one["path"], one["point"]) for one in plan["stops"]] == [("a", "pre-update")]
    path = f"/stacks/s/{await stack_id(run)}/preview?show_nested=true"
    assert await run.call("PATCH", path, {"converge": True}) == (200, plan)

    part = await read_plan(run, "?only=a&only=b*&except=b")
    assert planned(part) == {"updated": ["a"], "unchanged": ["b", "c"]}
    assert part["plan_digest"] != plan["plan_digest"]
    status, error = await expect_error(run, "GET", "s", "/drift/plan?only=x")
    assert status == 400 and '"x"' in str(error), error
    # A plan changes nothing, here or there.
    assert not things.requests and await ids(run) == physical
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    assert await read_plan(run) == plan


async def test_a_converge_applies_exactly_the_plan_that_was_shown(
    run: Program, things: Things
) -> None:
    physical = await created(run, {"a": thing(things), "b": thing(things)})
    del things.objects[physical["a"]]
    await observed(run)
    old = (await read_plan(run))["plan_digest"]
    del things.objects[physical["b"]]
    options = {"converge": {"plan_digest": old}}
    status, error = await expect_error(run, "POST", "s", "/actions", options)
    assert (status, error["type"]) == (409, "PlanChanged")
    assert await ids(run) == physical
    # The refused converge has observed the stack.
    plan = await read_plan(run)
    assert planned(plan) == {"replaced": ["a", "b"]}
    options = {"converge": {"plan_digest": plan["plan_digest"]}}
    await run.stack_request("POST", "s", "/actions", options)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert sorted(things.objects) == sorted((await ids(run)).values())


async def test_the_plan_of_a_converge_waits_for_no_lock_and_takes_none(
    run: Program, things: Things
) -> None:
    """Readers may see it, and must not delay changes. The template of `m` has a move that is done."""
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 1, "resource_def": thing(things)},
    }
    await created(run, {"a": thing(things), "group": group})
    body = {
        "heat_template_version": "2026-12-01",
        "resources": {"new": {"type": "OS::Heat::RandomString"}},
        "moved": [{"from": "old", "to": "new"}],
    }
    status, response = await run.call("POST", "/stacks", {"stack_name": "m", "template": body})
    assert status == 201, response
    assert await run.until_ended("m") == "CREATE_COMPLETE", await run.events("m")
    things.objects.clear()
    await observed(run)
    plan = await read_plan(run)
    assert planned(plan) == {"updated": ["group"], "replaced": ["a", "group/0"]}
    async with run.database.transaction() as conn:
        await conn.execute("select from stack for update")
        await conn.execute("select from resource for update")
        async with asyncio.timeout(10):
            assert await read_plan(run) == plan
            moved = await run.stack_request("GET", "m", "/drift/plan")
    assert planned(moved) == {"unchanged": ["new"]}


async def test_the_plan_of_a_converge_has_nested_stacks_but_no_nested_stack_has_one(
    run: Program, things: Things
) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": thing(things)},
    }
    await created(run, {"group": group, "a": thing(things)})
    _, listed = await run.call("GET", "/stacks?show_nested=true")
    nested = next(one["stack_name"] for one in listed["stacks"] if one["stack_name"] != "s")
    members = {
        name: one["physical_resource_id"] for name, one in (await run.resources(nested)).items()
    }
    del things.objects[members["1"]]
    await observed(run)
    assert planned(await read_plan(run)) == {
        "unchanged": ["a", "group/0"], "updated": ["group"], "replaced": ["group/1"],
    }  # fmt: skip
    status, error = await expect_error(run, "GET", nested, "/drift/plan")
    assert status == 400 and "cannot be updated by itself" in error["message"], error


async def run_process(run: Program, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = (*arguments, "--url", run.url, "--project", run.project)
    return await asyncio.to_thread(forks.run, words, os.environ)


async def run_command(run: Program, *arguments: str, code: int = 0) -> str:
    """The output of a command, or its error."""
    done = await run_process(run, *arguments)
    assert done.returncode == code, (done.stdout, done.stderr)
    return str(done.stderr if code else done.stdout)


async def test_the_command_line_shows_drift_with_its_plan_and_converges_a_part(
    run: Program, things: Things
) -> None:
    physical = await created(run, {"a": thing(things), "b": thing(things)})
    drift = json.loads(await run_command(run, "stack", "drift", "s", "-o", "json"))
    assert (drift["plan"], drift["plan_refused"]) == (None, None)
    for name in "ab":
        del things.objects[physical[name]]
    await observed(run)
    shown = await run_command(run, "stack", "drift", "s")
    plan = await read_plan(run)
    assert "2 of 2 observed resources differ" in shown and "request" in shown
    line = "2 resources have differed from the recorded state since"
    for command in (("why", "s"), ("stack", "show", "s")):
        text = " ".join((await run_command(run, *command)).split())
        assert line in text and "(a, b), without a repair: the stack has no conv" in text, text
        assert "To see the drift: headgate stack drift s" in text
    assert "Plan of a converge:" in shown and "s: 2 replaced" in shown, shown
    assert f"Plan: {plan['plan_digest']}" in shown
    assert json.loads(await run_command(run, "stack", "drift", "s", "-o", "json"))["plan"] == plan

    part = await run_command(run, "stack", "converge", "s", "--only", "a", "--dry-run")
    assert "s: 1 replaced, 1 unchanged" in part and await ids(run) == physical
    digest = part.strip().rpartition(" ")[2]
    words = ("stack", "converge", "s", "--only", "a", "--wait", "--plan")
    other = await run_command(run, *words, plan["plan_digest"], code=1)
    assert "the plan has changed since the dry run" in other and await ids(run) == physical
    assert "UPDATE_COMPLETE" in await run_command(run, *words, digest)
    now = await ids(run)
    assert now["a"] != physical["a"] and now["b"] == physical["b"]
    await run_command(run, "stack", "converge", "s", "--except", "a", "--yes", "--wait")
    assert sorted(things.objects) == sorted((await ids(run)).values())


async def test_drift_is_shown_when_its_repair_would_be_refused(
    run: Program, things: Things
) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 1, "resource_def": thing(things)},
    }
    await created(run, {"group": group})
    things.objects.clear()
    await observed(run)
    _, listed = await run.call("GET", "/stacks?show_nested=true")
    nested = next(one["stack_name"] for one in listed["stacks"] if one["stack_name"] != "s")
    shown = await run_command(run, "stack", "drift", nested)
    assert "missing" in shown and "A converge would be refused: " in shown, shown
    assert "cannot be updated by itself" in shown


async def test_a_converge_is_repeated_until_the_stack_is_as_it_should_be(
    run: Program, things: Things
) -> None:
    physical = await created(run, {"a": thing(things), "b": thing(things)})
    things.objects[physical["a"]]["size"] = 7
    things.relapses = 2
    done = await run_process(run, "stack", "converge", "s", "--rounds", "5", "--yes", "--wait")
    assert done.returncode == 0 and "UPDATE_COMPLETE" in done.stdout, done.stderr
    assert "The stack still differs. Round 3 of 5 has started." in done.stderr
    assert "Round 4" not in done.stderr
    assert things.requests["update"] == 3 and things.objects[physical["a"]]["size"] == 1
    assert states(await observed(run)) == {}


async def test_a_repeated_converge_stops_at_its_limit(run: Program, things: Things) -> None:
    physical = await created(run, {"a": thing(things), "b": thing(things)})
    for name in "ab":
        things.objects[physical[name]]["size"] = 7
    things.relapses = 100
    words = ("stack", "converge", "s", "--only", "a", "--rounds", "2", "--yes", "--wait")
    refused = await run_command(run, *words, code=1)
    assert "After round 2 of 2, 1 resource still differs: a (changed). Find out what" in refused
    assert things.requests["update"] == 2
    assert (await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE"
    assert states(await observed(run)) == {"a": "changed", "b": "changed"}
    # What the converge does not include needs no round.
    things.relapses = 0
    words = ("stack", "converge", "s", "--only", "b", "--rounds", "2", "--yes", "--wait")
    await run_command(run, *words)
    assert things.requests["update"] == 3 and things.objects[physical["b"]]["size"] == 1
    assert states(await observed(run)) == {"a": "changed"}


async def test_no_round_starts_while_a_hook_waits(run: Program, things: Things) -> None:
    resources = {"a": thing(things), "b": thing(things)}
    await run.create("s", resources, environment=HOLD_UPDATES)
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    physical = await ids(run)
    for name in "ab":
        things.objects[physical[name]]["size"] = 7
    things.relapses = 1
    words = ("stack", "converge", "s", "--rounds", "3", "--yes", "--until-waiting")
    done = await run_process(run, *words)
    assert done.returncode == 5 and "Round" not in done.stderr, (done.stdout, done.stderr)
    (hook,) = await run.waiting_hooks("s")
    # Object b has changed again meanwhile.
    sizes = {name: things.objects[physical[name]]["size"] for name in "ab"}
    assert (hook["point"], sizes) == ("pre-update", {"a": 7, "b": 99})
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert things.requests["update"] == 2


async def stack_id(run: Program) -> str:
    return str((await run.stack("s"))["id"])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (429, "list: the service answered 429"),
        (503, "list: the service answered 503"),
        (404, "list: the service answered 404"),
        ("{", "list: the response is not valid JSON"),
        ("{}", "list: the response has no list at $.things"),
        ('{"things": [{"name": "t1"}]}', "list: an item has no ID at $.id"),
        (
            '{"things": [], "next": "http://other.example.org/things"}',
            "list: the next page is on another server",
        ),
        (
            '{"things": [], "next": "/things"}',
            "list: the next page is one that was read before",
        ),
    ],
)
async def test_an_unusable_answer_is_unknown_and_never_missing(
    run: Program, things: Things, fault: int | str, reason: str
) -> None:
    physical = await created(run, {"a": thing(things)})
    things.faults = [fault]
    drift = await observed(run)
    assert states(drift) == {"a": "unknown"}
    assert reason in drift["resources"][0]["reason"]
    # Nothing is repaired on a guess.
    things.requests.clear()
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    # A 429 pauses the endpoint, for the requests of users, too.
    assert set(things.requests) == (set() if fault == 429 else {"list"})
    assert await ids(run) == physical
    await run.database.pool.execute(
        "with requests as (update failed_request set until = now())"
        " update provider_failure set until = now()"
    )
    things.faults = []
    assert states(await observed(run)) == {}


async def test_an_object_that_a_list_lacks_is_read_before_it_is_missing(
    run: Program, things: Things
) -> None:
    physical = await created(run, {"a": thing(things), "b": thing(things)})
    things.lists_nothing = True
    del things.objects[physical["b"]]
    things.requests.clear()
    assert states(await observed(run)) == {"b": "missing"}
    assert things.requests == {"list": 2, "read": 2}


async def test_an_object_that_only_lists_show_is_missing_if_two_of_them_lack_it(
    run: Program, things: Things
) -> None:
    await created(run, {"a": thing(things, read=None, ready=None)})
    things.objects.clear()
    things.requests.clear()
    assert states(await observed(run)) == {"a": "missing"}
    assert things.requests == {"list": 2}


@pytest.mark.parametrize(("lacking", "reads"), [("size", 3), ("state", 4)])
async def test_an_entry_of_a_list_that_lacks_a_value_is_read_by_itself(
    run: Program, things: Things, lacking: str, reads: int
) -> None:
    physical = await created(run, {key: thing(things) for key in ("a", "b", "c", "d")})
    things.listed_fields = {"id", "size", "state"} - {lacking}
    things.objects[physical["b"]]["size"] = 9
    del things.objects[physical["c"]]
    things.objects[physical["d"]]["state"] = "broken"
    things.requests.clear()
    expected = {"b": "changed", "c": "missing", "d": "degraded"}
    assert states(await observed(run)) == expected
    # The one that the list does not have is looked for a second time.
    assert things.requests == {"list": 2, "read": reads}


@pytest.mark.parametrize("path", ["$.size", "$.state"])
async def test_a_value_that_only_a_list_could_show_and_lacks_is_unknown(
    run: Program, things: Things, path: str
) -> None:
    ready = {"path": "$.state", "values": ["ready"], "source": "list"}
    physical = await created(run, {"a": thing(things, read=None, ready=ready)})
    things.listed_fields = {"id", "size", "state"} - {path.removeprefix("$.")}
    drift = await observed(run)
    assert states(drift) == {"a": "unknown"}
    assert f"the response has no value at {path}" in drift["resources"][0]["reason"]
    assert drift["resources"][0]["differences"] == []
    # The service works, so that its other resources are observed.
    assert await run.database.pool.fetch("select from provider_failure") == []
    things.requests.clear()
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await ids(run) == physical and set(things.requests) == {"list"}


@pytest.mark.parametrize("listed", [True, False], ids=["by list", "alone"])
async def test_an_object_whose_own_response_lacks_its_state_is_unknown(
    run: Program, things: Things, listed: bool
) -> None:
    physical = await created(run, {"a": thing(things, listed=listed)})
    del things.objects[physical["a"]]["state"]
    drift = await observed(run)
    assert states(drift) == {"a": "unknown"}
    assert "the response has no value at $.state" in drift["resources"][0]["reason"]
    assert await run.database.pool.fetch("select from provider_failure") == []


@pytest.mark.parametrize("listed", [True, False], ids=["by list", "alone"])
async def test_a_value_that_was_removed_at_the_service_differs_and_is_set_again(
    run: Program, things: Things, listed: bool
) -> None:
    physical = await created(run, {"a": thing(things, listed=listed)})
    del things.objects[physical["a"]]["size"]
    drift = await observed(run)
    assert states(drift) == {"a": "changed"}
    (found,) = drift["resources"]
    assert found["differences"] == [{"path": "$.size", "desired": 1, "observed": None}]
    assert found["reason"] == "the response has no value at $.size"
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert things.objects[physical["a"]]["size"] == 1 and await ids(run) == physical
    assert states(await observed(run)) == {}


async def test_removed_values_are_shown_beside_others_that_differ(
    run: Program, things: Things
) -> None:
    """Also if the list has all of the others: then the object is read by itself."""
    compare = {"$.size": 1, "$.color": "red", "$.nothing": None}
    one = thing(things, compare=compare)
    one["properties"]["create"]["body"]["color"] = "red"
    physical = await created(run, {"a": one})
    assert states(await observed(run)) == {}
    things.objects[physical["a"]] |= {"size": 9, "nothing": 1}
    del things.objects[physical["a"]]["color"]
    (found,) = (await observed(run))["resources"]
    seen = {one["path"]: one["observed"] for one in found["differences"]}
    assert seen == {"$.size": 9, "$.color": None, "$.nothing": 1}
    # Null and no value are the same, also for a check.
    things.objects[physical["a"]] |= {"size": 1, "nothing": None, "color": "red"}
    assert states(await observed(run)) == {}
    for nothing in ({"nothing": None}, {}):
        things.objects[physical["a"]].pop("nothing", None)
        things.objects[physical["a"]] |= nothing
        await run.act("s", "check")
        assert await run.until_ended("s") == "CHECK_COMPLETE"


@pytest.mark.parametrize(
    "answer",
    ["", "[]", "{}", "null", "7", "<html>", '{"error": "later"}', '{"id": "other", "state": "ready"}',
     '{"state": "ready"}', '{"items": []}', '[{"id": "t1", "state": "ready"}]'],
)  # fmt: skip
async def test_an_answer_that_is_not_the_object_never_shows_a_removed_value(
    run: Program, things: Things, answer: str
) -> None:
    physical = await created(run, {"a": thing(things, listed=False)})
    things.faults = [answer]
    assert states(await observed(run)) == {"a": "unknown"}
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await ids(run) == physical and things.requests["update"] == 0


OTHER = {"id": "zz", "state": "ready"}


@pytest.mark.parametrize("size", [1, 77], ids=["same values", "other values"])
async def test_a_response_about_another_object_changes_nothing(
    run: Program, things: Things, size: int
) -> None:
    """Not even by a repair of a policy, which would replace an object that has no `update`."""
    one = thing(things, listed=False, attributes={"size": "$.size"})
    del one["properties"]["update"]
    policy = {"observe": {"every": "1h"}, "on_drift": "repair"}
    await run.create("s", {"a": one}, environment={"convergence": policy})
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    physical = await ids(run)
    things.requests.clear()
    things.faults = [json.dumps(OTHER | {"size": size})]
    (found,) = (await observed(run))["resources"]
    assert (found["state"], found["differences"]) == ("unknown", [])
    assert found["reason"] == (
        'the response is about another object: it has the ID "zz" at $.id, and this object has'
        f' "{physical["a"]}". Check the URL of the request, and the path in `id`.'
    )
    assert await run.database.pool.fetch("select from provider_failure") == []
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    # A check compares the ID, too, and takes over no attribute of another object.
    await run.act("s", "check")
    assert await run.until_ended("s") == "CHECK_FAILED"
    resource = (await run.resources("s"))["a"]
    assert "about another object" in resource["resource_status_reason"]
    shown = await run.stack_request("GET", "s", "/resources/a")
    assert shown["resource"]["attributes"]["outputs"] == {"size": 1}
    assert set(things.requests) == {"read"} and await ids(run) == physical
    things.faults = []
    assert states(await observed(run)) == {}


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"error": "maintenance", "state": "unavailable"}, "unknown"),
        ({"size": None, "state": "broken"}, "unknown"),
        ({"id": "t1", "size": 1, "state": None}, "unknown"),
        # Without the ID, as some services answer.
        ({"size": 1, "state": "unavailable"}, "degraded"),
        ({"size": 2, "state": "ready"}, "changed"),
    ],
    ids=str,
)
async def test_a_response_that_may_be_an_error_is_no_degraded_object(
    run: Program, things: Things, answer: Json, state: str
) -> None:
    physical = await created(run, {"a": thing(things, listed=False)})
    assert physical == {"a": "t1"}
    things.faults = [json.dumps(answer)]
    assert states(await observed(run)) == {"a": state}


async def test_a_create_waits_for_a_response_about_its_own_object(
    run: Program, things: Things
) -> None:
    things.faults = [json.dumps(OTHER | {"size": 77})]
    await run.create("s", {"a": thing(things, attributes={"size": "$.size"}, interval=0.1)})

    async def waits() -> bool:
        reason = (await run.resources("s"))["a"]["resource_status_reason"]
        return "about another object" in reason

    await eventually(waits)
    things.faults = []
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    shown = await run.stack_request("GET", "s", "/resources/a")
    assert shown["resource"]["attributes"]["outputs"] == {"size": 1}


async def test_a_removed_secret_is_masked(run: Program, things: Things) -> None:
    one = thing(things, compare={"$.size": {"get_param": "size"}})
    one["properties"]["create"]["body"] = {"size": {"get_param": "size"}}
    parameters = {"size": {"type": "string", "default": "geheim", "hidden": True}}
    body = {
        "heat_template_version": "2018-08-31", "parameters": parameters, "resources": {"a": one},
    }  # fmt: skip
    await run.call("POST", "/stacks", {"stack_name": "s", "template": body})
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    (physical,) = (await ids(run)).values()
    del things.objects[physical]["size"]
    (found,) = (await observed(run))["resources"]
    assert found["state"] == "changed"
    assert found["differences"] == [{"path": "$.size", "desired": "******", "observed": "******"}]


async def test_an_object_that_moves_between_pages_is_not_missing(
    run: Program, things: Things
) -> None:
    things.objects["foreign"] = {"id": "foreign", "size": 9}
    await created(run, {f"r{index}": thing(things) for index in range(5)})
    # Before the second page is read, an object of the first page is deleted: the next one moves up.
    things.between_pages = ["foreign"]
    assert states(await observed(run)) == {}


async def test_secret_properties_are_masked_in_differences(run: Program, things: Things) -> None:
    secret = "correct-horse-battery"
    template = {
        "heat_template_version": "2018-08-31",
        "parameters": {"key": {"type": "string", "hidden": True}},
        "resources": {"a": thing(things, compare={"$.size": {"get_param": "key"}})},
    }
    body = {"stack_name": "s", "template": template, "parameters": {"key": secret}}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    drift = await observed(run)
    assert states(drift) == {"a": "changed"}
    assert drift["resources"][0]["differences"] == [
        {"path": "$.size", "desired": "******", "observed": "******"}
    ]
    assert secret not in str(drift)


@pytest.mark.parametrize(
    ("changed", "compare"),
    [
        ({}, {"$.auth": {"x": 1}}),
        ({}, {"$": {}}),
        ({}, {"$.auth.token": "x"}),
        ({"copy": ["of correct-horse-battery"]}, {"$.copy": []}),
        ({"copy": {"text": "z" * 2_000 + "correct-horse-battery"}}, {"$.copy": []}),
        ({"state": "correct-horse-battery"}, {}),
    ],
)
async def test_hidden_attributes_are_masked_wherever_a_response_repeats_them(
    run: Program, things: Things, changed: Json, compare: Json
) -> None:
    secret = "correct-horse-battery"
    one = thing(things, attributes={"token": "$.auth.token"}, hidden=["token"], compare=compare)
    one["properties"]["create"]["body"]["auth"] = {"token": secret, "user": "u"}
    physical = await created(run, {"a": one})
    things.objects[physical["a"]].update(changed)
    drift = await observed(run)
    (found,) = drift["resources"]
    if found["state"] == "degraded":
        assert found["reason"] == "the object is not ready"  # its public part
    else:
        assert found["state"] == "changed" and "******" in str(found["differences"])
    assert secret not in str(drift)
    async with run.database.connection() as conn:
        rows = await conn.fetch("select o::text from observation o")
    assert secret not in str(rows)


@pytest.mark.parametrize(
    ("compare", "secret"),
    [
        ({"$.label": "correct-horse-battery"}, "correct-horse-battery"),
        ({"$.label": "user:correct-horse-battery"}, "correct-horse-battery"),
        ({"$.label": {"deep": ["correct-horse-battery"]}}, "correct-horse-battery"),
        ({"$.auth.token": "correct-horse-battery"}, "correct-horse-battery"),
        ({"$.label": 1234567890123}, 1234567890123),
        ({"$.label": "1234567890123"}, 1234567890123),
    ],
    ids=["equal", "part", "inside", "own-path", "number", "text-of-number"],
)
async def test_a_compared_literal_that_is_a_hidden_value_is_masked_wherever_drift_is_shown(
    run: Program, things: Things, compare: Json, secret: Json
) -> None:
    """The object has another value everywhere, so that only the recorded attribute tells."""
    label = compare.get("$.label")
    one = thing(things, attributes={"token": "$.auth.token"}, hidden=["token"], compare=compare)
    one["properties"]["create"]["body"] |= {"auth": {"token": secret}, "label": label}
    environment = {"convergence": {"observe": {"every": "365d"}, "on_drift": "hold"}}
    await run.create("s", {"a": one}, environment=environment)
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    (physical,) = (await ids(run)).values()
    things.objects[physical] |= {"label": "another", "auth": {"token": "another"}}
    drift = await observed(run)
    (hook,) = await run.waiting_hooks("s")
    history = await run.stack_request("GET", "s", "/history")
    (detected,) = [one for one in history["events"] if one["type"].endswith(".drift.detected")]
    inspected = await run.stack_request("GET", "s", "/resources/a/inspect")
    shown = [
        drift,
        hook,
        detected,
        inspected["observed"],
        (await run.stack_request("GET", "s", "/why"))["drift"],
        await run_command(run, "stack", "drift", "s", "-o", "json"),
        await run_command(run, "hook", "show", "s:a:drift"),
    ]
    assert len(drift["resources"][0]["differences"]) == 1
    for one in shown:
        assert str(secret) not in str(one) and "******" in str(one), one
    for table in ("observation", "drift_hook", "hook", "event"):
        rows = await run.database.pool.fetch(f"select t::text from {table} t")
        assert str(secret) not in str(rows), table
    assert (await run.signal(hook, "adopt"))[0] == 400


async def test_a_large_list_is_observed_without_keeping_its_items(
    run: Program, things: Things
) -> None:
    """The service has 20 MB of other items."""
    await created(run, {"a": thing(things)})
    foreign = {"size": 1, "state": "ready", "text": "z" * 100_000}
    for number in range(200):
        things.objects[f"x{number}"] = foreign | {"id": f"x{number}"}
    gc.collect()
    tracemalloc.start()
    try:
        assert states(await observed(run)) == {}
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()


async def test_resources_of_nested_stacks_are_observed_and_repaired(
    run: Program, things: Things
) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": thing(things)},
    }
    physical = await created(run, {"group": group, "a": thing(things)})
    gone = next(one for one in things.objects if one != physical["a"])
    del things.objects[gone]
    drift = await observed(run)
    assert len(drift["resources"]) == 1
    assert drift["observable_resources"] == 4 and drift["resources"][0]["state"] == "missing"
    assert [(one["path"], one["state"]) for one in drift["nested"]] == [("group", "degraded")]
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert len(things.objects) == 3 and states(await observed(run)) == {}


async def test_an_object_that_was_gone_before_an_update_failed_is_created_again(
    run: Program, things: Things
) -> None:
    before = await created(run, {name: thing(things) for name in "abc"})
    del things.objects[before["a"]]
    # The update of `b` fails for another reason; its object exists.
    things.objects[before["b"]]["state"] = "broken"
    await put(run, "s", {name: thing(things, 4) for name in "abc"})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    failed = await run.resources("s")
    assert {failed[name]["resource_status"] for name in "ab"} == {"UPDATE_FAILED"}
    things.objects[before["b"]]["state"] = "ready"
    assert states(await observed(run)) == {"a": "missing"}
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    after = await ids(run)
    assert set(things.objects) == set(after.values()) and before["a"] not in things.objects
    assert {one["size"] for one in things.objects.values()} == {4}
    assert states(await observed(run)) == {}


async def test_a_resource_whose_create_failed_is_shown_if_it_is_missing(
    run: Program, things: Things
) -> None:
    broken = {"url": "/things", "body": {"size": 1, "state": "broken"}}
    await run.create("s", {name: thing(things, create=broken) for name in "ab"})
    assert await run.until_ended("s") == "CREATE_FAILED"
    physical = await ids(run)
    things.objects[physical["b"]]["size"] = 9
    drift = await observed(run)
    # What else differs is not certain, and the next update replaces the resource anyway.
    assert (drift["observable_resources"], states(drift)) == (2, {})
    del things.objects[physical["a"]]
    assert states(await observed(run)) == {"a": "missing"}
    body = {
        "heat_template_version": "2018-08-31",
        "resources": {name: thing(things) for name in "ab"},
    }
    await run.update("s", "PUT", template=body, converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert len(things.objects) == 2 and states(await observed(run)) == {}


async def test_a_resource_whose_check_failed_is_observed_like_any_other(
    run: Program, things: Things
) -> None:
    physical = await created(run, {name: thing(things) for name in "ab"})
    found = things.objects[physical["a"]]
    found["state"] = "broken"
    await run.act("s", "check")
    assert await run.until_ended("s") == "CHECK_FAILED"
    assert states(await observed(run)) == {"a": "degraded"}
    found |= {"state": "ready", "size": 9}
    assert states(await observed(run)) == {"a": "changed"}
    del things.objects[physical["a"]]
    assert states(await observed(run)) == {"a": "missing"}
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    after = await ids(run)
    assert set(things.objects) == set(after.values()) and after["b"] == physical["b"]


async def test_a_resource_that_changes_meanwhile_is_not_shown(run: Program, things: Things) -> None:
    physical = await created(run, {"a": thing(things)})
    del things.objects[physical["a"]]
    assert states(await observed(run)) == {"a": "missing"}
    resources = {"a": thing(things, size=2, update=None)}
    body = {"heat_template_version": "2018-08-31", "resources": resources}
    await run.update("s", "PUT", template=body)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    drift = await run.stack_request("GET", "s", "/drift")
    assert drift["resources"] == []


async def test_a_missing_external_resource_is_shown_and_left_alone(
    run: Program, things: Things
) -> None:
    things.objects["foreign"] = {"id": "foreign", "size": 1, "state": "ready"}
    await created(run, {"a": thing(things) | {"external_id": "foreign"}})
    del things.objects["foreign"]
    assert states(await observed(run)) == {"a": "missing"}
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert things.requests["create"] == 0 and states(await observed(run)) == {"a": "missing"}


async def test_unknown_stacks_and_readers_are_refused(run: Program, things: Things) -> None:
    status, document = await run.call("GET", "/stacks/none/0/drift")
    assert status == 404 and document["error"]["type"] == "EntityNotFound"
    await created(run, {"a": thing(things)})
    status, document = await run.call(
        "PATCH", f"/stacks/s/{await stack_id(run)}", {"converge": "soon"}
    )
    assert status == 400 and "converge" in str(document)


@pytest.mark.parametrize("source", ["read", "list"])
async def test_an_update_that_changes_only_the_path_of_the_id_fails_at_once_and_names_its_id(
    run: Program, things: Things, source: str
) -> None:
    """Nothing was sent, so that no later response can have the former ID there."""
    ready = {"path": "$.state", "values": ["ready"], "source": source}
    one = thing(things, create={"url": "/things", "body": {"size": 1, "name": "n1"}}, ready=ready)
    physical = await created(run, {"a": one})
    one["properties"]["id"] = "$.name"
    before = things.requests.copy()
    await put(run, "s", {"a": one})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    resource = (await run.resources("s"))["a"]
    reason = resource["resource_status_reason"]
    assert reason.startswith("read: the response has another ID at $.name"), reason
    assert f'"{physical["a"]}"' in reason
    assert things.requests["read"] - before["read"] == 1
    # With the former path, the next update succeeds.
    one["properties"]["id"] = "$.id"
    await put(run, "s", {"a": one})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await ids(run) == physical


@pytest.mark.parametrize("readable", [True, False], ids=["read", "list only"])
async def test_an_object_whose_id_the_list_writes_differently_is_not_missing(
    run: Program, things: Things, readable: bool
) -> None:
    """A repair would create a second one. Nor is it another object with such an ID."""
    one = thing(things)
    if not readable:
        for name in ("read", "ready"):
            del one["properties"][name]
    physical = (await created(run, {"a": one}))["a"]
    # The list has "T1"; by itself, the object is found.
    own = things.objects.pop(physical)
    things.objects["other"] = own | {"id": physical.upper(), "size": 7}
    if readable:
        things.objects[physical] = own
        things.listed_ids = ["other"]
    (*found,) = (await observed(run))["resources"]
    if readable:
        assert found == []
    else:
        assert [found[0]["state"], found[0]["differences"]] == ["unknown", []]
        assert (
            f'"{physical.upper()}"' in found[0]["reason"] and f'"{physical}"' in found[0]["reason"]
        )
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert things.requests["create"] == 1 and things.requests["update"] == 0
