"""POST /import: read existing resources, and return a template that imports them."""

from typing import Annotated

from aiohttp import web
from pydantic import Field

from engine.errors import Finding
from engine.service.imports.imports import MAX_OBJECTS, ObjectToImport, ReadObject
from engine.words import Json
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.costly_requests import costly
from hub.api.headgate import responses
from hub.api.request_validation import Body, read_model
from hub.api.routes import Route, json_response

Text = Annotated[str, Field(min_length=1, max_length=1_000)]


class ResourceToImport(Body):
    type: Text
    id: Text
    properties: Annotated[dict[str, Json], Field(default_factory=dict)]


class ImportRequest(Body):
    """context: the section of an environment, with the region of the resources."""

    resources: Annotated[list[ResourceToImport], Field(min_length=1, max_length=MAX_OBJECTS)]
    context: Annotated[dict[str, Json], Field(default_factory=dict)]


async def read_resources(request: web.Request) -> web.Response:
    body = await read_model(
        request, ImportRequest, 'Send {"resources": [{"type": "TYPE", "id": "ID"}]}.'
    )
    wanted = [ObjectToImport(one.type, one.id, one.properties) for one in body.resources]
    credential = identity_of(request).credential
    result = await context_of(request).engine.imports.read(
        project_of(request), wanted, credential, body.context
    )
    document: responses.ImportedTemplate = {
        "template": result.template.text,
        "parameters": list(result.template.required),
        "resources": [_resource(one) for one in result.objects],
        "findings": [_finding(one) for one in result.findings],
    }
    return json_response(document)


def _resource(one: ReadObject) -> responses.ReadResource:
    return {
        "resource_name": one.name,
        "resource_type": one.type,
        "physical_resource_id": one.physical_id,
        "properties": dict(one.properties),
        "unread": dict(one.unread),
        "differences": [
            {"property": each.path, "desired": each.desired, "observed": each.observed}
            for each in one.differences
        ],
    }


def _finding(one: Finding) -> responses.UnreadResource:
    return {
        "place": one.place,
        "reason": one.reason,
        "remedy": one.remedy,
        "code": one.code,
    }


#: It changes nothing, but it sends requests with the rights of the caller, as a create does.
ROUTES = (
    Route("POST", "/v1/{project}/import", costly(read_resources),
          "Read existing resources, and write a template that imports them", "stacks",
          body=ImportRequest, takes_body=True, response=responses.ImportedTemplate),
)  # fmt: skip
