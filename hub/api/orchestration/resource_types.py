"""Resource types: which there are, what each takes and gives, and a template to start from."""

from collections.abc import Mapping, Sequence

import jsonschema_rs
from aiohttp import web

from engine.errors import NotFound, nearest
from engine.hot.schema.type_schema import Property, TypeSchema
from hub.api.openapi_components import Document
from hub.api.orchestration import responses
from hub.api.orchestration.type_templates import FORMS, constraint
from hub.api.parts import Route, answer, invalid, parts_of, project_of, query_flag

#: What may be asked for; every type here is the first.
SUPPORT = ("SUPPORTED", "UNKNOWN", "PROTOTYPE", "DEPRECATED", "UNSUPPORTED", "HIDDEN")
#: Takes time in proportion to the text, whatever pattern somebody sends.
LINEAR = jsonschema_rs.RegexOptions()


async def resource_types(request: web.Request) -> web.Response:
    types = _types(request)
    names = _wanted(request, sorted(types))
    if query_flag(request, "with_description"):
        described: list[responses.ResourceTypeDescription] = [
            {"resource_type": name, "description": types[name].description} for name in names
        ]
        return answer(responses.ResourceTypes(resource_types=described))
    return answer(responses.ResourceTypes(resource_types=names))


def _wanted(request: web.Request, names: Sequence[str]) -> list[str]:
    support = request.query.get("support_status", SUPPORT[0]).upper()
    if support not in SUPPORT:
        reason = f"Invalid support status and should be one of {list(SUPPORT)}"
        raise invalid("support_status", reason, "Leave it out for all.")
    # No type says since which version there is one.
    if support != SUPPORT[0] or request.query.get("version"):
        return []
    return _named(request.query.get("name", ""), names)


def _named(pattern: str, names: Sequence[str]) -> list[str]:
    """Those that begin as the regular expression says; none for what is no such."""
    schema = {"pattern": f"^(?:{pattern})"}
    try:
        wanted = jsonschema_rs.validator_for(schema, pattern_options=LINEAR)
    except ValueError:
        return []
    return [name for name in names if wanted.is_valid(name)]


def _types(request: web.Request) -> Mapping[str, TypeSchema]:
    """By name: those that there are, as the operator's environment leaves and adds to them."""
    engine = parts_of(request).engine
    return engine.limits_of(project_of(request)).environment.known(engine.reads.types)


def _type(request: web.Request) -> TypeSchema:
    types, name = _types(request), request.match_info["type"]
    if name not in types:
        reason = f"The Resource Type ({name}) could not be found."
        raise NotFound(reason, remedy=nearest(name, list(types)), code="EntityNotFound")
    return types[name]


async def resource_type(request: web.Request) -> web.Response:
    return answer(type_document(_type(request)))


async def type_template(request: web.Request) -> web.Response:
    schema, form = _type(request), request.query.get("template_type", "cfn")
    if form not in FORMS:
        raise invalid("template_type", f'"{form}" is not known', f"Known: {', '.join(FORMS)}.")
    return answer(FORMS[form](schema))


def type_document(schema: TypeSchema) -> responses.ResourceType:
    return {
        "resource_type": schema.name,
        "description": schema.description,
        "properties": {name: property_document(one) for name, one in schema.properties.items()},
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
    Route("GET", "/v1/{project}/resource_types", resource_types, "Resource types", "types",
          query={
              "name": "only those whose names begin so, as a regular expression",
              "support_status": "only those in this state; every type here is SUPPORTED",
              "version": "only types of this support version; Headgate's types have none",
              "with_description": "true: with what they are",
          },
          response=responses.ResourceTypes),
    Route("GET", "/v1/{project}/resource_types/{type}", resource_type, "A resource type", "types",
          response=responses.ResourceType),
    Route("GET", "/v1/{project}/resource_types/{type}/template", type_template,
          "A template to start from", "types",
          query={"template_type": "cfn or hot; default cfn"}, response=Document),
)  # fmt: skip
