"""An error in the worker's loop that no guard of a node catches: it is logged, and the loop starts
again.
"""

from typing import Any

import pytest
from structlog.testing import capture_logs

from engine.work.nodes.node_runner import NodeRunner
from tests.support.program import Http, Json, Program, program, resource
from tests.support.raising_type import Raising
from tests.support.receiver import until

QUICK = {"engine.poll": "1s", "engine.lease": "1s"}
ERROR_TEXT = "planted-secret-93"
SLOW: Json = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 1}}
#: The number of consecutive failures of the loop.
TIMES = 2


def create_other(run: Program) -> Http:
    return Http(run.session, run.url, "another")


@pytest.mark.parametrize(
    "target",
    [
        "engine.work.nodes.step_queue.StepQueue.take",
        "engine.work.nodes.worker.Worker._free_capacity",
        "engine.work.nodes.worker.Worker._sleep",
        "engine.work.nodes.worker.Worker._recover",
    ],
)
async def test_the_loop_restarts_after_an_error(
    database_url: str, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    left = TIMES

    def fail(*_: Any, **__: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            patch.undo()
        raise RuntimeError(ERROR_TEXT)

    with capture_logs() as logs, pytest.MonkeyPatch.context() as patch:
        async with program(database_url, QUICK) as run:
            await run.create("before", {"a": SLOW})
            patch.setattr(target, fail)
            if target.endswith("_recover"):
                patch.setattr("engine.work.nodes.worker.Worker._round", fail)
            run.engine.wake()
            await until(lambda: len(failures(logs)) >= 1, target)
            for tenant in (run, create_other(run)):
                await tenant.create("after", {"a": resource(), "b": resource(depends_on="a")})
                assert await tenant.until_ended("after") == "CREATE_COMPLETE"
            assert await run.until_ended("before") == "CREATE_COMPLETE"
            assert (await run.call("GET", "//readyz"))[0] == 200
            async with run.session.get(f"{run.url}/metrics") as answer:
                assert 'headgate_internal_errors_total{loop="worker"}' in await answer.text()
    assert {one["error"] for one in failures(logs)} == {"RuntimeError"}
    assert all(one["again_in"] > 0 for one in failures(logs))
    assert ERROR_TEXT not in repr(logs)


async def test_a_node_that_ends_the_loop_each_time_fails_and_others_complete(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = NodeRunner._await

    async def failing(self: NodeRunner, job: Any, prepared: Any, outcome: Any, call: Any) -> None:
        if job.work.name == "victim":
            await outcome
            raise RuntimeError(ERROR_TEXT)
        await inner(self, job, prepared, outcome, call)

    monkeypatch.setattr(NodeRunner, "_await", failing)
    definition = {"type": "Test::Raising"}
    with capture_logs() as logs:
        async with program(database_url, QUICK, types=[Raising([], ValueError, waits=True)]) as run:
            await run.create("poison", {"victim": definition, "beside": definition})
            await create_other(run).create(
                "good", {"a": definition, "b": {**definition, "depends_on": "a"}}
            )
            assert await run.until_ended("poison") == "CREATE_FAILED"
            assert await create_other(run).until_ended("good") == "CREATE_COMPLETE"
            found = await run.resources("poison")
            assert (
                "its lease expired, 3 times in a row" in found["victim"]["resource_status_reason"]
            )
            assert found["beside"]["resource_status"] == "CREATE_COMPLETE"
    assert len(failures(logs)) == 3
    assert ERROR_TEXT not in repr(logs)


def failures(logs: Any) -> list[Any]:
    return [one for one in logs if one["event"] == "worker.failed"]
