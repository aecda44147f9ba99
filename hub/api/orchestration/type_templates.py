"""A template to start from for a resource type: a parameter for each property, an output for each
attribute. Pure.
"""

from collections.abc import Mapping
from typing import Any, assert_never

from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.words import Json

HOT_VERSION = "2016-10-14"
CFN_VERSION = "2012-12-12"


def hot_template(schema: TypeSchema) -> dict[str, Json]:
    """As Heat writes it; its outputs have no name that a template could not give."""
    name = resource_name(schema)
    outputs = {
        key: {"description": description, "value": {"get_attr": [name, key]}}
        for key, description in attributes(schema).items()
    }
    return {
        "heat_template_version": HOT_VERSION,
        "description": f"Initial template of {name}",
        "parameters": {key: _parameter(one) for key, one in schema.properties.items()},
        "resources": {
            name: {
                "type": schema.name,
                "properties": {key: {"get_param": key} for key in schema.properties},
            }
        },
        "outputs": {**outputs, "OS::stack_id": {"value": {"get_resource": name}}},
    }


def cfn_template(schema: TypeSchema) -> dict[str, Json]:
    name = resource_name(schema)
    outputs = {
        key: {"Description": description, "Value": {"Fn::GetAtt": [name, key]}}
        for key, description in attributes(schema).items()
    }
    return {
        "HeatTemplateFormatVersion": CFN_VERSION,
        "Description": f"Initial template of {name}",
        "Parameters": {key: _cfn_parameter(one) for key, one in schema.properties.items()},
        "Resources": {
            name: {
                "Type": schema.name,
                "Properties": {key: _cfn_value(key, one) for key, one in schema.properties.items()},
            }
        },
        "Outputs": outputs,
    }


#: What a client may ask for as ``template_type``.
FORMS = {"cfn": cfn_template, "hot": hot_template}


def resource_name(schema: TypeSchema) -> str:
    return schema.name.rpartition("::")[2]


def attributes(schema: TypeSchema) -> Mapping[str, str]:
    """Every attribute with its description; all types have ``show``."""
    own = {name: one.description for name, one in schema.attributes.items()}
    return {**own, "show": "Detailed information about resource."}


def _parameter_type(one: Property) -> str:
    match one.kind:
        case Kind.STRING:
            return "string"
        case Kind.INTEGER | Kind.NUMBER:
            return "number"
        case Kind.BOOLEAN:
            return "boolean"
        case Kind.LIST:
            # Heat says comma_delimited_list of every list, which cannot give a list of maps.
            plain = one.items is not None and one.items.kind is Kind.STRING
            return "comma_delimited_list" if plain else "json"
        case Kind.MAP:
            return "json"
        case Kind.ANY:
            return "string" if isinstance(one.default, str) else "json"
        case _ as never:
            assert_never(never)


def _parameter(one: Property) -> dict[str, Json]:
    said: dict[str, Json] = {"type": _parameter_type(one), "description": one.description}
    if one.default is not None:
        said["default"] = one.default
    if one.hidden:
        said["hidden"] = True
    if rules := [constraint(rule) for rule in one.constraints]:
        said["constraints"] = rules
    return said


def constraint(rule: Constraint) -> dict[str, Any]:
    """As a template writes it."""
    match rule.kind:
        case "allowed_values":
            return {"allowed_values": list(rule.allowed)}
        case "allowed_pattern":
            return {"allowed_pattern": rule.pattern}
        case "custom_constraint":
            return {"custom_constraint": rule.name}
        case _:
            return {rule.kind: bounds(rule)}


def bounds(rule: Constraint) -> dict[str, int | float]:
    """What of a length, range or modulo is said."""
    said = {"min": rule.min, "max": rule.max, "step": rule.step, "offset": rule.offset}
    return {name: value for name, value in said.items() if value is not None}


_CFN_TYPES = {
    "string": "String", "number": "Number", "boolean": "Boolean", "json": "Json",
    "comma_delimited_list": "CommaDelimitedList",
}  # fmt: skip
_CFN_BOUNDS = {
    ("length", "min"): "MinLength", ("length", "max"): "MaxLength",
    ("range", "min"): "MinValue", ("range", "max"): "MaxValue",
}  # fmt: skip


def _cfn_parameter(one: Property) -> dict[str, Json]:
    said: dict[str, Json] = {
        "Type": _CFN_TYPES[_parameter_type(one)],
        "Description": one.description,
    }
    if one.default is not None:
        said["Default"] = one.default
    if one.hidden:
        said["NoEcho"] = "true"
    for rule in one.constraints:
        if rule.kind == "allowed_values":
            said["AllowedValues"] = list(rule.allowed)
        elif rule.kind == "allowed_pattern":
            said["AllowedPattern"] = rule.pattern
        said |= {
            _CFN_BOUNDS[rule.kind, name]: value
            for name, value in bounds(rule).items()
            if (rule.kind, name) in _CFN_BOUNDS
        }
    return said


def _cfn_value(name: str, one: Property) -> dict[str, Json]:
    if _parameter_type(one) == "comma_delimited_list":
        return {"Fn::Split": [",", {"Ref": name}]}
    return {"Ref": name}
