"""Builders for tests of nested templates."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine.errors import Finding, Invalid
from engine.hot.definition.stack import NestedStackDefinition, StackDefinition
from engine.hot.environment.environment import parse_environment
from engine.hot.environment.registry import ResourceRegistry
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.words import Json
from tests.unit.hot.hot_support import TYPES, defined, thing

FACADE = TypeSchema(
    "Test::Facade",
    {
        "size": Property(Kind.INTEGER, required=True),
        "name": Property(Kind.STRING),
        "any": Property(Kind.ANY),
    },
    {"address": Attribute()},
)
ALL = {**TYPES, FACADE.name: FACADE}
UNKNOWN = {"get_attr": ["b", "output"]}
PARAMETERS = {
    "size": {"type": "number", "default": 3, "constraints": [{"range": {"max": 9}}]},
    "names": {"type": "comma_delimited_list", "default": "", "description": "Who"},
    "data": {"type": "json", "default": {}},
    "text": {"type": "string", "default": "d"},
    "flag": {"type": "boolean", "default": False},
    "key": {"type": "string", "default": "k", "hidden": True},
}


def template(**sections: Json) -> str:
    return json.dumps({"heat_template_version": "2021-04-16", **sections})


SERVER = template(
    parameters=PARAMETERS,
    resources={"x": thing(text={"get_param": "text"})},
    outputs={"o": {"value": {"get_attr": ["x", "output"]}, "description": "Out"}},
)
FILES = {"server.yaml": SERVER}


def stack(
    resources: dict[str, Json],
    files: Mapping[str, str] = FILES,
    registry: dict[str, Json] | None = None,
    **more: Any,
) -> StackDefinition:
    sections = {"resources": resources, **more.pop("template", {})}
    environment = {"resource_registry": registry or {}, **more.pop("environment", {})}
    more.setdefault("nesting", NestedTemplates(files))
    return defined(sections, environment, files=files, types=ALL, **more)


def findings_of(*args: Any, **more: Any) -> list[Finding]:
    with pytest.raises(Invalid) as caught:
        stack(*args, **more)
    return list(caught.value.findings)


def web(**properties: Json) -> dict[str, Json]:
    return {"web": {"type": "server.yaml", "properties": properties}}


def nested(*args: Any, **more: Any) -> NestedStackDefinition:
    return stack(*args, **more).nested["web"]


def with_operator_registry(registry: dict[str, Json]) -> ResourceRegistry:
    return parse_environment({"resource_registry": registry}, operator=None).registry
