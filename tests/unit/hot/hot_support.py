"""Builders for tests of the language."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.errors import Finding, Findings, Invalid
from engine.hot.definition.stack import StackDefinition, define_stack
from engine.hot.environment.environment import NO_OPERATOR, parse_environment
from engine.hot.environment.registry import ResourceRegistry
from engine.hot.expressions.expression import Expression
from engine.hot.language.dialect import DIALECTS
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.hot.template.template import read_template
from engine.words import Json

THING = TypeSchema(
    "Test::Thing",
    {
        "value": Property(Kind.ANY),
        "text": Property(Kind.STRING, default="none"),
        "size": Property(Kind.INTEGER, constraints=(Constraint("range", min=1, max=10),)),
        "flag": Property(Kind.BOOLEAN),
        "number": Property(Kind.NUMBER),
        "names": Property(
            Kind.LIST,
            items=Property(Kind.STRING, constraints=(Constraint("allowed_pattern", pattern="a+"),)),
        ),
        "map": Property(
            Kind.MAP,
            fields={
                "inner": Property(Kind.INTEGER, required=True),
                "d": Property(Kind.ANY, default=7),
            },
        ),
        "secret": Property(Kind.STRING, hidden=True),
    },
    {"output": Attribute(), "key": Attribute(secret=True)},
)
STRICT = TypeSchema("Test::Strict", {"needed": Property(Kind.STRING, required=True)})
FREE = TypeSchema("Test::Free", any_property=True, any_attribute=True)
PSEUDO = {"OS::stack_name": "s", "OS::stack_id": "id", "OS::project_id": "p"}
NAMING = TypeSchema(
    "Test::Naming",
    {"allowed": Property(Kind.LIST, items=Property(Kind.STRING))},
    names_resources=("allowed",),
)
TYPES = {one.name: one for one in (THING, STRICT, FREE, NAMING)}


def no_findings(
    type_name: str, properties: Mapping[str, Json], place: str, findings: Findings
) -> None:
    return None


def defined(
    template: dict[str, Json],
    environment: dict[str, Json] | None = None,
    parameters: Mapping[str, Json] | None = None,
    operator: ResourceRegistry = NO_OPERATOR,
    **more: Any,
) -> StackDefinition:
    """read: an environment, instead of the document of one."""
    if not DIALECTS.keys() & template.keys():
        template = {"heat_template_version": "2021-04-16"} | template
    read = read_template(template)
    arguments: dict[str, Any] = {
        "environment": more.pop("read", None) or parse_environment(environment or {}, operator),
        "files": {},
        "pseudo": PSEUDO,
        "types": TYPES,
        "check_properties": no_findings,
    }
    return define_stack(
        template=read,
        parameters=parameters or {},
        **(arguments | more),
    )


def faults(*args: Any, **more: Any) -> list[Finding]:
    with pytest.raises(Invalid) as caught:
        defined(*args, **more)
    return list(caught.value.findings)


def thing(**properties: Json) -> dict[str, Json]:
    return {"type": "Test::Thing", "properties": properties}


def value_of(snippet: Json, version: str = "2021-04-16", **more: Any) -> Expression:
    """The expression of a snippet as property ``value``, next to a resource ``b``."""
    template: dict[str, Json] = {
        "heat_template_version": version,
        "resources": {"a": thing(value=snippet), "b": thing()},
    }
    template |= more.pop("template", {})
    found = defined(template, **more).resources["a"].properties
    return found["value"]


def fault_of(snippet: Json, version: str = "2021-04-16", **more: Any) -> str:
    with pytest.raises(Invalid) as caught:
        value_of(snippet, version, **more)
    return str(caught.value.findings[0])


class UniformView:
    """A view of a stack for evaluation in which everything has one value."""

    def __init__(self, value: Json = None) -> None:
        self.value = value

    def reference(self, resource: str) -> str:
        return f"ref-{resource}"

    def attribute(self, resource: str, attribute: str) -> Json:
        return self.value

    def attributes(self, resource: str) -> Mapping[str, Json]:
        return {"output": self.value}
