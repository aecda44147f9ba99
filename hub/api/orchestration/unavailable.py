"""What the Orchestration API has and this release has not: refused by name, never half done."""

from aiohttp import web

from hub.api.parts import Handler, Route, invalid
from hub.api.problems import PROBLEM


def not_yet(what: str, remedy: str = "") -> Handler:
    """A handler that says that `what` is not there."""

    async def refuse(_: web.Request) -> web.Response:
        raise invalid("", f"{what} is not available in this release", remedy, "NotSupported")

    return refuse


#: (method, path, what it would be)
MISSING = (
    ("GET", "/v1/{project}/resource_types/{type}/template", "a template of a resource type"),
)

ROUTES = tuple(
    Route(method, path, not_yet(what), "Not available in this release", "stacks", status=400,
          gives=PROBLEM)
    for method, path, what in MISSING
)  # fmt: skip
