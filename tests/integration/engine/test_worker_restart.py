"""An error in the worker's own loop, which no guard of a node has kept: logged, and begun anew."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from engine.work.node_runner import NodeRunner
from tests.support.program import Http, Json, Program, program, resource
from tests.support.raising import Raising
from tests.support.receiver import until

QUICK = {"engine.poll": "1s", "engine.lease": "1s"}
PLANTED = "planted-secret-93"
SLOW: Json = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 1}}
#: So often in a row the loop fails.
TIMES = 2


def other(run: Program) -> Http:
    return Http(run.session, run.url, "another")


@pytest.mark.parametrize(
    "target",
    [
        "engine.work.step_queue.StepQueue.take",
        "engine.work.worker.Worker._free_capacity",
        "engine.work.worker.Worker._rest",
        "engine.work.worker.Worker._recover",
    ],
)
async def test_an_error_of_the_loop_itself_begins_it_anew(
    database_url: str, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    left = TIMES

    def raises(*_: Any, **__: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            patch.undo()
        raise RuntimeError(PLANTED)

    with capture_logs() as logs, pytest.MonkeyPatch.context() as patch:
        async with program(database_url, QUICK) as run:
            await run.create("before", {"a": SLOW})
            patch.setattr(target, raises)
            if target.endswith("_recover"):
                patch.setattr("engine.work.worker.Worker._round", raises)
            run.engine.wake()
            await until(lambda: len(failures(logs)) >= 1, target)
            for tenant in (run, other(run)):
                await tenant.create("after", {"a": resource(), "b": resource(depends_on="a")})
                assert await tenant.until_ended("after") == "CREATE_COMPLETE"
            assert await run.until_ended("before") == "CREATE_COMPLETE"
            assert (await run.call("GET", "//readyz"))[0] == 200
            async with run.session.get(f"{run.url}/metrics") as answer:
                assert 'headgate_internal_errors_total{loop="worker"}' in await answer.text()
    assert {one["error"] for one in failures(logs)} == {"RuntimeError"}
    assert all(one["again_in"] > 0 for one in failures(logs))
    assert PLANTED not in repr(logs)


async def test_a_node_that_ends_the_loop_each_time_is_failed_and_no_other(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = NodeRunner._await

    async def poisoned(self: NodeRunner, job: Any, prepared: Any, outcome: Any, call: Any) -> None:
        if job.work.name == "victim":
            await outcome
            raise RuntimeError(PLANTED)
        await inner(self, job, prepared, outcome, call)

    monkeypatch.setattr(NodeRunner, "_await", poisoned)
    thing = {"type": "Test::Raising"}
    with capture_logs() as logs:
        async with program(database_url, QUICK, types=[Raising([], ValueError, waits=True)]) as run:
            await run.create("poison", {"victim": thing, "beside": thing})
            await other(run).create("good", {"a": thing, "b": {**thing, "depends_on": "a"}})
            assert await run.until_ended("poison") == "CREATE_FAILED"
            assert await other(run).until_ended("good") == "CREATE_COMPLETE"
            found = await run.resources("poison")
            assert "it ended its worker 3 times" in found["victim"]["resource_status_reason"]
            assert found["beside"]["resource_status"] == "CREATE_COMPLETE"
    assert len(failures(logs)) == 3
    assert PLANTED not in repr(logs)


def failures(logs: Any) -> list[Any]:
    return [one for one in logs if one["event"] == "worker.failed"]
