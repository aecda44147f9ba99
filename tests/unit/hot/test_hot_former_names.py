"""Properties with former names, which templates can still use."""

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults

NAMED = TypeSchema(
    "Test::Named",
    {
        "network": Property(Kind.STRING, required=True, former_names=("network_id", "net")),
        "secret": Property(Kind.STRING, hidden=True, former_names=("admin_pass",)),
        "ports": Property(
            Kind.LIST,
            items=Property(
                Kind.MAP, fields={"port": Property(Kind.INTEGER, former_names=("port_id",))}
            ),
        ),
        "user": Property(Kind.STRING, obsolete=True),
    },
)
TYPES = {"Test::Named": NAMED}


def named(**properties: Json) -> Json:
    return {"resources": {"a": {"type": "Test::Named", "properties": properties}}}


def test_a_former_name_is_an_alias_at_any_depth() -> None:
    old = defined(named(network_id="n", ports=[{"port_id": "1"}]), types=TYPES).resources["a"]
    new = defined(named(network="n", ports=[{"port": 1}]), types=TYPES).resources["a"]
    assert old.properties == new.properties == {"network": "n", "ports": [{"port": 1}]}
    assert old.digest == new.digest  # so that an update that uses the new name changes nothing


def test_a_hidden_property_is_hidden_under_its_former_name() -> None:
    resource = defined(named(net="n", admin_pass="hush"), types=TYPES).resources["a"]
    assert resource.masked_properties == {"network": "n", "secret": "******"}
    parameter = {"parameters": {"p": {"type": "string", "default": "hush", "hidden": True}}}
    template = {**named(network_id={"get_param": "p"}), **parameter}
    resource = defined(template, types=TYPES).resources["a"]
    assert resource.properties == {"network": "hush"}
    assert resource.masked_properties == {"network": "******"}


@pytest.mark.parametrize(
    ("properties", "place", "part"),
    [
        ({"network": "n", "net": "n"}, "resources.a.properties", "Leave net out."),
        (
            {"net": "n", "ports": [{}, {"port": 1, "port_id": 1}]},
            "resources.a.properties.ports[1]",
            "Property port_id is the former name of port; both are given",
        ),
        ({"network_id": ["n"]}, "resources.a.properties.network", "must be a string"),
        ({"netw": "n"}, "resources.a.properties", "Unknown Property netw"),
    ],
)
def test_errors_of_former_names_are_reported(properties: Json, place: str, part: str) -> None:
    found = faults(named(**properties), types=TYPES)
    assert any(one.place == place and part in str(one) for one in found), found


def test_an_obsolete_property_is_a_warning_and_has_no_effect() -> None:
    definition = defined(named(network="n", user="ann"), types=TYPES)
    (warning,) = definition.warnings
    assert (warning.place, warning.code) == ("resources.a.properties.user", "NoEffect")
    plain = defined(named(network="n"), types=TYPES).resources["a"]
    assert definition.resources["a"].properties == {"network": "n"}
    assert definition.resources["a"].digest == plain.digest
