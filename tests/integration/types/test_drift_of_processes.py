"""Real services, processes of their own, that change behind Headgate's back in every way.

Objects of a service are deleted, changed and created again under another ID; the service refuses
connections, flaps, is slow, throttles, and changes between the pages of its list. The service of
examples/web-service is killed, suspended and replaced by hand.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.changes import observed
from tests.support.forks import is_running
from tests.support.http_things import HTTP_SETTINGS
from tests.support.http_things import thing as http_thing
from tests.support.program import Json, Program, eventually, program, template
from tests.support.thing_process import ThingProcess, thing_process

SERVICE = Path(__file__).parents[3] / "examples" / "web-service"
NOTIFY: Json = {"observe": {"every": "1h"}, "on_drift": "notify"}
SETTINGS: dict[str, Any] = HTTP_SETTINGS | {
    # A service that does not answer is waited for no longer.
    "resource_types.http.timeout": "2s",
    "resource_types.http.connect_timeout": "2s",
    "resource_types.command.enabled": True,
    "resource_types.command.run_as": "server",
    "resource_types.command.variables": ["CONFIG", "RELEASE"],
    "resource_types.command.programs": [
        {"path": sys.executable, "projects": ["*"], "arguments": ["**"], "folders": ["/"]}
    ],
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ThingProcess]:
    with thing_process(tmp_path) as running:
        yield running


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, SETTINGS) as running:
        yield running


def thing(service: ThingProcess, size: int = 1) -> Json:
    return http_thing(service, size)  # type: ignore[arg-type]


async def created(
    run: Program, resources: Json, name: str = "s", policy: Json = None
) -> dict[str, str]:
    """Create a stack; return the physical ID of each resource."""
    environment = {"convergence": policy} if policy else {}
    await run.create(name, resources, environment=environment)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)
    return await ids(run, name)


async def ids(run: Program, name: str = "s") -> dict[str, str]:
    return {key: one["physical_resource_id"] for key, one in (await run.resources(name)).items()}


async def drift_of(run: Program, name: str = "s") -> dict[str, tuple[str, str]]:
    """(state, reason) of the resources that differ, after a new observation."""
    found = (await observed(run, name))["resources"]
    return {one["resource_name"]: (one["state"], one["reason"] or "") for one in found}


async def converged(run: Program, name: str = "s") -> None:
    await run.update(name, converge=True)
    assert await run.until_ended(name) == "UPDATE_COMPLETE", await run.events(name)


async def test_deleted_changed_and_recreated_objects_are_found_and_repaired(
    run: Program, service: ThingProcess
) -> None:
    before = await created(run, {name: thing(service) for name in ("a", "b", "c", "same")})
    assert await drift_of(run) == {}
    with service.changing() as state:
        objects = state["objects"]
        del objects[before["a"]]
        objects[before["b"]]["size"] = 9
        objects["other"] = {**objects.pop(before["c"]), "id": "other"}
    found = {name: state for name, (state, _) in (await drift_of(run)).items()}
    assert found == {"a": "missing", "b": "changed", "c": "missing"}
    await converged(run)
    after = await ids(run)
    assert (after["b"], after["same"]) == (before["b"], before["same"])
    assert {after["a"], after["c"]}.isdisjoint({before["a"], before["c"], "other"})
    # The object that another client created is unchanged.
    assert set(service.objects) == {*after.values(), "other"}
    assert {one["size"] for one in service.objects.values()} == {1}
    assert await drift_of(run) == {}


REPAIR: Json = {"observe": {"every": "1h"}, "on_drift": "repair"}


async def put(run: Program, resources: Json, **environment: Json) -> None:
    policy = {"convergence": REPAIR}
    await run.update("s", "PUT", template=template(resources), environment=policy | environment)


async def missing(run: Program) -> bool:
    return {name: state for name, (state, _) in (await drift_of(run)).items()} == {"a": "missing"}


async def test_an_object_that_is_deleted_during_an_update_and_its_stop_is_repaired_afterwards(
    run: Program, service: ThingProcess
) -> None:
    before = await created(run, {"a": thing(service), "b": thing(service, 1)}, policy=REPAIR)
    with service.changing() as state:  # updates end when their objects are ready
        state["objects"][before["b"]]["state"] = "building"
    await put(run, {"a": thing(service), "b": thing(service, 2)})
    await run.until_parked("s", 1)
    with service.changing() as state:
        del state["objects"][before["a"]]
    assert await missing(run)
    assert (await run.stack("s"))["stack_status"] == "UPDATE_IN_PROGRESS"
    await run.act("s", "stop")
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    assert await missing(run)
    # No repair starts from a change that is not complete.
    assert (await run.stack("s"))["stack_status"] == "UPDATE_STOPPED"
    assert set(service.objects) == {before["b"]}
    with service.changing() as state:
        state["objects"][before["b"]]["state"] = "ready"
    await put(run, {"a": thing(service), "b": thing(service, 2)})
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    await until_repaired(run, service)


async def test_an_object_that_is_deleted_while_a_hook_waits_is_repaired_after_the_change(
    run: Program, service: ThingProcess
) -> None:
    before = await created(run, {"a": thing(service), "b": thing(service)}, policy=REPAIR)
    hooks = {"resources": {"b": {"hooks": "pre-update"}}}
    await put(run, {"a": thing(service), "b": thing(service, 2)}, resource_registry=hooks)
    (hook,) = await run.waiting_hooks("s")
    with service.changing() as state:
        del state["objects"][before["a"]]
    assert await missing(run)
    assert [one["id"] for one in await run.waiting_hooks("s")] == [hook["id"]]
    assert (await run.stack("s"))["stack_status"] == "UPDATE_IN_PROGRESS"
    assert (await run.signal(hook))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    await until_repaired(run, service)
    assert sorted(one["size"] for one in service.objects.values()) == [1, 2]


async def until_repaired(run: Program, service: ThingProcess) -> None:
    """The next observation starts the repair."""

    async def repaired() -> bool:
        return await drift_of(run) == {} and (await ids(run))["a"] in service.objects

    await eventually(repaired)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")


async def test_a_refused_connection_is_unknown_until_the_service_is_back(
    run: Program, service: ThingProcess
) -> None:
    before = await created(run, {"a": thing(service), "b": thing(service)})
    service.kill()
    with service.changing() as state:
        del state["objects"][before["a"]]
    found = await drift_of(run)
    assert {name: state for name, (state, _) in found.items()} == dict.fromkeys("ab", "unknown")
    assert all("connect" in reason.lower() for _, reason in found.values()), found
    # Nothing is repaired on a guess.
    await converged(run)
    assert await ids(run) == before
    service.start()
    assert {name: state for name, (state, _) in (await drift_of(run)).items()} == {"a": "missing"}
    await converged(run)
    assert set(service.objects) == set((await ids(run)).values())


async def test_a_service_that_does_not_answer_is_unknown_until_it_does(
    run: Program, service: ThingProcess
) -> None:
    before = await created(run, {"a": thing(service)})
    with service.changing() as state:
        state["objects"][before["a"]]["size"] = 9
    service.suspend()
    try:
        ((state, reason),) = (await drift_of(run)).values()
    finally:
        service.resume()
    assert state == "unknown" and "no complete response within 2 s" in reason, reason
    found = await drift_of(run)
    assert found["a"][0] == "changed"


async def test_a_service_that_throttles_gets_no_request_until_it_allows_one(
    run: Program, service: ThingProcess
) -> None:
    await created(run, {"a": thing(service), "b": thing(service)})
    with service.changing() as state:
        state["fault"] = [429, "7200"]
    service.take_requests()
    found = await drift_of(run)
    assert {name: state for name, (state, _) in found.items()} == dict.fromkeys("ab", "unknown")
    assert all("429" in reason for _, reason in found.values()), found
    assert service.take_requests() == {"GET": 1}
    with service.changing() as state:
        state["fault"] = None
    # Also a user's request waits for the time that the service has named.
    assert set(await drift_of(run)) == {"a", "b"}
    assert service.take_requests() == {}
    _, why = await run.call("GET", f"/stacks/s/{(await run.stack('s'))['id']}/why")
    assert "429" in json.dumps(why["unknown"]), why
    await run.database.pool.execute(
        "with requests as (update failed_request set until = now())"
        " update provider_failure set until = now()"
    )
    assert await drift_of(run) == {}


async def test_a_service_that_flaps_is_reported_each_time_and_repaired_never(
    run: Program, service: ThingProcess
) -> None:
    before = await created(run, {"a": thing(service)}, policy=NOTIFY)
    tolerant = NOTIFY | {"tolerate": "30m"}
    tolerated = await created(run, {"a": thing(service)}, "t", tolerant)
    flapping = (before["a"], tolerated["a"])
    for _ in range(3):
        with service.changing() as state:
            gone = {one: state["objects"].pop(one) for one in flapping}
        for name in ("s", "t"):
            assert (await drift_of(run, name))["a"][0] == "missing"
        # Meanwhile it is away completely, which says nothing about its objects.
        service.kill()
        assert (await drift_of(run))["a"][0] == "unknown"
        service.start()
        with service.changing() as state:
            state["objects"] |= gone
        for name in ("s", "t"):
            assert await drift_of(run, name) == {}
    assert await reports(run, "s") == [("detected", "missing"), ("resolved", "present")] * 3
    assert await reports(run, "t") == []
    assert await ids(run) == before and set(service.objects) == set(flapping)


async def reports(run: Program, name: str) -> list[tuple[str, str]]:
    """The events about drift: (moment, state)."""
    history = await run.stack_request("GET", name, "/history")
    prefix = "headgate.resource.drift."
    return [
        (one["type"].removeprefix(prefix), one["data"]["drift"]["state"])
        for one in history["events"]
        if one["type"].startswith(prefix)
    ]


async def test_a_list_that_changes_between_its_pages_hides_no_object(
    run: Program, service: ThingProcess
) -> None:
    with service.changing() as state:
        state["objects"]["foreign"] = {"id": "foreign", "size": 9}
    physical = await created(run, {f"r{index}": thing(service) for index in range(8)})
    names = {one: name for name, one in physical.items()}
    with service.changing() as state:
        # An object of the first page goes, and the following ones move up.
        state["between_pages"] = ["foreign"]
    service.take_requests()
    assert await drift_of(run) == {}
    assert "foreign" not in service.objects
    # A second list found the one that had moved.
    assert service.take_requests()["GET"] > 3
    with service.changing() as state:
        # One goes that no page has shown yet.
        state["between_pages"] = [list(state["objects"])[-1]]
        gone = names[state["between_pages"][0]]
    assert {name: state for name, (state, _) in (await drift_of(run)).items()} == {gone: "missing"}


def script(name: str, operation: str) -> list[str]:
    return [sys.executable, str(SERVICE / name), operation]


def web_service(folder: Path) -> Json:
    """The resource `service` of examples/web-service/web.yaml, with a configuration."""
    config = folder / "config.json"
    config.write_text(json.dumps({"secret": "x"}))
    return {
        "type": "Headgate::Command",
        "properties": {
            "create": script("service.py", "start"),
            "check": script("service.py", "check"),
            "delete": script("service.py", "stop"),
            "cwd": str(folder),
            "timeout": 20,
            "environment": {"CONFIG": str(config), "RELEASE": "1"},
        },
    }


def pid_of(folder: Path, physical_id: str) -> int:
    return int((folder / f"service-{physical_id}.pid").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """For the files of web services, which end with the test."""
    found = tmp_path / "web"
    found.mkdir()
    yield found
    for file in found.glob("service-*.pid"):
        pid = int(file.read_text() or 0)
        if pid and is_running(pid):
            os.kill(pid, signal.SIGKILL)


async def test_a_web_service_that_is_killed_suspended_or_misconfigured_is_degraded(
    run: Program, folder: Path
) -> None:
    (physical_id,) = (await created(run, {"web": web_service(folder)})).values()
    assert await drift_of(run) == {}
    pid, config = pid_of(folder, physical_id), folder / "config.json"
    os.kill(pid, signal.SIGSTOP)
    try:
        assert (await drift_of(run))["web"][0] == "degraded"
    finally:
        os.kill(pid, signal.SIGCONT)
    assert await drift_of(run) == {}
    config.rename(folder / "away")
    state, reason = (await drift_of(run))["web"]
    assert state == "degraded" and "503" in reason
    (folder / "away").rename(config)
    assert await drift_of(run) == {}
    os.kill(pid, signal.SIGKILL)

    async def is_dead() -> bool:
        return not is_running(pid)

    await eventually(is_dead)
    state, reason = (await drift_of(run))["web"]
    assert state == "degraded" and "refused" in reason.lower(), reason
    # Without `update`, it is checked again and never replaced: the operator starts it again.
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert list((await ids(run)).values()) == [physical_id]
    environment = {**os.environ, "HEADGATE_OPERATION_KEY": physical_id, "CONFIG": str(config)}
    subprocess.run(
        script("service.py", "start"), cwd=folder, check=True, timeout=60,
        env={**environment, "RELEASE": "1"}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert pid_of(folder, physical_id) != pid
    await converged(run)
    assert await drift_of(run) == {}


async def test_a_web_service_that_was_replaced_by_another_one_is_degraded(
    run: Program, folder: Path
) -> None:
    (physical_id,) = (await created(run, {"web": web_service(folder)})).values()
    environment = {**os.environ, "CONFIG": str(folder / "config.json"), "RELEASE": "1"}
    for operation, key in (("stop", physical_id), ("start", "another")):
        names = {"HEADGATE_OPERATION_KEY": key, "HEADGATE_PHYSICAL_ID": key}
        subprocess.run(
            script("service.py", operation), cwd=folder, check=True, timeout=60,
            env=environment | names, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    assert (await drift_of(run))["web"][0] == "degraded"
    other = pid_of(folder, "another")
    await run.stack_request("DELETE", "s")

    async def is_deleted() -> bool:
        return (await run.call("GET", "/stacks/s"))[0] == 404

    await eventually(is_deleted)
    # The instance of the other one still runs.
    assert is_running(other)
