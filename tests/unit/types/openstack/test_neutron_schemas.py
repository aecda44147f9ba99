"""The schemas of the types of Neutron are those of Heat 27, except for listed differences."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from engine.hot.schema.type_schema import Constraint, Property
from tests.unit.types.openstack.clouds import types

Json = Any
HEAT: Json = orjson.loads(Path(__file__).with_name("heat_neutron.json").read_bytes())
#: Types that Headgate does not have.
MISSING = {
    "OS::Neutron::FlowClassifier",
    "OS::Neutron::NetworkGateway",
    "OS::Neutron::PortPair",
}
#: What differs, as docs/reference/openstack-types.md says.
DIFFERENCES = {
    "OS::Neutron::Port.fixed_ips.*.subnet_id: missing",  # a former name
    "OS::Neutron::SecurityGroupRule.description: update_allowed True, in Heat False",
    "OS::Neutron::MeteringRule.excluded: default False, in Heat 'False'",
}


def test_each_type_has_the_schema_of_heat() -> None:
    own = types()
    assert HEAT.keys() - own.keys() == MISSING
    found = {
        difference
        for name, type_ in own.items()
        if name.startswith("OS::Neutron::")
        for difference in [
            *_properties(name, type_.schema.properties, HEAT[name]["properties"]),
            *_attributes(name, type_.schema.attributes, HEAT[name]["attributes"]),
        ]
    }
    assert found == DIFFERENCES


def test_every_property_and_attribute_is_described() -> None:
    for type_ in types().values():
        assert type_.schema.description.endswith(".")
        assert all(one.description for one in type_.schema.attributes.values())
        assert all(one.description for one in _all(type_.schema.properties))


def test_the_reference_lists_each_type_with_what_it_updates_in_place() -> None:
    page = Path("docs/reference/openstack-types.md").read_text()
    for name, type_ in types().items():
        known = type_.schema.properties.items()
        in_place = ", ".join(f"`{one}`" for one, each in known if each.update_allowed)
        row = f"| `{name}` | {type_.schema.description} | {in_place or 'none'} |"
        assert row in page


def _all(properties: Mapping[str, Property]) -> Iterator[Property]:
    for one in properties.values():
        yield one
        yield from _all(one.fields or {})
        if one.items is not None:
            yield from _all({"*": one.items})


def _properties(place: str, own: Mapping[str, Property], heat: Json) -> Iterator[str]:
    for name in sorted(heat.keys() | own.keys()):
        here = f"{place}.{name}"
        if name not in own or name not in heat:
            yield f"{here}: {'missing' if name in heat else 'not in Heat'}"
            continue
        mine, theirs = own[name], heat[name]
        compared = {
            "kind": (mine.kind.value, theirs["type"]),
            "required": (mine.required, theirs.get("required", False)),
            "update_allowed": (mine.update_allowed, theirs.get("update_allowed", False)),
            "immutable": (mine.immutable, theirs.get("immutable", False)),
            "default": (mine.default, theirs.get("default")),
            "constraints": (_constraints(mine.constraints), _heats(theirs.get("constraints", ()))),
        }
        for what, (ours, their) in compared.items():
            if ours != their:
                yield f"{here}: {what} {ours!r}, in Heat {their!r}"
        inside = {"*": mine.items} if mine.items is not None else mine.fields or {}
        yield from _properties(here, inside, theirs.get("schema", {}))


def _attributes(place: str, own: Mapping[str, Any], heat: Json) -> Iterator[str]:
    mine = {name: one.kind.value for name, one in own.items()}
    for name in sorted(mine.keys() | heat.keys()):
        if mine.get(name) != heat.get(name):
            yield f"{place} attribute {name}: {mine.get(name)}, in Heat {heat.get(name)}"


def _constraints(constraints: tuple[Constraint, ...]) -> list[Json]:
    found: list[Json] = []
    for one in constraints:
        match one.kind:
            case "allowed_values":
                found.append(sorted(map(str, one.allowed)))
            case "custom_constraint":
                found.append(one.name)
            case kind:
                found.append({kind: (one.min, one.max)})
    return found


def _heats(constraints: Json) -> list[Json]:
    found: list[Json] = []
    for one in constraints:
        ((kind, value),) = ((key, item) for key, item in one.items() if key != "description")
        match kind:
            case "allowed_values":
                found.append(sorted(map(str, value)))
            case "custom_constraint":
                found.append(value)
            case _:
                found.append({kind: (value.get("min"), value.get("max"))})
    return found
