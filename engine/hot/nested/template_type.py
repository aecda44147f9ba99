"""A template as a resource type (Heat's provider template): its parameters are the properties, its
outputs the attributes.

nested_templates.py finds and counts nested templates.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from engine.hot.environment.context_section import CONTEXT
from engine.hot.environment.environment import Environment, parse_environment
from engine.hot.environment.registry import RegistryEntry, ResourceRegistry, find_label
from engine.hot.environment.registry_section import LABEL, RESOURCE_KEYS, RESOURCES
from engine.hot.expressions.expression import Expression, is_static
from engine.hot.schema.parameters import ParameterKind, ParameterSchema, item_to_text
from engine.hot.schema.properties import EMPTY_VALUES
from engine.hot.schema.type_schema import SHOW, Attribute, Kind, Property, TypeSchema
from engine.hot.syntax.globs import matches_glob
from engine.hot.syntax.keyed_names import base_name
from engine.hot.template.template import Template
from engine.words import Json

KINDS: Mapping[ParameterKind, Kind] = {
    ParameterKind.STRING: Kind.STRING,
    ParameterKind.NUMBER: Kind.NUMBER,
    ParameterKind.LIST: Kind.LIST,
    ParameterKind.JSON: Kind.MAP,
    ParameterKind.BOOLEAN: Kind.BOOLEAN,
}
#: Numeric kinds, which a parameter of a provider may replace with each other.
NUMBERS = frozenset({Kind.INTEGER, Kind.NUMBER})
#: An attribute of every template type, unless an output has this name.
STACK_ID = "OS::stack_id"
#: Functions that read an attribute, with the separator in their text form.
ATTRIBUTE_FUNCTIONS = {"get_attr": None, "Fn::GetAtt": "."}
#: Environment sections that nested stacks inherit unchanged.
INHERITED_SECTIONS = ("parameter_defaults", "event_sinks", "encrypted_param_names", CONTEXT)


@dataclass(frozen=True, slots=True)
class TemplateType:
    """file: the template's name among the files, or its URL. environment: of the nested stack,
    without parameters, which come from the properties. digest: sha256, hex, of the template and the
    environment as written.
    """

    file: str
    schema: TypeSchema
    template: Template
    environment: Environment
    digest: str


@dataclass(frozen=True, slots=True)
class NestedSettings:
    """The settings in an environment for the resources of a nested stack, in environment form;
    usually empty.

    entry_count: number of entries that were examined.
    """

    resources: Mapping[str, Json]
    hooks: Sequence[Json]
    entry_count: int = 0

    def __bool__(self) -> bool:
        return bool(self.resources or self.hooks)


#: The glob of all resources of a nested stack.
ALL: Final = "*"
NO_SETTINGS: Final = NestedSettings({}, [])


def template_type(
    file: str,
    template: Template,
    parent: Environment,
    by: RegistryEntry | None,
    settings: NestedSettings,
    parsed: dict[str, Environment] | None = None,
) -> TemplateType:
    """Return the template type of a file for a resource.

    parent: the environment of the resource's stack. by: the registry entry that led to the file.
    settings: settings of resources inside. parsed: the environments of a stack tree so far, by
    their text; updated.
    """
    document = nested_environment_document(parent.document, by, settings)
    environment = _parse_once(document, parent.registry.operator, {} if parsed is None else parsed)
    hidden = frozenset(environment.encrypted_param_names)
    properties = {
        name: _property(one, parent.parameter_defaults.get(name), name in hidden)
        for name, one in template.parameters.items()
    } | dict.fromkeys(template.unreadable.parameters, Property(Kind.ANY))
    attributes = {STACK_ID: Attribute(description="The ID of the nested stack.")} | {
        name: Attribute(description=output.description) for name, output in template.outputs.items()
    }
    attributes |= dict.fromkeys(template.unreadable.outputs, Attribute())
    schema = TypeSchema(
        file,
        properties,
        attributes,
        template.description,
        nested_resources=template.unreadable.resources.union(template.resources),
        of_template=True,
    )
    written = json.dumps([template.document, document], sort_keys=True, default=str)
    digest = sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
    return TemplateType(file, schema, template, environment, digest)


def _parse_once(
    document: Mapping[str, Json], operator: ResourceRegistry | None, parsed: dict[str, Environment]
) -> Environment:
    text = json.dumps(document, default=str)
    if text not in parsed:
        parsed[text] = parse_environment(document, operator)
    return parsed[text]


def with_secrets(kind: TemplateType, secret: Mapping[str, TypeSchema]) -> TemplateType:
    """Return the type with outputs marked secret that read a secret.

    secret: schemas of the nested resources with secrets.
    """
    if not secret:
        return kind
    outputs, local_values = kind.template.outputs, [*kind.template.locals.values()]

    def _read(name: str) -> Json:
        value = outputs[name].value
        return [value, local_values] if local_values else value

    attributes = {
        name: replace(one, secret=name in outputs and _reads_secret(_read(name), secret))
        for name, one in kind.schema.attributes.items()
    }
    return replace(
        kind,
        schema=replace(kind.schema, attributes=attributes, secret_resources=frozenset(secret)),
    )


def _reads_secret(snippet: Json, secret: Mapping[str, TypeSchema]) -> bool:
    """Return whether a snippet may read a secret. If the attribute is not a literal, the name of
    such a resource is enough.
    """
    if isinstance(snippet, dict):
        if snippet.keys() & ATTRIBUTE_FUNCTIONS.keys() and len(snippet) == 1:
            called, args = next(iter(snippet.items()))
            parts = args.split(ATTRIBUTE_FUNCTIONS[called]) if isinstance(args, str) else args
            match parts:
                case [str(name), str(attribute), *_]:
                    if "${" not in name + attribute:
                        name = name if name in secret else base_name(name) or name
                        return name in secret and secret[name].is_secret(attribute)
                    return True  # of any resource
        return any(_reads_secret(one, secret) for one in snippet.values())
    if isinstance(snippet, list):
        return any(_reads_secret(one, secret) for one in snippet)
    return isinstance(snippet, str) and (snippet in secret or base_name(snippet) in secret)


def _property(parameter: ParameterSchema, default: Json, hidden: bool) -> Property:
    """Return the property of a parameter. All can be updated, because the nested stack handles
    changes; defaults are filled in by the nested template.
    """
    return Property(
        KINDS[parameter.kind],
        parameter.description,
        required=parameter.default is None and default is None,
        constraints=parameter.constraints,
        update_allowed=True,
        hidden=parameter.hidden or hidden,
        accepts_text=parameter.kind in (ParameterKind.LIST, ParameterKind.JSON),
    )


def nested_environment_document(
    parent: Mapping[str, Json], by: RegistryEntry | None, settings: NestedSettings
) -> dict[str, Json]:
    """Return the environment document of a nested stack.

    The entry that led to its template is omitted, so that the template can use the type that it
    implements; settings of resources inside apply to its resources.
    """
    child = {name: parent[name] for name in INHERITED_SECTIONS if name in parent}
    section: Mapping[str, Json] = parent.get("resource_registry", {})
    registry = {name: target for name, target in section.items() if name != RESOURCES}
    if by is not None and by.of_operator:
        registry[by.name] = None
    elif by is not None and by.path == (by.name,):
        registry.pop(by.name, None)
    if settings.resources:
        registry[RESOURCES] = settings.resources
    if registry:
        child["resource_registry"] = registry
    if settings.hooks:
        child["hooks"] = settings.hooks
    return child


def settings_inside(parent: Mapping[str, Json], resource: str) -> NestedSettings:
    """Return the settings in an environment for the resources of a resource's nested stack."""
    section = parent.get("resource_registry", {}).get(RESOURCES) or {}
    hooks = parent.get("hooks", [])
    found = list(_hooks_inside(hooks, resource))
    return NestedSettings(_resources_inside(section, resource), found, len(section) + len(hooks))


def _resources_inside(section: Mapping[str, Json], resource: str) -> dict[str, Json]:
    """Merge the entries whose pattern matches the resource; its exact name takes precedence. All
    resources inside have the label that the environment requests for the resource, unless it
    requests another one for them."""
    inside: dict[str, Json] = {}
    label = _label_of(section, resource)
    matching = [entry for name, entry in section.items() if matches_glob(resource, name)]
    for entry in (*matching, section.get(resource) or {}):
        inside |= {
            name: below
            for name, below in entry.items()
            if isinstance(below, dict) and name not in RESOURCE_KEYS
        }
    if label:
        of_all: Mapping[str, Json] = inside.get(ALL, {})
        inside = {ALL: of_all} | inside
        inside[ALL] = {LABEL: label, **of_all}
    return inside


def _label_of(section: Mapping[str, Json], resource: str) -> str:
    labels = [
        (name, entry[LABEL] or "")
        for name, entry in section.items()
        if LABEL in entry and not isinstance(entry[LABEL], dict)
    ]
    return find_label(labels, resource) if labels else ""


def _hooks_inside(hooks: Sequence[Json], resource: str) -> Iterator[Json]:
    for rule in hooks:
        head, slash, rest = rule.get("at", "").partition("/")
        if slash and matches_glob(resource, head):
            yield {**rule, "at": rest}


def nested_parameters(
    schema: TypeSchema, properties: Expression
) -> tuple[dict[str, Json], frozenset[str]]:
    """Return (parameters of the nested stack, names of those whose values are not known yet). As in
    Heat: lists become comma-delimited text, and null an empty value.
    """
    if not isinstance(properties, Mapping):
        return {}, frozenset(schema.properties)
    known = {name: value for name, value in properties.items() if is_static(value)}
    given = {
        name: _to_parameter(schema.properties[name].kind, value) for name, value in known.items()
    }
    return given, frozenset(properties.keys() - known.keys())


def _to_parameter(kind: Kind, value: Json) -> Json:
    if value is None:
        value = EMPTY_VALUES[kind]
    if kind is not Kind.LIST or not isinstance(value, list):
        return value
    return ",".join(text for index, item in enumerate(value) for text in _items(index, item))


def _items(index: int, item: Json) -> Iterator[str]:
    """Yield the text items of a list item; a map gives one for each key."""
    if isinstance(item, dict):
        yield from (f".member.{index}.{key}={value}" for key, value in item.items())
    else:
        yield "" if item is None else item_to_text(item)


def facade_mismatches(facade: TypeSchema, provider: TypeSchema) -> Iterator[tuple[str, str]]:
    """Yield (reason, remedy) for each incompatibility between a template and the type that it
    implements.
    """
    file, name = provider.name, facade.name
    for key, one in facade.properties.items():
        own = provider.properties.get(key)
        if own is None and one.required:
            reason = f"Required property {key} for facade {name} missing in provider"
            yield reason, f"Add the parameter to {file}."
        elif own is not None and not _is_compatible(one.kind, own.kind):
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


def _is_compatible(wanted: Kind, own: Kind) -> bool:
    return wanted in (own, Kind.ANY) or (wanted in NUMBERS and own in NUMBERS)
