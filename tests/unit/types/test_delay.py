"""OS::Heat::Delay: durations, actions and jitter."""

import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from engine.errors import Findings
from engine.types.contract import Done, Failed, Wait
from engine.types.delay import Delay
from engine.words import Json
from tests.unit.types.calls import NOW, a_call, findings_of, registry, run

TYPE = Delay(random.Random(1))
ALL = ["CREATE", "DELETE", "SUSPEND", "RESUME"]


@pytest.mark.parametrize("operation", ["create", "delete", "suspend", "resume"])
async def test_a_delay_waits_in_its_actions(operation: str) -> None:
    properties: Json = {"min_wait": 3, "actions": [operation.upper()]}
    call = a_call(TYPE, properties, physical_id="d")
    outcome = await run(TYPE, operation, call)
    assert isinstance(outcome, Wait) and outcome.until == NOW + timedelta(seconds=3)
    early = replace(call, now=NOW + timedelta(seconds=2.9), progress=outcome.progress)
    assert await run(TYPE, operation, early) == outcome
    late = replace(call, now=NOW + timedelta(seconds=3), progress=outcome.progress)
    assert isinstance(await run(TYPE, operation, late), Done)
    others = [one for one in ALL if one != operation.upper()]
    call = a_call(TYPE, {"min_wait": 3, "actions": others}, physical_id="d")
    assert isinstance(await run(TYPE, operation, call), Done)


async def test_an_update_does_not_delay() -> None:
    call = a_call(TYPE, {"min_wait": 3, "actions": ALL}, physical_id="d")
    assert await run(TYPE, "update", call) == Done("d")


async def test_jitter_is_random_and_limited() -> None:
    call = a_call(TYPE, {"min_wait": 10, "max_jitter": 4, "jitter_multiplier": 0.5})
    found = [await run(TYPE, "create", call) for _ in range(50)]
    ends = sorted(one.until for one in found if isinstance(one, Wait) and one.until)
    assert NOW + timedelta(seconds=10) <= ends[0] < ends[-1] < NOW + timedelta(seconds=12)
    assert all(one != other for one, other in pairwise(ends))


async def test_a_newer_change_ends_a_delay() -> None:
    call = a_call(TYPE, {"min_wait": 3}, superseded=True)
    assert isinstance(await run(TYPE, "create", call), Failed)
    assert registry().get("OS::Heat::Delay").schema.name in registry().supersedable_types()


async def test_an_infinite_delay_is_refused() -> None:
    outcome = await run(TYPE, "create", a_call(TYPE, {"min_wait": 1e300}))
    assert isinstance(outcome, Wait) and outcome.until is not None


@pytest.mark.parametrize(
    ("properties", "within", "wrong"),
    [
        ({"min_wait": 60}, 1, False),
        ({"min_wait": 61}, 1, True),
        ({"min_wait": 50, "max_jitter": 11}, 1, True),
        ({"min_wait": 50, "max_jitter": 11, "jitter_multiplier": 0.5}, 1, False),
        ({"min_wait": 61, "actions": ["DELETE"]}, 1, True),
        ({"min_wait": 1e9}, None, False),
        ({}, 1, False),
    ],
)
def test_a_delay_longer_than_the_stacks_timeout_is_refused(
    properties: Json, within: int | None, wrong: bool
) -> None:
    findings = Findings()
    registry().check_properties("OS::Heat::Delay", properties, "here", findings, within)
    assert [one.place for one in findings.all] == ["here"] * wrong


@pytest.mark.parametrize("wrong", [{"min_wait": -1}, {"actions": ["UPDATE"]}, {"max_jitter": "x"}])
def test_contradicting_properties_are_refused(wrong: Json) -> None:
    assert findings_of(TYPE, wrong)
