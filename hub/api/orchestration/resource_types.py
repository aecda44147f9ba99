"""Resource types, their properties and attributes, and initial templates."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import jsonschema_rs
from aiohttp import web

from engine.errors import NotFound
from engine.hot.schema.type_schema import (
    Constraint,
    Kind,
    Property,
    TypeSchema,
    unknown_type_remedy,
)
from engine.words import Json
from hub.api.app_context import context_of, project_of
from hub.api.openapi_components import Document
from hub.api.orchestration import responses
from hub.api.orchestration.documents import cfn_constraint
from hub.api.request_validation import invalid, query_flag
from hub.api.routes import Route, json_response

HOT_VERSION = "2016-10-14"
CFN_VERSION = "2012-12-12"


def hot_template(schema: TypeSchema) -> dict[str, Json]:
    """As in Heat, with the output ``OS::stack_id``."""
    name = resource_name(schema)
    outputs = {
        key: {"description": description, "value": {"get_attr": [name, key]}}
        for key, description in attributes(schema).items()
    }
    return {
        "heat_template_version": HOT_VERSION,
        "description": f"Initial template of {name}",
        "parameters": {key: _parameter(one) for key, one in schema.current_properties()},
        "resources": {
            name: {
                "type": schema.name,
                "properties": {key: {"get_param": key} for key, _ in schema.current_properties()},
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
        "Parameters": {key: _cfn_parameter(one) for key, one in schema.current_properties()},
        "Resources": {
            name: {
                "Type": schema.name,
                "Properties": {
                    key: _cfn_value(key, one) for key, one in schema.current_properties()
                },
            }
        },
        "Outputs": outputs,
    }


#: By the values of ``template_type``.
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
            # Heat uses comma_delimited_list for every list, which cannot contain maps.
            plain = one.items is not None and one.items.kind is Kind.STRING
            return "comma_delimited_list" if plain else "json"
        case Kind.MAP:
            return "json"
        case Kind.ANY:
            return "string" if isinstance(one.default, str) else "json"
        case _ as never:
            assert_never(never)


def _parameter(one: Property) -> dict[str, Json]:
    parameter: dict[str, Json] = {"type": _parameter_type(one), "description": one.description}
    if one.default is not None:
        parameter["default"] = one.default
    if one.hidden:
        parameter["hidden"] = True
    if rules := [constraint(rule) for rule in one.constraints]:
        parameter["constraints"] = rules
    return parameter


def constraint(rule: Constraint) -> dict[str, Any]:
    """In the notation of HOT."""
    match rule.kind:
        case "allowed_values":
            return {"allowed_values": list(rule.allowed)}
        case "allowed_pattern":
            return {"allowed_pattern": rule.pattern}
        case "custom_constraint":
            return {"custom_constraint": rule.name}
        case "schema":
            return {"schema": rule.schema}
        case _:
            bounds = {"min": rule.min, "max": rule.max, "step": rule.step, "offset": rule.offset}
            return {rule.kind: {name: value for name, value in bounds.items() if value is not None}}


_CFN_TYPES = {
    "string": "String", "number": "Number", "boolean": "Boolean", "json": "Json",
    "comma_delimited_list": "CommaDelimitedList",
}  # fmt: skip
#: Constraints that CloudFormation does not have.
_HEAT_CONSTRAINTS = {"Step", "Offset", "CustomConstraint", "Schema"}


def _cfn_parameter(one: Property) -> dict[str, Json]:
    parameter: dict[str, Json] = {
        "Type": _CFN_TYPES[_parameter_type(one)],
        "Description": one.description,
    }
    if one.default is not None:
        parameter["Default"] = one.default
    if one.hidden:
        parameter["NoEcho"] = "true"
    for rule in one.constraints:
        parameter |= {
            name: value
            for name, value in cfn_constraint(rule).items()
            if name not in _HEAT_CONSTRAINTS
        }
    return parameter


def _cfn_value(name: str, one: Property) -> dict[str, Json]:
    if _parameter_type(one) == "comma_delimited_list":
        return {"Fn::Split": [",", {"Ref": name}]}
    return {"Ref": name}


#: Heat's values of support_status; every type here is SUPPORTED.
SUPPORT = ("SUPPORTED", "UNKNOWN", "PROTOTYPE", "DEPRECATED", "UNSUPPORTED", "HIDDEN")
#: An engine that matches any pattern in linear time.
LINEAR = jsonschema_rs.RegexOptions()


async def list_types(request: web.Request) -> web.Response:
    types = _types(request)
    names = _select_names(request, sorted(types))
    if query_flag(request, "with_description"):
        described: list[responses.ResourceTypeDescription] = [
            {"resource_type": name, "description": types[name].description} for name in names
        ]
        return json_response(responses.ResourceTypes(resource_types=described))
    return json_response(responses.ResourceTypes(resource_types=names))


def _select_names(request: web.Request, names: Sequence[str]) -> list[str]:
    support = request.query.get("support_status", SUPPORT[0]).upper()
    if support not in SUPPORT:
        reason = f"Invalid support status and should be one of {list(SUPPORT)}"
        raise invalid("support_status", reason, "Leave it out for all.")
    # The types here have no support version.
    if support != SUPPORT[0] or request.query.get("version"):
        return []
    return _matching(request.query.get("name", ""), names)


def _matching(pattern: str, names: Sequence[str]) -> list[str]:
    """The names that begin with a match of the regular expression; none if it is not valid."""
    schema = {"pattern": f"^(?:{pattern})"}
    try:
        validator = jsonschema_rs.validator_for(schema, pattern_options=LINEAR)
    except ValueError:
        return []
    return [name for name in names if validator.is_valid(name)]


def _types(request: web.Request) -> Mapping[str, TypeSchema]:
    """The types of the project by name, with the changes of the operator's environment."""
    engine = context_of(request).engine
    return engine.limits_of(project_of(request)).environment.available_types(engine.reads.types)


def _type(request: web.Request) -> TypeSchema:
    types, name = _types(request), request.match_info["type"]
    if name not in types:
        reason = f"The Resource Type ({name}) could not be found."
        remedy = unknown_type_remedy(name, types) or "GET .../resource_types lists the types."
        raise NotFound(reason, place="type", remedy=remedy, code="EntityNotFound")
    return types[name]


async def show_type(request: web.Request) -> web.Response:
    return json_response(type_document(_type(request)))


async def show_template(request: web.Request) -> web.Response:
    schema, given = _type(request), request.query.get("template_type", "cfn")
    if (form := given.lower()) not in FORMS:
        known = ", ".join(FORMS)
        reason = f'Invalid template type "{given}", valid types are: {known}.'
        reason = f"Template type is not supported: {reason}"
        raise invalid("template_type", reason, f"Send one of {known}.")
    return json_response(FORMS[form](schema))


def type_document(schema: TypeSchema) -> responses.ResourceType:
    return {
        "resource_type": schema.name,
        "description": schema.description,
        "properties": {name: property_document(one) for name, one in schema.current_properties()},
        "attributes": {
            name: {"type": str(one.kind), "description": one.description}
            for name, one in schema.attributes.items()
        },
        "support_status": {
            "status": "SUPPORTED",
            "message": None,
            "version": None,
            "previous_status": None,
        },
    }


def property_document(one: Property) -> responses.Property:
    document: responses.Property = {
        "type": str(one.kind),
        "description": one.description,
        "required": one.required,
        "update_allowed": one.update_allowed,
        "immutable": one.immutable,
    }
    if one.default is not None:
        document["default"] = one.default
    if one.constraints:
        document["constraints"] = [
            {**constraint(rule), **({"description": rule.description} if rule.description else {})}
            for rule in one.constraints
        ]
    if one.former_names:
        document["former_names"] = list(one.former_names)
    if one.fields:
        document["schema"] = {name: property_document(inner) for name, inner in one.fields.items()}
    if one.items:
        document["schema"] = {"*": property_document(one.items)}
    return document


ROUTES = (
    Route("GET", "/v1/{project}/resource_types", list_types, "Resource types", "types",
          query={
              "name": "only types whose names begin with a match of this regular expression",
              "support_status": "only types with this status; every type here is SUPPORTED",
              "version": "only types of this support version; Headgate's types have none",
              "with_description": "true: include descriptions",
          },
          response=responses.ResourceTypes),
    Route("GET", "/v1/{project}/resource_types/{type}", show_type, "A resource type", "types",
          response=responses.ResourceType),
    Route("GET", "/v1/{project}/resource_types/{type}/template", show_template,
          "An initial template", "types",
          query={"template_type": "cfn or hot; default cfn"}, response=Document),
)  # fmt: skip
