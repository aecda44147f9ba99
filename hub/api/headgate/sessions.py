"""Who one is here, and the sessions of browsers."""

from time import monotonic
from typing import Annotated

from aiohttp import web
from pydantic import Field

from channels.envelope import rfc3339
from hub.api.admission import ADMISSION, SESSION
from hub.api.bodies import Body, read
from hub.api.headgate import responses
from hub.api.parts import Route, answer, identity_of, invalid, project_of
from hub.auth.address_blocks import block_of
from hub.auth.credentials import RequestCredentials
from hub.auth.identity import Identity
from hub.auth.roles import Right
from hub.auth.secrets import LONGEST_PASSWORD
from hub.auth.sessions import COOKIE, Session, check_site
from hub.auth.token_issuer import LONGEST_NAME

#: Characters of a token; tokens of Keystone are shorter.
LONGEST_TOKEN = 2048


class SignIn(Body):
    """A token, or a name and a password. Either fits into UNAUTHENTICATED_BODY, however the JSON is
    written."""

    token: Annotated[str, Field(max_length=LONGEST_TOKEN)] = ""
    user: Annotated[str, Field(max_length=LONGEST_NAME)] = ""
    password: Annotated[str, Field(max_length=LONGEST_PASSWORD)] = ""


def _document(who: Identity, session: Session | None) -> responses.SessionDocument:
    return {
        "name": who.name,
        "project": who.project,
        "roles": list(who.roles),
        "rights": sorted(right for right in who.rights if right is not Right.NOTHING),
        "everywhere": who.everywhere,
        "csrf": session.csrf if session else None,
        "expires_at": rfc3339(session.until) if session else None,
    }


async def shown(request: web.Request) -> web.Response:
    return answer(_document(identity_of(request), request.get(SESSION)))


async def begin(request: web.Request) -> web.Response:
    """Nobody is signed in by a page of another site, as somebody else than they think."""
    check_site(request.headers.get("Sec-Fetch-Site", ""))
    said = await read(request, SignIn)
    block = block_of(request.remote or "")
    presented = RequestCredentials(
        bearer=said.token, user=said.user, password=said.password, block=block
    )
    if presented.nothing:
        raise invalid("token", "is missing", "Send a token, or user and password.")
    gatekeeper, sessions = request.app[ADMISSION].gatekeeper, request.app[ADMISSION].sessions
    who = await gatekeeper.admit(presented, project_of(request), request.remote or "", monotonic())
    cookie, session = await sessions.begin(presented, who)
    await sessions.replace(request.cookies.get(COOKIE, ""))
    response = answer(_document(who, session), 201)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(sessions.lasts.total_seconds()),
        httponly=True,
        secure=request.scheme == "https",
        samesite="Strict",
    )
    return response


async def end(request: web.Request) -> web.Response:
    """The session that this request came with ends at once, on every process."""
    if (session := request.get(SESSION)) is not None:
        await request.app[ADMISSION].sessions.end(session.id)
    response = web.Response(status=204)
    response.del_cookie(COOKIE, httponly=True, samesite="Strict")
    return response


ROUTES = (
    Route("GET", "/v1/{project}/session", shown, "Who you are here, and what you may", "access",
          response=responses.SessionDocument),
    Route("POST", "/v1/{project}/session", begin, "Sign in: a cookie for browsers", "access",
          body=SignIn, takes_body=True, status=201,
          response=responses.SessionDocument, needs=Right.NOTHING),
    Route("DELETE", "/v1/{project}/session", end, "Sign out", "access", status=204,
          needs=Right.READ),
)  # fmt: skip
