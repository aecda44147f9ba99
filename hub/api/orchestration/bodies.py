"""Bodies of requests about stacks, with the template in them that they name by its URL."""

from aiohttp import web

from engine.words import Json
from hub.api.parts import body_of, invalid, parts_of, project_of


async def stack_body(request: web.Request) -> dict[str, Json]:
    """A template that is sent goes before one that is named. Raises Invalid."""
    body = await body_of(request)
    said = body.pop("template_url", None)
    if not said or body.get("template"):
        return body
    if not isinstance(said, str):
        raise invalid("template_url", "must be a string", "Send a URL.")
    parts = parts_of(request)
    most = parts.settings.quotas.of(project_of(request)).template_bytes
    return body | {"template": await parts.fetch_template(said, most)}
