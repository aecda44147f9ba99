"""Data for resources that wait for it, by right of a resource's own token."""

from functools import partial
from types import NoneType
from uuid import UUID

from aiohttp import web

from engine.errors import HeadgateError
from engine.hooks.rule import TOKEN
from engine.principal import Principal
from engine.types.signal_urls import PARAMETER, PATH
from hub.api.admission import guarded
from hub.api.parts import BY_TOKEN, Route, answer, body_of, parts_of, uuid_or_none
from hub.auth.credentials import request_credentials


async def send(request: web.Request) -> web.Response:
    """A wrong token learns nothing, not even whether the resource is."""
    stack_id, resource_id = await _admitted(request)
    request[BY_TOKEN] = True
    body = await body_of(request, nullable=True)
    by = Principal(f"signal:{stack_id}/{resource_id}", TOKEN)
    await parts_of(request).engine.signals.send(None, stack_id, resource_id, body, by)
    return answer(None)


async def _admitted(request: web.Request) -> tuple[UUID, UUID]:
    """The ids of the stack and the resource that the token is of."""
    said = request_credentials(request.headers)
    token = said.bearer or said.token or request.query.get(PARAMETER, "")
    stack_id = uuid_or_none(request.match_info["stack"])
    resource_id = uuid_or_none(request.match_info["resource"])
    if stack_id is None or resource_id is None:
        raise _refused()
    parts = parts_of(request)
    opens = partial(parts.signal_urls.opens, token, stack_id, resource_id)
    if not await parts.token_keys.checked(opens):
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


QUERY = {PARAMETER: "the token, for clients that cannot send headers"}
ROUTES = tuple(
    Route(method, PATH, guarded(send), "Send data to a resource that waits for it", "resources",
          query=QUERY, takes_body=True, response=NoneType)
    for method in ("POST", "PUT")
)  # fmt: skip
