"""The quotas of a project, and their usage."""

from aiohttp import web

from channels.store import subscriptions
from engine.service.requests.quotas import (
    CHECKS,
    OBSERVATIONS,
    REPAIRS,
    RESOURCES,
    STACKS,
    WAITING_HOOKS,
    QuotaKind,
)
from hub.api.app_context import context_of, project_of
from hub.api.headgate import responses
from hub.api.routes import Route, json_response

SUBSCRIPTIONS = QuotaKind(
    "subscriptions_per_project", subscriptions.USED, "subscriptions", "Delete one"
)
KINDS = (STACKS, RESOURCES, WAITING_HOOKS, SUBSCRIPTIONS, CHECKS, OBSERVATIONS, REPAIRS)


async def list_quotas(request: web.Request) -> web.Response:
    project = project_of(request)
    quotas = context_of(request).engine.quotas_of(project)
    documents: list[responses.Quota] = []
    async with context_of(request).database.connection() as conn:
        for kind in KINDS:
            limit, used = await quotas.read_usage(conn, project, kind)
            documents.append({"name": kind.name, "limit": limit or None, "used": used})
    return json_response(responses.Quotas(quotas=documents))


ROUTES = (
    Route("GET", "/v1/{project}/quotas", list_quotas, "List quotas and usage", "access",
          response=responses.Quotas),
)  # fmt: skip
