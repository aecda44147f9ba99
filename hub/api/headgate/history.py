"""What a stack should have been, and the walks toward it."""

from aiohttp import web

from channels.envelope import rfc3339
from engine.errors import NotFound
from hub.api.headgate import responses
from hub.api.headgate.graph import traversal_document
from hub.api.orchestration.stack_parts import shown_environment
from hub.api.orchestration.stacks import S
from hub.api.parts import Route, answer, parts_of, query_limit, stack_of

#: How many traversals are shown when nobody says how many.
USUAL = 100


async def versions(request: web.Request) -> web.Response:
    """Newest first. A traversal toward a version that is forgotten is still listed."""
    stack = await stack_of(request)
    limit = query_limit(request, default=USUAL) or USUAL
    known, traversals = await parts_of(request).engine.reads.history(stack, limit)
    return answer(
        responses.TemplateVersions(
            versions=[
                {
                    "version": one.version,
                    "description": one.description,
                    "requested_by": one.requested_by,
                    "created_at": rfc3339(one.created_at),
                    "current": one.current,
                    "reached": one.reached,
                }
                for one in known
            ],
            traversals=[traversal_document(one) for one in traversals],
        )
    )


async def version(request: web.Request) -> web.Response:
    stack, asked = await stack_of(request), request.match_info["version"]
    if not asked.isascii() or not asked.isdigit() or len(asked) > 9:
        raise NotFound(f'there is no version "{asked}"', code="VersionNotFound")
    found = await parts_of(request).engine.reads.version(stack, int(asked))
    return answer(
        responses.TemplateVersionContent(
            version=found.version,
            created_at=rfc3339(found.created_at),
            template=found.template,
            source=found.source,
            environment=shown_environment(found),
            files=found.files,
        )
    )


async def kept(request: web.Request) -> web.Response:
    """What resources kept before they were deleted (deletion_policy Snapshot)."""
    found = await parts_of(request).engine.snapshots.kept(await stack_of(request))
    return answer(
        responses.ResourceSnapshots(
            resource_snapshots=[
                {
                    "resource_name": one.name,
                    "type": one.type,
                    "physical_id": one.physical_id,
                    "created_at": rfc3339(one.created_at),
                }
                for one in found
            ]
        )
    )


ROUTES = (
    Route("GET", f"{S}/versions", versions, "Versions of the template, and the walks toward them",
          "stacks", query={"limit": "at most so many traversals"},
          response=responses.TemplateVersions),
    Route("GET", f"{S}/versions/{{version}}", version, "One version of the template", "stacks",
          response=responses.TemplateVersionContent),
    Route("GET", f"{S}/resource_snapshots", kept, "What resources kept before they went",
          "stacks", response=responses.ResourceSnapshots),
)  # fmt: skip
