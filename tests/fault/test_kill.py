"""Processes that are killed with SIGKILL: all stacks still complete."""

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from engine.store.traversals.advance import MAX_EXPIRED_LEASES
from tests.support.program import PATIENCE, Http, ServerProcess, eventually, resource, template

TOUCH = shutil.which("touch") or "/usr/bin/touch"
SETTINGS = f"""
[engine]
lease = "2s"
poll = "1s"
[resource_types.command]
enabled = true
run_as = "server"
[[resource_types.command.programs]]
path = "{TOUCH}"
projects = ["*"]
arguments = ["r*"]
folders = ["/"]
"""
#: The number of kills during the creation of 18 resources.
KILLS = 6
HOOKS = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}


def new_session() -> aiohttp.TCPConnector:
    """A connection per request: persistent ones would end with their server."""
    return aiohttp.TCPConnector(force_close=True)


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory(prefix="headgate-fault-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        process = ServerProcess(folder, settings=SETTINGS)
        process.start()
        try:
            yield process
        finally:
            process.stop()


async def test_an_answer_after_a_crash_continues_the_stack(server: ServerProcess) -> None:
    async with aiohttp.ClientSession(connector=new_session()) as session:
        http = Http(session, server.url)
        await http.create("s", {"a": resource(), "b": resource(depends_on="a")}, environment=HOOKS)
        (hook,) = await http.waiting_hooks("s")
        server.kill()
        server.start()
        (repeated,) = await http.waiting_hooks("s")
        assert repeated["id"] == hook["id"] and repeated["deadline"] == hook["deadline"]
        assert (await http.signal(hook))[0] == 200
        assert await http.until_ended("s") == "CREATE_COMPLETE"


async def test_a_deadline_survives_a_crash(server: ServerProcess) -> None:
    rule = {"hooks": [{"at": "b", "on": "pre-create", "timeout": "3s"}]}
    async with aiohttp.ClientSession(connector=new_session()) as session:
        http = Http(session, server.url)
        await http.create("s", {"b": resource()}, environment=rule)
        await http.waiting_hooks("s")
        server.kill()
        server.start()
        assert await http.until_ended("s") == "CREATE_STOPPED"


async def test_signals_and_their_deadline_survive_a_crash(
    server: ServerProcess,
) -> None:
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    wanted = {"handle": {"get_resource": "h"}, "timeout": 600, "count": 2}
    condition = {"type": "OS::Heat::WaitCondition", "properties": wanted}
    document = template({"h": handle, "w": condition}, outputs={
        "data": {"value": {"get_attr": ["w", "data"]}}})  # fmt: skip
    async with aiohttp.ClientSession(connector=new_session()) as session:
        http = Http(session, server.url)
        await http.call("POST", "/stacks", {"stack_name": "s", "template": document})
        before = await waits_until(http, "w")
        await http.stack_request("POST", "s", "/resources/h/signal", {"id": "a", "data": 1})
        server.kill()
        server.start()
        await eventually(partial(waits_until_exactly, http, "w", before))
        await http.stack_request("POST", "s", "/resources/h/signal", {"id": "b", "data": 2})
        assert await http.until_ended("s") == "CREATE_COMPLETE"
        (output,) = (await http.stack("s"))["outputs"]
        assert output["output_value"] == '{"a":1,"b":2}'


async def waits_until(http: Http, name: str) -> str:
    """The time until which the resource waits, once it waits."""

    async def check() -> str | None:
        since, until = await times_of_wait(http, name)
        return until if since is not None and until is not None and until > since else None

    return str(await eventually(check))


async def waits_until_exactly(http: Http, name: str, expected: str) -> bool:
    """A signal makes the resource due at once; after that check it waits for its deadline."""
    return (await times_of_wait(http, name))[1] == expected


async def times_of_wait(http: Http, name: str) -> tuple[str | None, str | None]:
    nodes = (await http.stack_request("GET", "s", "/why"))["nodes"]
    return next(
        ((one["since"], one["until"]) for one in nodes if one["resource_name"] == name),
        (None, None),
    )


async def test_a_running_operation_continues_with_its_progress(server: ServerProcess) -> None:
    slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 2}}
    async with aiohttp.ClientSession(connector=new_session()) as session:
        http = Http(session, server.url)
        await http.create("s", {"slow": slow, "after": resource(depends_on="slow")})
        server.kill()
        server.start()
        assert await http.until_ended("s") == "CREATE_COMPLETE"
        started = [
            event
            for event in first_calls(await http.events("s"))
            if event["resource_name"] == "slow" and event["resource_status"] == "CREATE_IN_PROGRESS"
        ]
        assert len(started) == 1


async def test_kills_at_random_times_lose_no_work_and_run_no_unapproved_operation(
    server: ServerProcess,
) -> None:
    """Each resource creates a file after a hook: no file without an answer."""
    chance = random.Random(20_261)
    files = server.folder / "files"
    files.mkdir()
    names = [f"r{n:02}" for n in range(18)]
    resources = {
        name: {
            "type": "Headgate::Command",
            "depends_on": names[max(0, n - 6) : max(0, n - 4)],
            "properties": {"create": [TOUCH, name], "cwd": str(files)},
        }
        for n, name in enumerate(names)
    }
    sent: set[str] = set()
    lost = Counter[str]()  # how often a kill may have ended the operation on a resource
    kills = requests = 0
    async with aiohttp.ClientSession(connector=new_session()) as session:
        http = Http(session, server.url)
        body = {
            "stack_name": "s",
            "template": template(resources),
            "environment": {"hooks": [{"at": "*", "on": "pre-create"}]},
        }
        assert (await http.call("POST", "/stacks", body))[0] == 201
        next_kill = time.monotonic() + chance.uniform(0.1, 0.6)
        end = time.monotonic() + 3 * PATIENCE
        while time.monotonic() < end:
            assert {path.name for path in files.iterdir()} <= sent
            if kills < KILLS and time.monotonic() > next_kill:
                status_of = await http.resources("s")
                unfinished = {
                    name for name in sent
                    if status_of[name]["resource_status"] != "CREATE_COMPLETE"
                }  # fmt: skip
                if any(lost[name] == MAX_EXPIRED_LEASES - 1 for name in unfinished):
                    continue  # another kill could end an operation for good, as it must
                lost.update(unfinished)
                server.kill()
                assert {path.name for path in files.iterdir()} <= sent
                server.start()
                kills += 1
                next_kill = time.monotonic() + chance.uniform(0.05, 0.8)
            status, hooks = await http.call("GET", "/hooks?state=waiting")
            assert status == 200
            # work is left until the last kill
            most = len(names) if kills == KILLS else min(3 * (kills + 1), len(names) - 1)
            budget = most - len(sent)
            for hook in hooks["hooks"][: min(chance.randint(0, 2), max(0, budget))]:
                sent.add(hook["resource_name"])
                status, response = await http.signal(hook)
                requests += 1
                assert status == 200, response
            if (await http.stack("s"))["stack_status"] != "CREATE_IN_PROGRESS":
                break
        stack = await http.stack("s")
        assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
        assert {path.name for path in files.iterdir()} == set(names) == sent
        await check_history(http, names)
    print(f"{kills} kills, {requests} answers, 0 lost, 0 run without an answer")
    assert kills == KILLS


async def check_history(http: Http, names: list[str]) -> None:
    """Each hook was opened and answered once, before its operation started."""
    events: list[Any] = await http.events("s")
    for name in names:
        operations = [
            e["resource_status_reason"] for e in first_calls(events) if e["resource_name"] == name
        ]
        assert operations == [
            "CREATE paused until Hook pre-create is cleared",
            "Hook pre-create is cleared",
            "state changed",
            "state changed",
        ], (name, operations)


async def test_a_stopped_server_ends_in_order_and_continues_after_a_restart(
    server: ServerProcess,
) -> None:
    async with aiohttp.ClientSession(connector=new_session()) as session:
        http = Http(session, server.url)
        await http.create("s", {"b": resource()}, environment=HOOKS)
        (hook,) = await http.waiting_hooks("s")
        assert server.stop() == 0
        server.start()

        async def answered() -> bool:
            return (await http.signal(hook))[0] == 200

        await eventually(answered)
        assert await http.until_ended("s") == "CREATE_COMPLETE"


def first_calls(events: list[Any]) -> list[Any]:
    """The events without those of repeated operation calls."""
    again = "called again with the same operation key"
    return [event for event in events if not event["resource_status_reason"].startswith(again)]
