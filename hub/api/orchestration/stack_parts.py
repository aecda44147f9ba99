"""What a stack consists of: its template, environment, files and outputs; types; validation."""

from collections.abc import Mapping

from aiohttp import web

from channels.schemas.words import MAP, TEXT, map_of
from engine.errors import NotFound, nearest
from engine.hot.resolve import MASK
from engine.hot.schema import Property, TypeSchema
from engine.store.records import TemplateRecord
from engine.words import Json
from hub.api.orchestration import documents as gives
from hub.api.orchestration import show
from hub.api.orchestration.stacks import S
from hub.api.orchestration.type_templates import FORMS, constraint
from hub.api.parts import Route, answer, invalid, parts_of, stack_of


async def template(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return answer((await parts_of(request).engine.template(stack)).template)


async def environment(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return answer(shown_environment(await parts_of(request).engine.template(stack)))


def shown_environment(stored: TemplateRecord) -> dict[str, Json]:
    """With all parameters as given, hidden ones masked."""
    shown = dict(stored.environment)
    for section in ("parameters", "parameter_defaults"):
        given: Mapping[str, Json] = shown.get(section) or {}
        extra = stored.parameters if section == "parameters" else {}
        shown[section] = {
            name: MASK if name in stored.hidden else value
            for name, value in {**given, **extra}.items()
        }
    return shown


async def files(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return answer((await parts_of(request).engine.template(stack)).files)


async def outputs(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    found = await parts_of(request).engine.outputs(stack)
    keys = [{"output_key": one.key, "description": one.description} for one in found]
    return answer({"outputs": keys})


async def output(request: web.Request) -> web.Response:
    stack, key = await stack_of(request), request.match_info["key"]
    found = await parts_of(request).engine.outputs(stack)
    for one in found:
        if one.key == key:
            return answer({"output": show.output(one)})
    near = nearest(key, [one.key for one in found])
    raise NotFound(f'there is no output "{key}"', remedy=near, code="NotFound")


async def resource_types(request: web.Request) -> web.Response:
    types = parts_of(request).engine.types
    if request.query.get("with_description", "").lower() == "true":
        described = [
            {"resource_type": name, "description": types[name].description}
            for name in sorted(types)
        ]
        return answer({"resource_types": described})
    return answer({"resource_types": sorted(types)})


def _type(request: web.Request) -> TypeSchema:
    types, name = parts_of(request).engine.types, request.match_info["type"]
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


def type_document(schema: TypeSchema) -> dict[str, Json]:
    status = {"status": "SUPPORTED", "message": None, "version": None, "previous_status": None}
    return {
        "resource_type": schema.name,
        "description": schema.description,
        "properties": {name: property_document(one) for name, one in schema.properties.items()},
        "attributes": {
            name: {"type": str(one.kind), "description": one.description}
            for name, one in schema.attributes.items()
        },
        "support_status": status,
    }


def property_document(one: Property) -> dict[str, Json]:
    document: dict[str, Json] = {
        "type": str(one.kind),
        "description": one.description,
        "required": one.required,
        "update_allowed": one.update_allowed,
        "immutable": one.immutable,
    }
    if one.default is not None:
        document["default"] = one.default
    if one.constraints:
        document["constraints"] = [constraint(rule) for rule in one.constraints]
    if one.fields:
        document["schema"] = {name: property_document(inner) for name, inner in one.fields.items()}
    if one.items:
        document["schema"] = {"*": property_document(one.items)}
    return document


ROUTES = (
    Route("GET", f"{S}/template", template, "The template", "stacks", gives=MAP),
    Route("GET", f"{S}/environment", environment, "The environment", "stacks", gives=MAP),
    Route("GET", f"{S}/files", files, "Files that came with the template", "stacks",
          gives=map_of(TEXT)),
    Route("GET", f"{S}/outputs", outputs, "Names of the outputs", "stacks", gives=gives.OUTPUTS),
    Route("GET", f"{S}/outputs/{{key}}", output, "An output with its value", "stacks",
          gives=gives.ONE_OUTPUT),
    Route("GET", "/v1/{project}/resource_types", resource_types, "Resource types", "types",
          query={"with_description": "true: with what they are"}, gives=gives.TYPES),
    Route("GET", "/v1/{project}/resource_types/{type}", resource_type, "A resource type", "types",
          gives=gives.TYPE),
    Route("GET", "/v1/{project}/resource_types/{type}/template", type_template,
          "A template to start from", "types",
          query={"template_type": "cfn or hot; cfn when not said"}, gives=MAP),
)  # fmt: skip
