"""Tokens and passwords: made, listed, revoked."""

from functools import partial
from typing import Annotated

from aiohttp import web
from pydantic import Field

from channels.envelope import rfc3339
from engine.errors import Forbidden
from engine.store import tokens as store
from engine.store.tokens import EVERYWHERE, TokenRecord
from hub.api.bodies import Body, read
from hub.api.headgate import responses
from hub.api.parts import (
    Route,
    answer,
    identity_of,
    parts_of,
    project_of,
    query_flag,
    uuid_of,
)
from hub.auth.address_blocks import block_of
from hub.auth.identity import Identity
from hub.auth.roles import Right
from hub.auth.token_issuer import TokenRequest, given


class CreateToken(Body):
    """password: for HTTP basic, by the name; without one, a token is made. expires_in: ``90d``;
    empty: it holds until it is revoked. everywhere: in every project."""

    name: str
    roles: Annotated[list[str], Field(max_length=20)]
    password: str | None = None
    expires_in: str = ""
    everywhere: bool = False


def document(one: TokenRecord) -> responses.Token:
    return {
        "id": str(one.id),
        "name": one.name,
        "roles": list(one.roles),
        "kind": one.kind,
        "mode": one.mode,
        "everywhere": one.project == EVERYWHERE,
        "created_by": one.created_by,
        "created_at": rfc3339(one.created_at),
        "expires_at": rfc3339(one.expires_at) if one.expires_at else None,
        "used_at": rfc3339(one.used_at) if one.used_at else None,
        "revoked_at": rfc3339(one.revoked_at) if one.revoked_at else None,
        "revoked_by": one.revoked_by,
    }


async def create(request: web.Request) -> web.Response:
    said, who, parts = await read(request, CreateToken), identity_of(request), parts_of(request)
    wish = TokenRequest(
        id=parts.new_id(),
        project=_project(request, who, everywhere=said.everywhere),
        name=said.name,
        roles=said.roles,
        by=who.name,
        password=said.password,
        expires_in=said.expires_in,
        random_bytes=parts.random_bytes(32),
        mode=parts.settings.auth.mode,
    )
    make = partial(given, wish)
    if said.password is None:
        kept, token = make()
    else:
        kept, token = await parts.hasher.run(block_of(request.remote or ""), make)
    async with parts.database.connection() as conn:
        made = await store.create(conn, kept)
    shown: responses.NewToken = {**document(made), "token": token}
    return answer(shown, 201)


async def listed(request: web.Request) -> web.Response:
    who = identity_of(request)
    project = _project(request, who, everywhere=query_flag(request, "everywhere"))
    async with parts_of(request).database.connection() as conn:
        found = await store.listed(conn, project, gone=query_flag(request, "gone"))
    return answer(responses.Tokens(tokens=[document(one) for one in found]))


async def revoke(request: web.Request) -> web.Response:
    who = identity_of(request)
    project = _project(request, who, everywhere=query_flag(request, "everywhere"))
    token_id = uuid_of(request.match_info["token"], "token", "TokenNotFound")
    async with parts_of(request).database.connection() as conn:
        await store.revoke(conn, project, token_id, who.name)
    return web.Response(status=204)


def _project(request: web.Request, who: Identity, *, everywhere: bool) -> str:
    """Raises Forbidden: what holds everywhere is given by whose right holds everywhere."""
    if everywhere and not who.everywhere:
        raise Forbidden(
            f"{who.name} is not an admin of every project",
            remedy="Leave `everywhere` out, or ask with a token that holds everywhere.",
            code="Forbidden",
        )
    return EVERYWHERE if everywhere else project_of(request)


EVERYWHERE_QUERY = {"everywhere": "true: those that hold in every project"}
ROUTES = (
    Route("GET", "/v1/{project}/tokens", listed, "List tokens and passwords", "access",
          query=EVERYWHERE_QUERY | {"gone": "true: include revoked and expired tokens"},
          response=responses.Tokens, needs=Right.ADMINISTER),
    Route("POST", "/v1/{project}/tokens", create, "Give out a token, or a password", "access",
          body=CreateToken, takes_body=True, status=201, response=responses.NewToken,
          needs=Right.ADMINISTER),
    Route("DELETE", "/v1/{project}/tokens/{token}", revoke, "Revoke a token or password", "access",
          query=EVERYWHERE_QUERY, status=204, needs=Right.ADMINISTER),
)  # fmt: skip
