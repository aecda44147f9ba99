"""An unexpected error fails the node that caused it: stacks of other projects complete, and the
process continues.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from engine.store.fault_points import inject_fault
from tests.support.program import Http, Json, Program, program, resource
from tests.support.raising_type import TEXT, Raising
from tests.support.receiver import until

INTERNAL = re.compile(r"internal error ([0-9a-f]{32}) \(see the server's log\)")
OTHER_STACK: Json = {"type": "Test::Raising"}
QUICK = {"engine.poll": "1s", "engine.lease": "1s"}


def create_other(run: Program) -> Http:
    """Create a stack of another project in the same process."""
    return Http(run.session, run.url, "another")


async def check_healthy(run: Program, name: str = "bystander") -> None:
    tenant = create_other(run)
    await tenant.create(name, {"a": resource(), "b": resource(depends_on="a")})
    assert await tenant.until_ended(name) == "CREATE_COMPLETE"


def check_reported(reason: str, logs: list[MutableMapping[str, Any]]) -> None:
    """The reason has an ID, under which the log has the traceback."""
    found = INTERNAL.search(reason)
    assert found, reason
    (line,) = [one for one in logs if one.get("error_id") == found[1]]
    assert line["event"] == "internal.error"
    assert "File " in line["where"]
    assert TEXT not in str(logs)


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return QUICK


@pytest.fixture(scope="module")
def shared_types() -> Sequence[Raising]:
    return [Raising([], ValueError)]


@pytest.fixture
def raising(shared_types: Sequence[Raising]) -> Iterator[Raising]:
    """The type of the shared program, which raises as a test says."""
    (only,) = shared_types
    yield only
    only.change([], ValueError)


@asynccontextmanager
async def run_program(url: str) -> AsyncIterator[Program]:
    async with program(url, QUICK) as run:
        yield run


@pytest.mark.parametrize("stage", ["prepare", "start", "judge", "decide"])
async def test_an_error_in_a_stage_fails_its_node(database_url: str, stage: str) -> None:
    async with run_program(database_url) as run:
        with capture_logs() as logs, inject_fault(f"worker.{stage}@victim:all:raise"):
            await run.create("s", {"victim": resource(), "beside": resource()})
            assert await run.until_ended("s") == "CREATE_FAILED"
            await check_healthy(run)
        failed = (await run.resources("s"))["victim"]
        assert failed["resource_status"] == "CREATE_FAILED"
        check_reported(failed["resource_status_reason"], logs)
        check_reported((await run.stack("s"))["stack_status_reason"], logs)
        await run.update("s", template=(await run.stack_request("GET", "s", "/template")))
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
    async with run_program(database_url) as again:
        await check_healthy(again, "afterwards")


async def test_an_error_outside_of_the_operations_guard_fails_its_node(
    in_own_project: Program, raising: Raising
) -> None:
    raising.change([], ValueError, waits=True)
    run = in_own_project
    with capture_logs() as logs, inject_fault("worker.await@victim:all:raise"):
        await run.create("s", {"victim": OTHER_STACK})
        assert await run.until_ended("s") == "CREATE_FAILED"
        await check_healthy(run)
    check_reported((await run.stack("s"))["stack_status_reason"], logs)


@pytest.mark.parametrize("also", ["decide", "fail"])
async def test_an_error_while_a_failure_is_handled_fails_the_node(
    in_own_project: Program, raising: Raising, also: str
) -> None:
    """The first fault fails the node; the second one is in the handling of the first."""
    raising.change(["reference"], ValueError)
    run = in_own_project
    with capture_logs() as logs, inject_fault(f"worker.{also}@victim:all:raise"):
        await run.create("s", {"victim": OTHER_STACK})
        assert await run.until_ended("s") == "CREATE_FAILED"
        await check_healthy(run)
    failed = (await run.resources("s"))["victim"]
    assert failed["resource_status"] == "CREATE_FAILED"
    assert failed["physical_resource_id"] == "victim"
    check_reported(failed["resource_status_reason"], logs)
    events = [one for one in await run.events("s") if one["resource_name"] == "victim"]
    assert events[-1]["resource_status"] == "CREATE_FAILED"


@pytest.mark.parametrize("point", ["measure", "renew", "rest"])
async def test_an_error_in_a_background_loop_fails_no_node(database_url: str, point: str) -> None:
    with capture_logs() as logs, inject_fault(f"worker.{point}:all:raise"):
        async with run_program(database_url) as run:
            await check_healthy(run)
            await until(lambda: any(one["event"] == "internal.error" for one in logs))
            await check_healthy(run, "later")


async def test_an_error_at_the_end_of_a_traversal_fails_the_traversal(
    in_own_project: Program,
) -> None:
    run = in_own_project
    with capture_logs() as logs:
        with inject_fault("worker.end:all:raise"):
            await run.create("s", {"a": resource()})
            assert await run.until_ended("s") == "CREATE_FAILED"
        await check_healthy(run)
    check_reported((await run.stack("s"))["stack_status_reason"], logs)


async def test_an_error_at_the_end_of_many_traversals_fails_none(in_own_project: Program) -> None:
    """Each of them is then ended by itself."""
    run = in_own_project
    with capture_logs() as logs, inject_fault("worker.end:1:raise"):
        await run.create("s", {"a": resource()})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert [one["stage"] for one in logs if one["event"] == "internal.error"] == ["end"]


@pytest.mark.parametrize("error", [ValueError, SystemExit, asyncio.CancelledError, GeneratorExit])
@pytest.mark.parametrize("waits", [False, True])
async def test_system_exit_and_cancellation_in_a_type_fail_its_node(
    in_own_project: Program, raising: Raising, error: Callable[[str], BaseException], waits: bool
) -> None:
    raising.change(["create"], error, waits=waits)
    run = in_own_project
    with capture_logs() as logs:
        await run.create("s", {"victim": OTHER_STACK})
        assert await run.until_ended("s") == "CREATE_FAILED"
        await check_healthy(run)
    assert "failed unexpectedly" in (await run.stack("s"))["stack_status_reason"]
    assert any(one["event"] == "operation.failed" for one in logs)


@pytest.mark.parametrize("method", ["reference", "needs_replace"])
async def test_an_error_of_a_type_outside_of_operations_fails_its_node(
    in_own_project: Program, raising: Raising, method: str
) -> None:
    raising.change([method], ValueError)
    run = in_own_project
    with capture_logs() as logs:
        await run.create("s", {"victim": OTHER_STACK})
        await run.until_ended("s")
        changed = {"victim": {**OTHER_STACK, "properties": {"size": 2}}}
        await run.update("s", template={"heat_template_version": "2018-08-31",
                                        "resources": changed})  # fmt: skip
        assert await run.until_ended("s") == "UPDATE_FAILED"
        await check_healthy(run)
    check_reported((await run.stack("s"))["stack_status_reason"], logs)
    await run.stack_request("DELETE", "s")
    assert (await run.call("GET", "/stacks/s"))[0] in (200, 404)


async def test_a_hidden_parameter_of_group_members_is_masked_as_a_map(
    in_own_project: Program,
) -> None:
    """The properties of members are secret as one value, which is a map."""
    run = in_own_project
    inner: Json = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}
    group: Json = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 1, "resource_def": inner},
    }
    template: Json = {
        "heat_template_version": "2021-04-16",
        "parameters": {"p": {"type": "string", "hidden": True}},
        "resources": {"src": group},
    }
    _, previewed = await run.call(
        "POST", "/stacks/preview",
        {"stack_name": "boom", "template": template, "parameters": {"p": "geheim"}},
    )  # fmt: skip
    assert "geheim" not in str(previewed)
    await run.create("boom", {}, template=template, parameters={"p": "geheim"})
    assert await run.until_ended("boom") == "CREATE_COMPLETE"
    resources = await run.resources("boom")
    assert "geheim" not in str(resources)
