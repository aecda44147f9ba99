"""What a project may use, and how much of it is used."""

from aiohttp import web

from channels.store import subscriptions
from engine.service.requests.quotas import CHECKS, RESOURCES, STACKS, WAITING_HOOKS, Measure
from hub.api.headgate import responses
from hub.api.parts import Route, answer, parts_of, project_of

SUBSCRIPTIONS = Measure(
    "subscriptions_per_project", subscriptions.USED, "subscriptions", "Delete one"
)
MEASURES = (STACKS, RESOURCES, WAITING_HOOKS, SUBSCRIPTIONS, CHECKS)


async def listed(request: web.Request) -> web.Response:
    project = project_of(request)
    quotas = parts_of(request).engine.quotas_of(project)
    shown: list[responses.Quota] = []
    async with parts_of(request).database.connection() as conn:
        for measure in MEASURES:
            limit, used = await quotas.read_usage(conn, project, measure)
            shown.append({"name": measure.name, "limit": limit or None, "used": used})
    return answer(responses.Quotas(quotas=shown))


ROUTES = (
    Route("GET", "/v1/{project}/quotas", listed, "Quotas of a project, and usage", "access",
          response=responses.Quotas),
)  # fmt: skip
