"""A JSON Schema of HOT templates, for editors and other programs that check documents.

It accepts every template that validation accepts with these types, unless an environment maps the
name of one to another type. Validation also checks what a schema cannot say, such as references.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.hot.language.dialect import HOT
from engine.hot.language.versions import EXTENDED_SINCE, VERSIONS, UnavailableReason, known_versions
from engine.hot.schema.parameters import ParameterKind
from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.hot.template.hot_parameters import KNOWN_KEYS, READERS
from engine.hot.template.template import DATA_KEYS
from engine.words import Json

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
#: Types of JSON that a property of each kind accepts besides null and functions.
ACCEPTED: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.STRING: ("string", "integer", "boolean"),
    Kind.INTEGER: ("integer", "number", "string", "boolean"),
    Kind.NUMBER: ("number", "string", "boolean"),
    Kind.BOOLEAN: ("boolean", "string"),
    Kind.LIST: ("array",),
    Kind.MAP: ("object",),
}
#: Text that is a number or a boolean.
TEXTS: Final = {
    Kind.INTEGER: "[0-9]",
    Kind.NUMBER: "[0-9]|[Ii][Nn][Ff]|[Nn][Aa][Nn]",
    Kind.BOOLEAN: "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$",
}
SCALAR: Final[Json] = {"type": ["string", "number", "boolean", "null"]}
NAME: Final[Json] = {"type": "string", "minLength": 1}
NAMES: Final[Json] = {"type": "array", "items": NAME}
POLICIES: Final = ["Delete", "Retain", "Snapshot", "delete", "retain", "snapshot"]


def template_json_schema(types: Mapping[str, TypeSchema]) -> dict[str, Json]:
    """Return the schema (draft 2020-12). types: the resource types by name.

    Functions are accepted in place of every value. Types with other names are accepted with any
    properties, because an environment may map them.
    """
    versions = [one for one in VERSIONS.values() if one.dialect is HOT]
    sections = dict.fromkeys(name for one in versions for name in one.sections)
    known = _sections()
    return {
        "$schema": DIALECT,
        "title": "Heat Orchestration Template",
        "type": "object",
        "required": [HOT.version],
        "properties": {name: known.get(name, {}) for name in sections},
        "additionalProperties": False,
        "$defs": {
            "function": _function(),
            "expression": {"anyOf": [_reference("function"), _interpolation_schema()]},
            "parameter": _parameter(),
            "output": {
                "type": "object",
                "required": [HOT.value],
                "properties": {
                    HOT.value: {},
                    HOT.description: SCALAR,
                    HOT.condition: {},
                    "preconditions": _reference("assertions"),
                    "postconditions": _reference("assertions"),
                },
            },
            "assertions": {
                "type": ["array", "null"],
                "items": _entry(("assert", "message"), {"assert": {}, "message": {}}),
            },
            "resource": _resource(types),
            **{_properties_name(name): _properties(one) for name, one in types.items()},
            **{
                _policy_name(name): _fields(one.update_policy)
                for name, one in types.items()
                if one.update_policy
            },
        },
    }


def _sections() -> dict[str, Json]:
    def map_of(definition: str) -> Json:
        return {"type": ["object", "null"], "additionalProperties": _reference(definition)}

    return {
        HOT.version: {
            "description": "The version of the template language.",
            "enum": [*known_versions(HOT.version)],
        },
        HOT.description: SCALAR,
        HOT.parameters: map_of("parameter"),
        HOT.resources: map_of("resource"),
        HOT.outputs: map_of("output"),
        HOT.conditions: {"type": ["object", "null"]},
        HOT.hooks: {"type": ["array", "null"], "items": {"type": "object"}},
        "locals": {"type": ["object", "null"]},
        "rules": {
            "type": ["array", "null"],
            "items": _entry(("assert", "message"), {"when": {}, "assert": {}, "message": {}}),
        },
        "convergence": {"type": ["object", "null"]},
        "data": {
            "type": ["object", "null"],
            "additionalProperties": _entry(
                ("type", "id"),
                {key: {} for key in DATA_KEYS}
                | {"type": NAME, "description": SCALAR}
                | {"properties": _or_function({"type": ["object", "null"]})},
            ),
        },
        "moved": {
            "type": ["array", "null"],
            "items": _entry(("from", "to"), {"from": NAME, "to": NAME}),
        },
        "import": {
            "type": ["array", "null"],
            "items": _entry(("resource", "id"), {"resource": NAME, "id": {}}),
        },
        "parameter_groups": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "required": ["parameters"],
                "properties": {"parameters": {"type": "array", "items": {"type": "string"}}},
            },
        },
    }


def _function() -> Json:
    names = {
        name
        for version in VERSIONS.values()
        if version.dialect is HOT
        for name, entry in version.functions.items()
        if not isinstance(entry, UnavailableReason)
    }
    return {
        "description": "A call of a function.",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "propertyNames": {"enum": sorted(names)},
    }


def _interpolation_schema() -> Json:
    return {
        "description": f"A string with references, since version {EXTENDED_SINCE}.",
        "type": "string",
        "pattern": r"\$\{",
    }


def _entry(required: Sequence[str], fields: Mapping[str, Json]) -> Json:
    """The schema of a map with these keys and no others."""
    return {
        "type": "object",
        "required": [*required],
        "properties": fields,
        "additionalProperties": False,
    }


def _parameter() -> Json:
    rules: dict[str, Json] = {name: {} for name in READERS}
    constraint = {
        "type": "object",
        "properties": {**rules, "description": SCALAR},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 2,
    }
    flag = {"type": ["boolean", "string", "integer", "null"]}
    described = {
        "type": {"enum": [kind.value for kind in ParameterKind]},
        "description": SCALAR,
        "label": SCALAR,
        "hidden": flag,
        "immutable": flag,
        "constraints": {"type": ["array", "null"], "items": constraint},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}},
        "schema": {
            "description": "A JSON schema of the values of a parameter of type json. Versions "
            f"before {EXTENDED_SINCE} ignore it."
        },
    }
    return {
        "type": "object",
        "required": ["type"],
        "properties": {name: described.get(name, {}) for name in KNOWN_KEYS},
        "additionalProperties": False,
    }


def _resource(types: Mapping[str, TypeSchema]) -> Json:
    keys = dict.fromkeys(
        key for one in VERSIONS.values() if one.dialect is HOT for key in one.known_resource_keys
    )
    known: dict[str, Json] = {
        HOT.type: {
            "description": "A resource type, a template file, or a name that an environment maps.",
            "type": "string",
            "anyOf": [{"enum": sorted(types)}, {"minLength": 1}],
        },
        HOT.properties: _or_function({"type": ["object", "null"]}),
        HOT.metadata: _or_function({"type": ["object", "null"]}),
        HOT.depends_on: _or_function({"type": ["string", "array", "null"]}),
        HOT.deletion_policy: _or_function({"enum": [*POLICIES, "", None]}),
        HOT.update_policy: _or_function({"type": ["object", "null"]}),
        HOT.description: SCALAR,
        HOT.condition: {"type": ["string", "boolean", "object", "null"]},
        HOT.hooks: {"type": ["string", "object", "array", "null"]},
        "for_each": _or_function({"type": ["array", "object"]}),
        "lifecycle": _entry(
            (),
            {
                "prevent_destroy": _or_function({"type": ["boolean", "null"]}),
                "ignore_changes": _or_function({"anyOf": [NAMES, {"enum": ["all", None]}]}),
                "replace_when": {"type": ["array", "null"]},
            },
        ),
        "preconditions": _reference("assertions"),
        "postconditions": _reference("assertions"),
    }
    return {
        "type": "object",
        "required": [HOT.type],
        "properties": {key: known.get(key, {}) for key in keys},
        "additionalProperties": False,
        "allOf": [_of_type(name, one) for name, one in types.items()],
    }


def _of_type(name: str, schema: TypeSchema) -> Json:
    """The rules of resources of a type. An environment may map the name `OS::Heat::None` to
    nothing; the schema of a type applies to its name.
    """
    then: dict[str, Json] = {
        "properties": {HOT.properties: _reference(_properties_name(name))}
        | ({HOT.update_policy: _reference(_policy_name(name))} if schema.update_policy else {})
    }
    if any(one.required and not one.former_names for one in schema.properties.values()):
        then["required"] = [HOT.properties]
    return {
        "if": {"properties": {HOT.type: {"const": name}}, "required": [HOT.type]},
        "then": then,
    }


def _properties_name(name: str) -> str:
    return f"{name}.{HOT.properties}"


def _policy_name(name: str) -> str:
    return f"{name}.{HOT.update_policy}"


def _reference(definition: str) -> Json:
    return {"$ref": f"#/$defs/{definition}"}


def _or_function(schema: Json) -> Json:
    """Return a schema that also accepts a call of a function, or a string with references."""
    return {"if": _reference("expression"), "else": schema}


def _properties(schema: TypeSchema) -> Json:
    if schema.any_property:
        return _or_function({"type": ["object", "null"]})
    described = {"description": schema.description} if schema.description else {}
    return described | _fields(schema.properties)


def _fields(fields: Mapping[str, Property]) -> Json:
    """The schema of a map with these entries."""
    entries: dict[str, Json] = {}
    for name, one in fields.items():
        entries[name] = _property(one)
        for former in one.former_names:
            described = {"deprecated": True, "description": f"Former name of {name}."}
            entries[former] = _property(one) | described
    required = [
        {"anyOf": [{"required": [given]} for given in (name, *one.former_names)]}
        for name, one in fields.items()
        if one.required
    ]
    wanted: dict[str, Json] = {
        "type": ["object"] if required else ["object", "null"],
        "properties": entries,
        "additionalProperties": False,
    }
    return _or_function(wanted | ({"allOf": required} if required else {}))


def _property(one: Property) -> Json:
    described: dict[str, Json] = {"description": one.description} if one.description else {}
    if one.default is not None and not one.hidden:
        described["default"] = one.default
    return described | _value(one)


def _value(one: Property) -> Json:
    """The schema of a value: of its kind, null, or a call of a function."""
    if one.kind is Kind.ANY:
        return {}
    if one.kind is Kind.MAP and one.fields is not None and not one.accepts_text:
        return _fields_or_null(one.fields)
    kinds = [*ACCEPTED[one.kind], "null"]
    if one.accepts_text and one.kind in (Kind.LIST, Kind.MAP):
        kinds += ["string", "array"] if one.kind is Kind.MAP else ["string"]
    wanted: dict[str, Json] = {"type": kinds}
    if one.kind in TEXTS:
        wanted["pattern"] = TEXTS[one.kind]
    if one.kind is Kind.LIST and one.items is not None:
        wanted["items"] = _property(one.items)
    for rule in one.constraints:
        wanted |= _constraint(rule, one.kind)
    return _or_function(wanted)


def _fields_or_null(fields: Mapping[str, Property]) -> Json:
    return {"if": {"type": "null"}, "else": _fields(fields)}


def _constraint(rule: Constraint, kind: Kind) -> dict[str, Json]:
    """The keywords of a constraint; none where JSON Schema has no equal rule."""
    match rule.kind, kind:
        case "allowed_values", Kind.STRING | Kind.INTEGER | Kind.NUMBER:
            return {"enum": [*_spellings(rule.allowed), None]}
        case "range", Kind.INTEGER | Kind.NUMBER:
            return _bounds(rule, "minimum", "maximum")
        case "length", Kind.STRING:
            return _bounds(rule, "minLength", "maxLength")
        case "length", Kind.LIST:
            return _bounds(rule, "minItems", "maxItems")
        case "length", Kind.MAP:
            return _bounds(rule, "minProperties", "maxProperties")
        case _:
            return {}


def _bounds(rule: Constraint, low: str, high: str) -> dict[str, Json]:
    bounds = {low: rule.min, high: rule.max}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _spellings(allowed: tuple[Json, ...]) -> list[Json]:
    """The allowed values as text and as the numbers and booleans that equal them."""
    found: list[Json] = []
    for one in allowed:
        found.append(one)
        if isinstance(one, int | float) and not isinstance(one, bool):
            found.append(str(one))
        elif isinstance(one, str) and one.lstrip("-").isdecimal():
            found.append(int(one))
        elif one in ("True", "False"):
            found.append(one == "True")
    return found
