"""What the resources of OpenStack record when an observed value is adopted: then they do not
differ."""

from dataclasses import replace

import pytest

from engine.types.contract import Call
from engine.types.openstack.cinder import volume_state
from engine.types.openstack.nova import server_observation
from engine.types.openstack.nova.server_observation import observe_server
from engine.words import Json, ObservedState
from tests.unit.types.calls import a_call
from tests.unit.types.openstack.clouds import types_of_all_services

TYPES = {one.schema.name: one for one in types_of_all_services()}
SERVER = {
    "id": "1", "name": "web", "status": "ACTIVE", "flavor": {"original_name": "large"},
    "image": {"id": "other"}, "metadata": {"a": "2"}, "tags": ["x"],
}  # fmt: skip
VOLUME = {
    "id": "1", "name": "disk", "status": "available", "size": 5, "volume_type": "fast",
    "description": "big", "metadata": {"a": "2"},
}  # fmt: skip


def server_call() -> Call:
    properties = {"name": "w", "flavor": "small", "image": "cirros", "metadata": {"a": "1"}}
    call = a_call(TYPES["OS::Nova::Server"], properties)
    return replace(call, data={"flavor": "small", "image": "one"})


def volume_call() -> Call:
    properties = {
        "name": "d", "size": 3, "volume_type": "slow", "description": "", "metadata": {"a": "1"},
    }  # fmt: skip
    call = a_call(TYPES["OS::Cinder::Volume"], properties)
    return replace(call, data={"volume_type": "slow"})


@pytest.mark.parametrize(
    ("name", "call", "observe", "paths"),
    [
        ("OS::Nova::Server", server_call(), lambda call: observe_server(call, SERVER),
         server_observation.OBSERVED),
        ("OS::Cinder::Volume", volume_call(),
         lambda call: volume_state.observe_volume(call, call.properties["name"], VOLUME),
         volume_state.OBSERVED),
    ],
    ids=["server", "volume"],
)  # fmt: skip
def test_adopted_values_do_not_differ(name: str, call: Call, observe: Json, paths: Json) -> None:
    found = observe(call)
    assert {one.path for one in found.differences} == {*paths}
    for one in found.differences:
        assert TYPES[name].adopted_places(call.properties, one.path) == ((one.path,),)
        properties = {**call.properties, one.path: one.observed}
        data = TYPES[name].adopted_data(call.data, one.path, one.observed)
        call = replace(call, properties=properties, data=data)
    assert observe(call).state is ObservedState.PRESENT


@pytest.mark.parametrize("name", sorted(TYPES))
def test_each_observed_property_can_be_adopted(name: str) -> None:
    type_ = TYPES[name]
    properties: dict[str, Json] = dict.fromkeys(type_.schema.properties)
    if name == "OS::Nova::KeyPair":  # the key of a pair that Headgate made cannot be adopted
        properties["public_key"] = "key"
    for path in type_.observed_paths(properties) or ():
        assert type_.adopted_places(properties, path) == ((path,),)
