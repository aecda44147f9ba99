"""Data for resources that wait for it, by right of a resource's own token."""

from uuid import UUID

from aiohttp import web

from channels.schemas.words import NOTHING
from engine.errors import HeadgateError
from engine.hooks.rule import TOKEN
from engine.types.signal_doors import PARAMETER, PATH
from hub.api.admission import guarded
from hub.api.parts import Route, answer, body_of, parts_of, uuid_or_none
from hub.auth.presented import presented_in


async def send(request: web.Request) -> web.Response:
    """A wrong token learns nothing, not even whether the resource is."""
    stack_id, resource_id = _admitted(request)
    body = await body_of(request)
    await parts_of(request).engine.signals.send(None, stack_id, resource_id, body, TOKEN)
    return answer(None)


def _admitted(request: web.Request) -> tuple[UUID, UUID]:
    """The ids of the stack and the resource that the token is of."""
    said = presented_in(request.headers)
    token = said.bearer or said.token or request.query.get(PARAMETER, "")
    stack_id = uuid_or_none(request.match_info["stack"])
    resource_id = uuid_or_none(request.match_info["resource"])
    if stack_id is None or resource_id is None:
        raise _refused()
    if not parts_of(request).doors.opens(token, stack_id, resource_id):
        raise _refused()
    return stack_id, resource_id


def _refused() -> HeadgateError:
    return HeadgateError(
        "this is not the resource's token",
        place="Authorization",
        remedy="Send `Authorization: Bearer TOKEN` or `X-Auth-Token: TOKEN` with the token that the"
        " resource gives.",
        code="Unauthorized",
    )


QUERY = {PARAMETER: "the token, for whoever can send no header"}
ROUTES = tuple(
    Route(method, PATH, guarded(send), "Send data to a resource that waits for it", "resources",
          query=QUERY, takes_body=True, gives=NOTHING)
    for method in ("POST", "PUT")
)  # fmt: skip
