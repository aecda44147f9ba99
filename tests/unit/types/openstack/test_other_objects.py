"""An object that a list of OpenStack lacks is read by its ID: another one in the response says
nothing about it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

import pytest

from engine.types.observation import PRESENT
from engine.types.openstack.cloud_operation import observed_list
from engine.words import Json, ObservedState
from tests.unit.types.openstack.test_observers import call


async def no_pages() -> AsyncIterator[Sequence[Mapping[str, Json]]]:
    yield []


@pytest.mark.parametrize(
    ("found", "state"),
    [
        ({"id": "own"}, ObservedState.PRESENT),
        ({"id": "t1", "name": "own"}, ObservedState.PRESENT),  # adopted by its name
        ({"id": "other"}, ObservedState.UNKNOWN),
        ({"id": "other", "name": "t1"}, ObservedState.UNKNOWN),
        ({}, ObservedState.UNKNOWN),
        (None, ObservedState.MISSING),
    ],
    ids=str,
)
async def test_an_object_that_is_read_alone_has_the_id_of_the_resource(
    found: Mapping[str, Json] | None, state: ObservedState
) -> None:
    async def find(_: object) -> Mapping[str, Json] | None:
        return found

    listed = observed_list(no_pages, lambda _, one: PRESENT, "it is gone", find=find)
    one = replace(call(), physical_id="own")
    (observation,) = (await listed.observe([one])).values()
    assert observation.state is state, observation
    if state is ObservedState.UNKNOWN:
        assert observation.reason == "the service answered with another object"
