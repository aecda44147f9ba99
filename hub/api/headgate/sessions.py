"""The caller's identity, and browser sessions: sign in and sign out."""

from time import monotonic
from typing import Annotated
from uuid import UUID

from aiohttp import web
from pydantic import Field

from channels.envelope import rfc3339
from engine.store.access import tokens
from hub.api.admission import SESSION
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.cells import ADMISSION, CELLS
from hub.api.headgate import responses
from hub.api.request_validation import Body, invalid, read_model
from hub.api.routes import Route, json_response
from hub.auth.cross_site import check_site
from hub.auth.identity import Identity
from hub.auth.request_credentials import RequestCredentials
from hub.auth.roles import Right
from hub.auth.secrets import MAX_PASSWORD_LENGTH
from hub.auth.sessions import COOKIE, BrowserSession
from hub.auth.throttle import block_of
from hub.auth.token_issuer import MAX_NAME_LENGTH

#: Characters of a token; tokens of Keystone are shorter.
MAX_TOKEN_LENGTH = 2048


class SignIn(Body):
    """A token, or a name and a password. Either fits into UNAUTHENTICATED_BODY, as
    UTF-8."""

    token: Annotated[str, Field(max_length=MAX_TOKEN_LENGTH)] = ""
    user: Annotated[str, Field(max_length=MAX_NAME_LENGTH)] = ""
    password: Annotated[str, Field(max_length=MAX_PASSWORD_LENGTH)] = ""


def _document(who: Identity, session: BrowserSession | None) -> responses.SessionDocument:
    return {
        "name": who.name,
        "aliases": list(who.aliases),
        "project": who.project,
        "roles": list(who.roles),
        "rights": sorted(right for right in who.rights if right is not Right.NOTHING),
        "everywhere": who.everywhere,
        "csrf": session.csrf if session else None,
        "expires_at": rfc3339(session.until) if session else None,
    }


async def show(request: web.Request) -> web.Response:
    return json_response(_document(identity_of(request), request.get(SESSION)))


async def begin(request: web.Request) -> web.Response:
    """Pages of other sites cannot sign a browser in."""
    check_site(request.headers.get("Sec-Fetch-Site", ""))
    body = await read_model(request, SignIn)
    block = block_of(request.remote or "")
    credentials = RequestCredentials(
        bearer=body.token, user=body.user, password=body.password, block=block
    )
    if credentials.is_empty:
        raise invalid("token", "is missing", "Send a token, or user and password.")
    gatekeeper, sessions = request[ADMISSION].gatekeeper, request[ADMISSION].sessions
    who = await gatekeeper.admit(
        credentials, project_of(request), request.remote or "", monotonic()
    )
    cookie, session = await sessions.begin(credentials, who)
    await sessions.replace(request.cookies.get(COOKIE, ""))
    response = json_response(_document(who, session), 201)
    set_session_cookie(request, response, cookie)
    return response


def set_session_cookie(request: web.Request, response: web.Response, cookie: str) -> None:
    """cookie: of `Sessions.begin`."""
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(request[ADMISSION].sessions.lasts.total_seconds()),
        httponly=True,
        secure=request.scheme == "https",
        samesite="Strict",
    )


async def end(request: web.Request) -> web.Response:
    """End the session of this request on every process, or the login of the command line whose
    token it has. Other tokens stay valid."""
    if (session := request.get(SESSION)) is not None:
        token_id = session.credentials.session_token
        await request[ADMISSION].sessions.end(session.id, token_id)
    elif context_of(request).settings.auth.mode == tokens.MODE:
        async with context_of(request).database.connection() as conn:
            await tokens.end_sign_in(conn, UUID(identity_of(request).token_id))
    if identity_of(request).everywhere:
        await request.app[CELLS].share_tokens()
    response = web.Response(status=204)
    response.del_cookie(COOKIE, httponly=True, samesite="Strict")
    return response


ROUTES = (
    Route("GET", "/v1/{project}/session", show, "Your identity, roles and rights", "access",
          response=responses.SessionDocument),
    Route("POST", "/v1/{project}/session", begin, "Sign in: a cookie for browsers", "access",
          body=SignIn, takes_body=True, status=201,
          response=responses.SessionDocument, needs=Right.NOTHING),
    Route("DELETE", "/v1/{project}/session", end, "Sign out", "access", status=204,
          needs=Right.READ),
)  # fmt: skip
