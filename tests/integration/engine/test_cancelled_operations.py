"""A delete, a cancel and a timeout end operations that wait: in real programs, with operations that
would take longer than the test may."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.support.forks import is_running
from tests.support.program import Json, Program, program

#: Seconds; the time limit of a test is shorter.
LONG = 600
NESTED = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "inner": {
            "type": "OS::Heat::TestResource",
            "properties": {"action_wait_secs": {"create": LONG, "update": LONG}},
        }
    },
}


COMMANDS = {
    "resource_types.command.enabled": True,
    "resource_types.command.run_as": "server",
    "resource_types.command.programs": [
        {"path": sys.executable, "projects": ["*"], "arguments": ["**"], "folders": ["/"]}
    ],
}


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return {
        **COMMANDS,
        "resource_types.http.enabled": True,
        "resource_types.http.allow": ["127.0.0.0/8"],
        "engine.action_retry_limit": 1000,
    }


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


def waiting(**seconds: int) -> Json:
    return {"type": "OS::Heat::TestResource", "properties": {"action_wait_secs": seconds}}


async def until(condition: Callable[[], Awaitable[bool] | bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            met = condition()
            if await met if isinstance(met, Awaitable) else met:
                return
            await asyncio.sleep(0.02)


async def until_gone(run: Program, name: str) -> None:
    async def is_gone() -> bool:
        return (await run.call("GET", f"/stacks/{name}"))[0] == 404

    await until(is_gone)


async def until_parked(run: Program, name: str) -> None:
    """Until the operation of a resource of any stack waits for its timer."""
    query = "select count(*) from node where name = $1 and state = 'parked' and phase = 'execute'"

    async def is_parked() -> bool:
        return bool(await run.database.pool.fetchval(query, name))

    await until(is_parked)


async def reasons(run: Program, name: str, status: str) -> set[str]:
    query = "select reason from event where resource_name = $1 and status = $2"
    return {row["reason"] for row in await run.database.pool.fetch(query, name, status)}


CANCELLED = "the change was cancelled before the operation ended"


@pytest.mark.parametrize("seconds", [LONG, -1], ids=["ten minutes", "forever"])
async def test_a_delete_ends_a_create_that_waits(run: Program, seconds: int) -> None:
    await run.create("s", {"a": waiting(create=seconds), "b": waiting()})
    await until_parked(run, "a")
    await run.stack_request("DELETE", "s")
    await until_gone(run, "s")
    assert await reasons(run, "a", "FAILED") == {CANCELLED}


async def test_a_delete_ends_the_waits_of_a_nested_stack(run: Program) -> None:
    files = {"inner.yaml": json.dumps(NESTED)}
    await run.create("s", {"a": {"type": "inner.yaml"}}, files=files)
    await until_parked(run, "inner")
    await run.stack_request("DELETE", "s")
    await until_gone(run, "s")


async def test_a_delete_ends_a_wait_that_outlasted_an_update_and_a_stop(run: Program) -> None:
    await run.create("s", {"a": waiting(create=LONG)})
    await until_parked(run, "a")
    await run.update("s", "PUT", template=template_of({"a": waiting(create=LONG), "b": waiting()}))
    await run.act("s", "stop")
    assert "parked" in await operation_states(run, "a")
    await run.stack_request("DELETE", "s")
    await until_gone(run, "s")


def template_of(resources: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources}


async def operation_states(run: Program, name: str) -> set[str]:
    query = "select state from node where name = $1 and operation = 'create'"
    return {row["state"] for row in await run.database.pool.fetch(query, name)}


@pytest.mark.parametrize("how", ["update", "stop"])
async def test_an_update_and_a_stop_leave_a_create_that_waits(run: Program, how: str) -> None:
    """The next change needs its result."""
    await run.create("s", {"a": waiting(create=LONG)})
    await until_parked(run, "a")
    if how == "stop":
        await run.act("s", "stop")
    else:
        changed = {"a": waiting(create=LONG), "b": waiting()}
        await run.update("s", "PUT", template=template_of(changed))
        await until_complete(run, "b")
    assert "parked" in await operation_states(run, "a")
    assert await run.database.pool.fetchval("select bool_or(cancelled) from node") is False


async def until_complete(run: Program, name: str) -> None:
    async def is_complete() -> bool:
        return bool((await run.resources("s"))[name]["resource_status"] == "CREATE_COMPLETE")

    await until(is_complete)


async def test_a_cancel_ends_an_update_that_waits(run: Program) -> None:
    await run.create("s", {"a": waiting(update=LONG)})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    changed = waiting(update=LONG)
    changed["properties"]["value"] = "new"
    await run.update("s", "PUT", template=template_of({"a": changed}))
    await until_parked(run, "a")
    await run.act("s", "cancel_without_rollback")

    async def is_failed() -> bool:
        return bool((await run.resources("s"))["a"]["resource_status"] == "UPDATE_FAILED")

    await until(is_failed)
    assert (await run.stack("s"))["stack_status_reason"] == "Stack UPDATE cancelled"


async def test_an_update_after_a_cancel_does_not_wait(run: Program) -> None:
    await run.create("s", {"a": waiting(create=LONG)})
    await until_parked(run, "a")
    await run.act("s", "cancel_without_rollback")
    await run.update("s", "PUT", template=template_of({"a": waiting()}))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


class Service:
    """An HTTP service whose objects are never ready."""

    def __init__(self) -> None:
        self.objects: set[str] = set()
        self.reads = 0
        self.busy = False

    async def create(self, request: web.Request) -> web.Response:
        if self.busy:
            return web.Response(status=503)
        self.objects.add("7")
        return web.json_response({"id": "7"}, status=201)

    async def read(self, request: web.Request) -> web.Response:
        self.reads += 1
        return web.json_response({"state": "making"})

    async def delete(self, request: web.Request) -> web.Response:
        self.objects.remove(request.match_info["id"])
        return web.Response(status=204)


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/objects", service.create)
    app.router.add_get("/objects/{id}", service.read)
    app.router.add_delete("/objects/{id}", service.delete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def http_object(url: str) -> Json:
    return {
        "type": "Headgate::HTTP",
        "properties": {
            "base": url,
            "create": {"url": "/objects", "body": {}},
            "id": "$.id",
            "read": {"url": "/objects/${id}"},
            "ready": {"path": "$.state", "values": ["ready"]},
            "delete": {"url": "/objects/${id}"},
            "timeout": LONG,
            "interval": LONG,
        },
    }


async def test_a_delete_ends_the_polls_of_a_service_and_deletes_the_object(run: Program) -> None:
    service = Service()
    async with serving(service) as url:
        await run.create("s", {"a": http_object(url)})
        await until(lambda: service.reads > 0)
        await until_parked(run, "a")
        await run.stack_request("DELETE", "s")
        await until_gone(run, "s")
    assert service.objects == set()


async def test_a_delete_ends_the_retries_of_a_request(run: Program) -> None:
    service = Service()
    service.busy = True
    async with serving(service) as url:
        await run.create("s", {"a": http_object(url)})
        await until_parked(run, "a")
        await run.stack_request("DELETE", "s")
        await until_gone(run, "s")


def command(folder: Path, code: str) -> Json:
    python = [sys.executable, "-c"]
    return {
        "type": "Headgate::Command",
        "properties": {
            "create": [*python, code],
            "delete": [*python, f"open({str(folder / 'deleted')!r}, 'w').close()"],
            "timeout": LONG,
        },
    }


def sleeping(folder: Path, name: str) -> str:
    """Writes its process ID, and sleeps."""
    file = str(folder / name)
    return (
        "import os, time; "
        f"open({file + '.new'!r}, 'w').write(str(os.getpid())); "
        f"os.rename({file + '.new'!r}, {file!r}); time.sleep({LONG})"
    )


async def test_a_delete_ends_the_process_of_a_command_and_runs_its_delete(
    run: Program, tmp_path: Path
) -> None:
    await run.create("s", {"a": command(tmp_path, sleeping(tmp_path, "pid"))})
    await until((tmp_path / "pid").exists)
    process = int((tmp_path / "pid").read_text())
    await run.stack_request("DELETE", "s")
    await until_gone(run, "s")
    assert not is_running(process)
    assert (tmp_path / "deleted").exists()


async def test_an_update_leaves_the_process_of_a_command(run: Program, tmp_path: Path) -> None:
    first = command(tmp_path, sleeping(tmp_path, "pid"))
    await run.create("s", {"a": first})
    await until((tmp_path / "pid").exists)
    process = int((tmp_path / "pid").read_text())
    await run.update("s", "PUT", template=template_of({"a": first, "b": waiting()}))
    await until_complete(run, "b")
    assert is_running(process)
    await run.stack_request("DELETE", "s")
    await until_gone(run, "s")
    assert not is_running(process)


async def test_a_lost_notification_delays_the_end_of_a_process_until_its_lease_is_renewed(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.store.traversals.end.NOTIFY_CANCELLED", "select 1")
    async with program(database_url, {**COMMANDS, "engine.lease": "3s"}) as run:
        await run.create("s", {"a": command(tmp_path, sleeping(tmp_path, "pid"))})
        await until((tmp_path / "pid").exists)
        await run.stack_request("DELETE", "s")
        await until_gone(run, "s")
