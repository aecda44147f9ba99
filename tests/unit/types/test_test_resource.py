"""OS::Heat::TestResource and OS::Heat::None: as Heat's, without ever sleeping."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from engine.types.contract import Done, Failed, Outcome, Wait
from engine.types.inert_resources import NoneResource
from engine.types.test_resource import STEP, TestResource
from engine.words import Json
from tests.unit.types.calls import NOW, a_call, ended, run

TYPE = TestResource()
OPERATIONS = ("create", "update", "delete")


async def after(operation: str, seconds: float, **properties: Json) -> Outcome:
    """The outcome of a second call, so many seconds after a first one that waited."""
    call = a_call(TYPE, properties, physical_id="id")
    first = await run(TYPE, operation, call)
    assert isinstance(first, Wait)
    again = replace(call, now=NOW + timedelta(seconds=seconds), progress=first.progress)
    return await run(TYPE, operation, again)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_wait_ends_at_its_time(operation: str) -> None:
    early = await after(operation, 2.9, wait_secs=3)
    assert isinstance(early, Wait)
    assert early.until == NOW + timedelta(seconds=3)
    assert isinstance(await after(operation, 3, wait_secs=3), Done)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_wait_of_an_operation_overrides_the_common_one(operation: str) -> None:
    waits = {"wait_secs": 5, "action_wait_secs": {operation: 1}}
    assert isinstance(await after(operation, 1, **waits), Done)
    none = {"wait_secs": 5, "action_wait_secs": {operation: 0}}
    assert isinstance(await run(TYPE, operation, a_call(TYPE, none)), Done)
    others = {"action_wait_secs": {name: 9 for name in OPERATIONS if name != operation}}
    assert isinstance(await run(TYPE, operation, a_call(TYPE, others)), Done)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_endless_wait_is_repeated_in_intervals(operation: str) -> None:
    days = timedelta(days=400)
    late = await after(operation, days.total_seconds(), wait_secs=-1)
    assert isinstance(late, Wait)
    assert late.until == NOW + days + STEP


async def test_a_wait_beyond_the_calendar_is_accepted() -> None:
    assert isinstance(await run(TYPE, "create", a_call(TYPE, {"wait_secs": 1e300})), Wait)


@pytest.mark.parametrize("operation", ["create", "update"])
async def test_a_failure_after_the_wait_leaves_no_object(operation: str) -> None:
    assert isinstance(await after(operation, 1, fail=True, wait_secs=2), Wait)
    outcome = await after(operation, 2, fail=True, wait_secs=2)
    assert isinstance(outcome, Failed)
    assert outcome.physical_id is None


async def test_a_delete_never_fails() -> None:
    assert isinstance(await after("delete", 2, fail=True, wait_secs=2), Done)


async def test_the_value_is_stored() -> None:
    for operation in ("create", "update"):
        outcome = await ended(TYPE, operation, a_call(TYPE, {"value": "x"}, physical_id="id"))
        assert isinstance(outcome, Done)
        assert outcome.attributes == {"output": "x"}


async def test_an_update_keeps_the_physical_id() -> None:
    outcome = await run(TYPE, "update", a_call(TYPE, {}, physical_id="id"))
    assert isinstance(outcome, Done)
    assert outcome.physical_id == "id"


async def test_the_physical_id_is_that_of_the_operation() -> None:
    def of(key: int) -> str | None:
        call = a_call(TYPE, {}, operation_key=UUID(int=key))
        outcome = TYPE.create(call)
        assert isinstance(outcome, Done)
        return outcome.physical_id

    first = of(2**100)
    assert first is not None
    assert first.startswith("s-r-")
    assert len(first) == len("s-r-") + 12
    assert of(2**100) == first
    assert len({of(number << 80) for number in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("properties", "changed", "replaces"),
    [
        ({"update_replace": True}, {"value"}, True),
        ({"update_replace": True}, {"fail"}, False),
        ({}, {"value"}, False),
    ],
)
def test_a_replacement_on_request(properties: Json, changed: set[str], replaces: bool) -> None:
    call = a_call(TYPE, properties, changed=frozenset(changed))
    assert TYPE.needs_replace(call) is replaces


def test_one_property_always_causes_a_replacement() -> None:
    fixed = [name for name, one in TYPE.schema.properties.items() if not one.update_allowed]
    assert fixed == ["update_replace_value"]


async def test_none_accepts_all_properties_and_keeps_its_id() -> None:
    type_ = NoneResource()
    call = a_call(type_, {"whatever": [1]})
    done = await run(type_, "create", call)
    assert isinstance(done, Done)
    changed = replace(call, physical_id=done.physical_id)
    repeated = await run(type_, "update", changed)
    assert isinstance(repeated, Done)
    assert repeated.physical_id == done.physical_id is not None
