"""A template as a resource type: its parameters are the properties, its outputs the attributes.

What is written here says what a nested template is to the stack around it; finding and counting
nested templates is for engine/hot/nesting.py.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from engine.hot.environment import Environment, parse_environment
from engine.hot.expression import Expression, is_static
from engine.hot.globs import matches
from engine.hot.parameters import ParameterKind, ParameterSchema, item_text
from engine.hot.properties import EMPTY
from engine.hot.reading_registry import OF_RESOURCE, RESOURCES
from engine.hot.registry import Mapped
from engine.hot.schema import SHOW, Attribute, Kind, Property, TypeSchema
from engine.hot.template import Template
from engine.words import Json

KINDS: Mapping[ParameterKind, Kind] = {
    ParameterKind.STRING: Kind.STRING,
    ParameterKind.NUMBER: Kind.NUMBER,
    ParameterKind.LIST: Kind.LIST,
    ParameterKind.JSON: Kind.MAP,
    ParameterKind.BOOLEAN: Kind.BOOLEAN,
}
#: What a parameter of a provider may stand for besides properties of its own kind.
NUMBERS = frozenset({Kind.INTEGER, Kind.NUMBER})
#: An attribute of every template type, which an output of this name may say otherwise.
STACK_ID = "OS::stack_id"
#: Functions that read an attribute, with what is between its resource and it in a text.
GETTERS = {"get_attr": None, "Fn::GetAtt": "."}
#: Sections of an environment that hold inside nested stacks as they are.
INHERITED = ("parameter_defaults", "event_sinks", "encrypted_param_names")


@dataclass(frozen=True, slots=True)
class TemplateType:
    """file: the template's name among the files, or its address. environment: that of the stack
    inside, without its parameters: those are the properties of the resource. digest: sha256, hex,
    of the template and the environment as they are written."""

    file: str
    schema: TypeSchema
    template: Template
    environment: Environment
    digest: str


@dataclass(frozen=True, slots=True)
class Inside:
    """What is said of resources inside one; nothing is the usual. As environments have it.

    looked_at: entries that might have said something.
    """

    resources: Mapping[str, Json]
    hooks: Sequence[Json]
    looked_at: int = 0

    def __bool__(self) -> bool:
        return bool(self.resources or self.hooks)


NOTHING: Final = Inside({}, [])


def template_type(
    file: str, template: Template, around: Environment, by: Mapped | None, said: Inside
) -> TemplateType:
    """What the template in a file is for a resource. around: the environment of its stack. by: the
    entry of the registry that led to the file. said: what is said of resources inside."""
    document = child_document(around.document, by, said)
    environment = parse_environment(document, around.registry.operator)
    hidden = frozenset(environment.encrypted_param_names)
    properties = {
        name: _property(one, around.parameter_defaults.get(name), name in hidden)
        for name, one in template.parameters.items()
    } | dict.fromkeys(template.unsound.parameters, Property(Kind.ANY))
    attributes = {STACK_ID: Attribute(description="The id of the stack inside.")} | {
        name: Attribute(description=output.description) for name, output in template.outputs.items()
    }
    attributes |= dict.fromkeys(template.unsound.outputs, Attribute())
    schema = TypeSchema(
        file,
        properties,
        attributes,
        template.description,
        inside=template.unsound.resources.union(template.resources),
    )
    written = json.dumps([template.document, document], sort_keys=True, default=str)
    digest = sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
    return TemplateType(file, schema, template, environment, digest)


def with_secrets(kind: TemplateType, secret: Mapping[str, TypeSchema]) -> TemplateType:
    """secret: the types of the resources inside of which something is nobody's to see. So is an
    output that reads it."""
    if not secret:
        return kind
    outputs = kind.template.outputs
    attributes = {
        name: replace(one, secret=name in outputs and _tells(outputs[name].value, secret))
        for name, one in kind.schema.attributes.items()
    }
    return replace(
        kind,
        schema=replace(kind.schema, attributes=attributes, secret_inside=frozenset(secret)),
    )


def _tells(snippet: Json, secret: Mapping[str, TypeSchema]) -> bool:
    """Where it is not plain what is read, the name of such a resource is enough."""
    if isinstance(snippet, dict):
        if snippet.keys() & GETTERS.keys() and len(snippet) == 1:
            called, args = next(iter(snippet.items()))
            parts = args.split(GETTERS[called]) if isinstance(args, str) else args
            match parts:
                case [str(name), str(attribute), *_]:
                    return name in secret and secret[name].hides(attribute)
        return any(_tells(one, secret) for one in snippet.values())
    if isinstance(snippet, list):
        return any(_tells(one, secret) for one in snippet)
    return isinstance(snippet, str) and snippet in secret


def _property(parameter: ParameterSchema, default: Json, hidden: bool) -> Property:
    """A change of it is the nested stack's to make, so all may be updated. A default is the
    template's to fill in."""
    return Property(
        KINDS[parameter.kind],
        parameter.description,
        required=parameter.default is None and default is None,
        constraints=parameter.constraints,
        update_allowed=True,
        hidden=parameter.hidden or hidden,
        converts=parameter.kind in (ParameterKind.LIST, ParameterKind.JSON),
    )


def child_document(around: Mapping[str, Json], by: Mapped | None, said: Inside) -> dict[str, Json]:
    """The environment of a nested stack, as it would be written.

    The entry that led to its template is left out, so that the template can use the type that it
    stands for; what was said of resources inside it is said of its resources.
    """
    child = {name: around[name] for name in INHERITED if name in around}
    section: Mapping[str, Json] = around.get("resource_registry", {})
    registry = {name: target for name, target in section.items() if name != RESOURCES}
    if by is not None and by.of_operator:
        registry[by.name] = None
    elif by is not None and by.path == (by.name,):
        registry.pop(by.name, None)
    if said.resources:
        registry[RESOURCES] = said.resources
    if registry:
        child["resource_registry"] = registry
    if said.hooks:
        child["hooks"] = said.hooks
    return child


def said_inside(around: Mapping[str, Json], resource: str) -> Inside:
    """What an environment says of the resources inside one."""
    section = around.get("resource_registry", {}).get(RESOURCES) or {}
    hooks = around.get("hooks", [])
    found = list(_hooks_inside(hooks, resource))
    return Inside(_resources_inside(section, resource), found, len(section) + len(hooks))


def _resources_inside(section: Mapping[str, Json], resource: str) -> dict[str, Json]:
    """By patterns that match the resource; what its exact name says is the strongest."""
    inside: dict[str, Json] = {}
    matching = [entry for name, entry in section.items() if matches(resource, name)]
    for entry in (*matching, section.get(resource) or {}):
        inside |= {
            name: below
            for name, below in entry.items()
            if isinstance(below, dict) and name not in OF_RESOURCE
        }
    return inside


def _hooks_inside(hooks: Sequence[Json], resource: str) -> Iterator[Json]:
    for rule in hooks:
        head, slash, rest = rule.get("at", "").partition("/")
        if slash and matches(resource, head):
            yield {**rule, "at": rest}


def child_parameters(
    schema: TypeSchema, properties: Expression
) -> tuple[dict[str, Json], frozenset[str]]:
    """Return the parameters that properties are to a nested stack, and the names of those whose
    values are not known yet. As Heat: lists are text with commas, and null is an empty value."""
    if not isinstance(properties, Mapping):
        return {}, frozenset(schema.properties)
    known = {name: value for name, value in properties.items() if is_static(value)}
    given = {name: _passed(schema.properties[name].kind, value) for name, value in known.items()}
    return given, frozenset(properties.keys() - known.keys())


def _passed(kind: Kind, value: Json) -> Json:
    if value is None:
        value = EMPTY[kind]
    if kind is not Kind.LIST or not isinstance(value, list):
        return value
    return ",".join(text for index, item in enumerate(value) for text in _items(index, item))


def _items(index: int, item: Json) -> Iterator[str]:
    """A map becomes an item for each of its keys."""
    if isinstance(item, dict):
        yield from (f".member.{index}.{key}={value}" for key, value in item.items())
    else:
        yield "" if item is None else item_text(item)


def facade_faults(facade: TypeSchema, provider: TypeSchema) -> Iterator[tuple[str, str]]:
    """What a template lacks to stand for a type: reason and remedy of each."""
    file, name = provider.name, facade.name
    for key, one in facade.properties.items():
        own = provider.properties.get(key)
        if own is None and one.required:
            reason = f"Required property {key} for facade {name} missing in provider"
            yield reason, f"Add the parameter to {file}."
        elif own is not None and not _stands_for(one.kind, own.kind):
            kinds = one.kind.capitalize(), own.kind.capitalize()
            yield (
                f"Property {key} type mismatch between facade {name} ({kinds[0]}) "
                f"and provider ({kinds[1]})",
                f"Change the type of the parameter in {file}.",
            )
    for key, own in provider.properties.items():
        if own.required and key not in facade.properties and not facade.any_property:
            reason = f"Provider requires property {key} unknown in facade {name}"
            yield reason, f"Give the parameter a default in {file}."
    for key in facade.attributes:
        if key not in provider.attributes and key != SHOW:
            reason = f"Attribute {key} for facade {name} missing in provider"
            yield reason, f"Add the output to {file}."


def _stands_for(wanted: Kind, own: Kind) -> bool:
    return wanted in (own, Kind.ANY) or (wanted in NUMBERS and own in NUMBERS)
