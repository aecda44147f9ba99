"""Template versions and traversals of a stack, and snapshots of its deleted resources."""

from aiohttp import web

from engine.missing_objects import no_version
from hub.api.app_context import context_of
from hub.api.headgate import responses
from hub.api.headgate.graph import traversal_document
from hub.api.openapi_components import document_of
from hub.api.orchestration import documents
from hub.api.orchestration.stacks import S
from hub.api.query_parameters import limit
from hub.api.request_validation import query_page_size, stack_of
from hub.api.routes import Route, json_response

#: Traversals.
PAGE_SIZE = 100


async def list_versions(request: web.Request) -> web.Response:
    """Newest first. The version of a listed traversal may be purged."""
    stack = await stack_of(request)
    page_size = query_page_size(request, PAGE_SIZE)
    rows, traversals = await context_of(request).engine.reads.history(stack, page_size)
    return json_response(
        responses.TemplateVersions(
            versions=[document_of(responses.TemplateVersion, one) for one in rows],
            traversals=[traversal_document(one) for one in traversals],
        )
    )


async def show_version(request: web.Request) -> web.Response:
    stack, number = await stack_of(request), request.match_info["version"]
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise no_version(number)
    version = await context_of(request).engine.reads.version(stack, int(number))
    return json_response(
        document_of(
            responses.TemplateVersionContent, version, environment=documents.environment(version)
        )
    )


async def list_resource_snapshots(request: web.Request) -> web.Response:
    """Of deleted resources with the deletion policy Snapshot."""
    rows = await context_of(request).engine.snapshots.read_saved_resources(await stack_of(request))
    return json_response(
        responses.ResourceSnapshots(
            resource_snapshots=[
                document_of(responses.ResourceSnapshot, one, resource_name=one.name) for one in rows
            ]
        )
    )


ROUTES = (
    Route("GET", f"{S}/versions", list_versions, "List template versions and traversals",
          "stacks", query={"limit": limit(PAGE_SIZE)},
          response=responses.TemplateVersions),
    Route("GET", f"{S}/versions/{{version}}", show_version, "Show a template version", "stacks",
          response=responses.TemplateVersionContent),
    Route("GET", f"{S}/resource_snapshots", list_resource_snapshots, "List resource snapshots",
          "stacks", response=responses.ResourceSnapshots),
)  # fmt: skip
