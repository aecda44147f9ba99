"""Tokens and passwords: create, list, revoke."""

from functools import partial
from typing import Annotated

from aiohttp import web
from pydantic import Field

from engine.errors import Forbidden
from engine.missing_objects import no_token
from engine.store.access import tokens as store
from engine.store.access.tokens import EVERYWHERE, TokenRecord
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.cells import CELLS
from hub.api.headgate import responses
from hub.api.openapi_components import document_of
from hub.api.query_parameters import flag
from hub.api.request_validation import Body, query_flag, read_model, uuid_of
from hub.api.routes import Route, json_response
from hub.auth.identity import Identity
from hub.auth.roles import Right
from hub.auth.throttle import block_of
from hub.auth.token_issuer import TokenRequest, issue


class CreateToken(Body):
    """password: create a password for HTTP basic instead of a token. expires_in: such as ``90d``;
    empty for no expiry. everywhere: valid in every project."""

    name: str
    roles: Annotated[list[str], Field(max_length=20)]
    password: str | None = None
    expires_in: str = ""
    everywhere: bool = False


def document(token: TokenRecord) -> responses.Token:
    return document_of(responses.Token, token, everywhere=token.project == EVERYWHERE)


async def create(request: web.Request) -> web.Response:
    body, who, context = (
        await read_model(request, CreateToken),
        identity_of(request),
        context_of(request),
    )
    token_request = TokenRequest(
        id=context.new_id(),
        project=_project(request, who, everywhere=body.everywhere),
        name=body.name,
        roles=body.roles,
        by=who.name,
        password=body.password,
        expires_in=body.expires_in,
        random_bytes=context.random_bytes(32),
        mode=context.settings.auth.mode,
    )
    make = partial(issue, token_request)
    if body.password is None:
        issued, token = make()
    else:
        issued, token = await context.hasher.run(block_of(request.remote or ""), make)
    async with context.database.connection() as conn:
        row = await store.create(conn, issued)
    if body.everywhere:
        await request.app[CELLS].share_tokens()
    created: responses.NewToken = {**document(row), "token": token}
    return json_response(created, 201)


async def list_tokens(request: web.Request) -> web.Response:
    who = identity_of(request)
    project = _project(request, who, everywhere=query_flag(request, "everywhere"))
    async with context_of(request).database.connection() as conn:
        rows = await store.list_tokens(conn, project, all_tokens=query_flag(request, "all"))
    return json_response(responses.Tokens(tokens=[document(one) for one in rows]))


async def revoke(request: web.Request) -> web.Response:
    who = identity_of(request)
    project = _project(request, who, everywhere=query_flag(request, "everywhere"))
    token_id = uuid_of(request.match_info["token"], no_token)
    async with context_of(request).database.connection() as conn:
        await store.revoke(conn, project, token_id, who.name)
    if project == EVERYWHERE:
        await request.app[CELLS].share_tokens()
    return web.Response(status=204)


def _project(request: web.Request, who: Identity, *, everywhere: bool) -> str:
    """Raises Forbidden, because tokens for every project require an admin of every project."""
    if everywhere and not who.everywhere:
        raise Forbidden(
            f"{who.name} is not an admin of every project",
            remedy="Leave `everywhere` out, or use a token that is valid in every project.",
            code="Forbidden",
        )
    return EVERYWHERE if everywhere else project_of(request)


EVERYWHERE_QUERY = {"everywhere": flag("true: tokens that are valid in every project")}
ROUTES = (
    Route("GET", "/v1/{project}/tokens", list_tokens, "List tokens and passwords", "access",
          query=EVERYWHERE_QUERY | {"all": flag("true: include revoked and expired tokens")},
          response=responses.Tokens, needs=Right.ADMINISTER),
    Route("POST", "/v1/{project}/tokens", create, "Create a token or password", "access",
          body=CreateToken, takes_body=True, status=201, response=responses.NewToken,
          needs=Right.ADMINISTER),
    Route("DELETE", "/v1/{project}/tokens/{token}", revoke, "Revoke a token or password", "access",
          query=EVERYWHERE_QUERY, status=204, needs=Right.ADMINISTER),
)  # fmt: skip
