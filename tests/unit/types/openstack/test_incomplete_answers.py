"""Services that answer without fields that an observation compares: these do not differ."""

from dataclasses import replace
from typing import Any

import pytest

from engine.types.contract import Call, ResourceType
from engine.types.observation import PRESENT, Difference, Observation, observe_fields
from engine.types.openstack.cinder.volume_state import observe_volume
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.nova.server_observation import observe_server
from engine.words import Json, ObservedState
from tests.unit.types.openstack.clouds import Answers, answer, types_of_all_services
from tests.unit.types.openstack.test_malformed_answers import ID, properties_of, value_of
from tests.unit.types.openstack.test_nova_observation import (
    GROUP,
    listed_group,
    observe,
    server_group,
    states,
)
from tests.unit.types.openstack.test_observers import Identity, call

TYPES = types_of_all_services(Cloud(Answers(), Identity(reader=True)))
SERVER: Json = {
    "name": "web", "status": "ACTIVE", "flavor": {"original_name": "large"}, "image": {"id": ID},
    "metadata": {"a": "2"}, "tags": ["x"],
}  # fmt: skip
VOLUME: Json = {
    "name": "v", "status": "in-use", "size": 2, "description": "d", "metadata": {"a": "2"},
    "volume_type": "fast",
}  # fmt: skip


def compare_of(type_: ResourceType, one: Call) -> Any:
    """How a type compares an object with a resource; None: it compares nothing."""
    if (listed := type_.observed_list(one)) is not None:
        return listed.compare
    own: Any = type_
    return getattr(own, "compare", None)


def observed_properties(type_: ResourceType) -> dict[str, Json]:
    """A value for each property, of which `observed_paths` compares some."""
    known = type_.schema.properties
    return {
        name: properties_of(type_).get(name, value_of(one))
        for name, one in known.items()
        if not one.obsolete
    }


@pytest.mark.parametrize("type_", TYPES, ids=[one.schema.name for one in TYPES])
def test_an_object_without_its_compared_fields_is_unknown(type_: ResourceType) -> None:
    """All of them were recorded by the last operation."""
    other: Any = getattr(type_, "other", type_)
    properties = observed_properties(type_)
    names = {*type_.schema.properties, *other.schema.properties, "definition"}
    one = replace(
        call(),
        properties=properties,
        physical_id=ID,
        attributes={"show": dict.fromkeys(names, "x"), "public_key": "x"},
        data={"owner": "alice", "flavor": "large", "image": ID, "volume_type": "fast"},
    )
    paths = type_.observed_paths(properties)
    if (compare := compare_of(type_, one)) is None or not paths:
        return
    found = compare(one, {"id": ID, "status": "ACTIVE"})
    given = [path for path in paths if properties.get(path) not in (None, "", [], {})]
    # None: the object is read by itself.
    state = ObservedState.PRESENT if found and not found.incomplete else ObservedState.UNKNOWN
    assert (state is ObservedState.UNKNOWN) == bool(given), (found, given)
    assert found is None or found.state is state, found


def own_call(properties: Json) -> Call:
    data = {"flavor": "large", "image": ID, "volume_type": "fast"}
    return replace(call(), properties=properties, data=data)


def observe_own_server(server: Json) -> Observation:
    properties = {"name": "web", "metadata": {"a": "2"}, "tags": ["x"], "flavor": "f", "image": "i"}
    return observe_server(own_call(properties), server)


def observe_own_volume(volume: Json) -> Observation:
    properties = {"size": 2, "description": "d", "metadata": {"a": "2"}}
    return observe_volume(own_call(properties), "v", volume)


@pytest.mark.parametrize(
    ("seen", "whole", "field"),
    [
        *((observe_own_server, SERVER, field) for field in SERVER),
        *((observe_own_volume, VOLUME, field) for field in VOLUME if field != "status"),
    ],
    ids=[
        *(f"server {one}" for one in SERVER),
        *(f"volume {one}" for one in VOLUME if one != "status"),
    ],
)
def test_servers_and_volumes_without_a_field_are_unknown(
    seen: Any, whole: Json, field: str
) -> None:
    assert seen(whole).state is ObservedState.PRESENT
    found = seen({key: one for key, one in whole.items() if key != field})
    assert found.state is ObservedState.UNKNOWN and found.incomplete
    assert f"lacks {field}" in found.reason or "lacks its status" in found.reason
    # What the service shows still counts.
    if field not in ("name", "status"):
        changed = seen({key: one for key, one in whole.items() if key != field} | {"name": "new"})
        assert [one.path for one in changed.differences] == ["name"]


def test_a_flavor_without_its_name_is_unknown() -> None:
    assert observe_own_server(SERVER | {"flavor": {"id": "1"}}).incomplete


async def test_an_entry_of_a_list_without_a_field_is_read_by_itself() -> None:
    groups = [server_group(1, "1", name="g", policies=["affinity"]),
              server_group(2, "2", name="g", policies=["affinity"])]  # fmt: skip
    few = {"id": "1", "name": "g"}, {"id": "2", "name": "g"}
    found, urls = await observe(
        GROUP, groups, answer(200, {"server_groups": few}),
        answer(200, {"server_group": listed_group("1", policy="anti-affinity")}),
        answer(200, {"server_group": few[1]}),
    )  # fmt: skip
    assert states(found) == [("changed", ["policies"]), ("unknown", [])]
    assert "lacks policies" in found[1].reason and found[1].incomplete
    assert [url.rpartition("/")[2] for url in urls][1:] == ["1", "2"]


async def test_an_entry_of_a_list_that_differs_and_lacks_a_field_is_read_by_itself() -> None:
    group = server_group(1, "1", name="g", policies=["affinity"])
    found, urls = await observe(
        GROUP, [group], answer(200, {"server_groups": [{"id": "1", "name": "other"}]}),
        answer(200, {"server_group": listed_group("1", name="other", policy="anti-affinity")}),
    )  # fmt: skip
    assert states(found) == [("changed", ["name", "policies"])] and len(urls) == 2


def test_a_type_of_aws_is_unknown_if_only_what_it_does_not_have_differs() -> None:
    types: Any = {one.schema.name: one for one in TYPES}
    own = types["AWS::EC2::Volume"]
    other = Observation.from_comparison("the volume", [Difference("bogus", 1, 2)], ["size"])
    found = own._own_observation(other)
    assert found.state is ObservedState.UNKNOWN and found.incomplete
    assert found.reason == "the response about the volume lacks Size"
    assert found.absent == ["Size"]
    other = Observation.from_comparison("the volume", [Difference("size", 1, 2)], ["bogus"])
    found = own._own_observation(other)
    assert [one.path for one in found.differences] == ["Size"]
    assert (found.incomplete, found.reason) == (False, "")


IGNORED_PATHS = frozenset({"a", "b"})


def leave_out(differing: list[str], absent: list[str]) -> Observation:
    differences = [Difference(path, 1, 2) for path in differing]
    found = Observation.from_comparison("it", differences, absent)
    return found.leave_out(IGNORED_PATHS.__contains__)


def test_what_is_ignored_is_neither_different_nor_absent() -> None:
    assert leave_out(["a"], ["b"]) == PRESENT == leave_out([], ["a", "b"])
    found = leave_out(["a"], ["b", "c"])
    assert (found.state, found.reason) == ("unknown", "the response about it lacks c")
    assert found.incomplete and found.absent == ["c"]
    found = leave_out(["a", "c"], ["b"])
    assert (found.state, found.reason, found.incomplete) == ("changed", "", False)
    found = leave_out(["c"], ["b", "d"])
    assert (found.reason, found.incomplete) == ("the response about it lacks d", True)
    missing = Observation(ObservedState.MISSING, (), "gone", "gone")
    assert missing.leave_out(IGNORED_PATHS.__contains__) is missing


def test_values_that_are_not_wanted_may_be_absent() -> None:
    assert observe_fields("x", [("a", None, None), ("b", [], None)], ["a", "b"]).state == "present"
