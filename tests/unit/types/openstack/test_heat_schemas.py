"""The schemas of the types of Nova, Cinder and Glance are those that Heat 27 shows.

heat_schemas.json has the facts of Heat's schemas: kinds, constraints, defaults, and which
properties are required or can be updated.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from engine.hooks.tokens import TokenKeys
from engine.hot.schema.type_schema import Constraint, Property
from engine.types.openstack.cinder import cinder_types
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.glance import glance_types
from engine.types.openstack.nova import nova_types
from engine.types.software import ServerUrls
from tests.unit.types.software.in_memory import InMemoryStore

Json = Any
HEAT: Mapping[str, Json] = json.loads(
    Path(__file__).with_name("heat_schemas.json").read_text(encoding="utf-8")
)
CLOUD = cast(Cloud, None)  # no type calls it before its first operation
SERVERS = ServerUrls(TokenKeys.single(b"k" * 32), "http://h")
TYPES = {
    one.schema.name: one.schema
    for one in [
        *nova_types(CLOUD, InMemoryStore(), SERVERS),
        *cinder_types(CLOUD),
        *glance_types(CLOUD),
    ]
}


def facts_of(one: Property) -> Json:
    facts: dict[str, Json] = {"type": str(one.kind)}
    if one.required:
        facts["required"] = True
    if one.update_allowed:
        facts["update_allowed"] = True
    if one.default is not None:
        facts["default"] = one.default
    if one.constraints:
        facts["constraints"] = [constraint_of(rule) for rule in one.constraints]
    fields = one.fields or ({"*": one.items} if one.items else {})
    if fields:
        facts["schema"] = {name: facts_of(inner) for name, inner in fields.items()}
    return facts


def constraint_of(rule: Constraint) -> Json:
    match rule.kind:
        case "allowed_values":
            return {rule.kind: list(rule.allowed)}
        case "custom_constraint":
            return {rule.kind: rule.name}
        case "allowed_pattern":
            return {rule.kind: rule.pattern}
    bounds = {"min": rule.min, "max": rule.max}
    return {rule.kind: {name: one for name, one in bounds.items() if one is not None}}


def differences(place: str, ours: Json, heats: Json) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(heats, dict):
        for name in sorted({*ours, *heats}):
            yield from differences(f"{place}.{name}", ours.get(name), heats.get(name))
    elif ours != heats:
        yield f"{place}: {ours!r}, in Heat {heats!r}"


def test_every_type_has_a_schema_of_heat() -> None:
    assert sorted(TYPES) == sorted(HEAT)


@pytest.mark.parametrize("name", sorted(TYPES))
def test_a_schema_is_heats(name: str) -> None:
    schema = TYPES[name]
    ours = {
        "properties": {key: facts_of(one) for key, one in schema.properties.items()},
        "attributes": {key: str(one.kind) for key, one in schema.attributes.items()},
    }
    assert list(differences(name, ours, HEAT[name])) == []


def test_every_property_and_attribute_has_a_description() -> None:
    described: list[tuple[str, str]] = []
    for name, schema in TYPES.items():
        described += [(f"{name}.{key}", one.description) for key, one in schema.properties.items()]
        described += [(f"{name}.{key}", one.description) for key, one in schema.attributes.items()]
    assert [place for place, text in described if not text] == []


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_property_and_attribute_is_documented(name: str) -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "compute-types.md").read_text()
    section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
    properties, _, attributes = section.partition("| attribute |")
    schema = TYPES[name]
    assert set(re.findall(r"^\| `(\w+)` \|", attributes, re.M)) == set(schema.attributes)
    rows = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \|", properties, re.M)
    expected = {
        key: "in place" if one.update_allowed else "replace"
        for key, one in schema.properties.items()
    }
    if name == "OS::Cinder::VolumeAttachment":
        expected["volume_id"] = "replace"  # `needs_replace`
    assert dict(rows) == expected
