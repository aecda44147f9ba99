"""Signal URLs: data for resources, authenticated by the token of the resource."""

from functools import partial
from types import NoneType
from uuid import UUID

from aiohttp import web

from engine.errors import HeadgateError
from engine.hooks.rule import TOKEN
from engine.principal import Principal
from engine.types.signal_urls import PARAMETER, PATH
from engine.words import uuid_or_none
from hub.api.admission import count_wrong_tokens
from hub.api.app_context import BY_TOKEN, AppContext, context_of
from hub.api.cells import in_any_cell
from hub.api.request_validation import body_of
from hub.api.routes import Route, json_response
from hub.api.stack_changes import changes_stack
from hub.auth.request_credentials import request_credentials


async def send(request: web.Request, ids: tuple[UUID, UUID]) -> web.StreamResponse:
    """ids: of the stack and the resource."""
    request[BY_TOKEN] = True
    return await _send(request, ids)


@changes_stack
async def _send(request: web.Request, ids: tuple[UUID, UUID]) -> web.StreamResponse:
    stack_id, resource_id = ids
    body = await body_of(request, nullable=True)
    by = Principal(f"signal:{stack_id}/{resource_id}", TOKEN)
    await context_of(request).engine.signals.send(None, stack_id, resource_id, body, by)
    return json_response(None)


def _read_token(request: web.Request) -> tuple[str, UUID, UUID]:
    """The token, and the IDs of the stack and the resource. Raises HeadgateError."""
    credentials = request_credentials(request.headers)
    token = credentials.bearer or credentials.token or request.query.get(PARAMETER, "")
    stack_id = uuid_or_none(request.match_info["stack"])
    resource_id = uuid_or_none(request.match_info["resource"])
    if not token or stack_id is None or resource_id is None:
        raise _refusal()
    return token, stack_id, resource_id


async def _authenticate(token: tuple[str, UUID, UUID], context: AppContext) -> tuple[UUID, UUID]:
    """The IDs of the stack and the resource. The response to a wrong token does not reveal whether
    the resource exists."""
    if not await context.token_keys.check_refreshed(partial(context.signal_urls.opens, *token)):
        raise _refusal()
    return token[1:]


def _refusal() -> HeadgateError:
    return HeadgateError(
        "this is not the resource's token",
        place="Authorization",
        remedy="Send `Authorization: Bearer TOKEN` or `X-Auth-Token: TOKEN` with the token of the"
        " resource.",
        code="Unauthorized",
    )


QUERY = {PARAMETER: "the token, for clients that cannot send headers"}
ROUTES = tuple(
    Route(method, PATH, count_wrong_tokens(in_any_cell(_read_token, _authenticate, send)),
          "Send a signal to a resource", "resources",
          query=QUERY, takes_body=True, response=NoneType)
    for method in ("POST", "PUT")
)  # fmt: skip
