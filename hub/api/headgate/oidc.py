"""Sign-in with OpenID Connect: the redirect to the provider, and the return from it."""

from collections.abc import Awaitable, Callable
from html import escape
from time import monotonic

from aiohttp import web

from engine.errors import HeadgateError, NotFound
from engine.store.access import tokens
from engine.store.access.tokens import EVERYWHERE, NewToken
from hub.api.app_context import context_of, project_of, public_url
from hub.api.cells import ADMISSION, CELLS, Cell, in_first_cell, naming_cell
from hub.api.dashboard import page_response
from hub.api.error_middleware import error_headers, status_of
from hub.api.headgate.sessions import set_session_cookie
from hub.api.query_parameters import text
from hub.api.routes import JSON, QueryParameter, Route
from hub.auth import secrets
from hub.auth.gatekeeper import UNAUTHORIZED
from hub.auth.oidc import (
    RANDOM_BYTES,
    SIGN_IN_TIME,
    OidcUser,
    PendingSignIn,
    authorization_code,
    authorization_url,
    begin_sign_in,
    grant_roles,
    read_cookie,
    write_cookie,
)
from hub.auth.oidc_client import OidcClient
from hub.auth.request_credentials import RequestCredentials
from hub.auth.roles import Right
from hub.auth.sessions import COOKIE
from hub.auth.throttle import TooManyRequests, block_of

#: Until the return from the provider. Browsers send it with the redirect from another site.
PENDING_COOKIE = "headgate_sign_in"
CALLBACK = "/oidc/callback"
#: Random bytes of the secret of the token behind a session, which is never shown.
SECRET_BYTES = 32

Step = Callable[[web.Request], Awaitable[web.Response]]


def for_browsers(home: str) -> Callable[[Step], Step]:
    """Answer errors with a page, because a person opened the address. home: the relative address of
    the dashboard."""

    def decorate(step: Step) -> Step:
        async def handle(request: web.Request) -> web.Response:
            try:
                return await step(request)
            except HeadgateError as error:
                if request.headers.get("Accept") == JSON:  # a program
                    raise
                response = page_response(
                    request,
                    "sign_in_refused.html",
                    f"{home}dashboard",
                    status=status_of(error),
                    reason=escape(error.finding.reason),
                    remedy=escape(_remedy(error)),
                    home=home,
                )
                response.headers.update(error_headers(request, error))
                _end_pending(request, response)
                return response

        return handle

    return decorate


def _remedy(error: HeadgateError) -> str:
    if isinstance(error, TooManyRequests):
        return f"Wait {error.wait} seconds, then sign in again."
    return error.finding.remedy


@for_browsers("../../../")
async def begin(request: web.Request) -> web.Response:
    """Send the browser to the provider. The cookie is valid for one sign-in."""
    client, context = require_provider(request), context_of(request)
    pending = begin_sign_in(
        project_of(request),
        request.query.get("page", ""),
        context.random_bytes(3 * RANDOM_BYTES),
    )
    provider = await client.provider()
    # The session cookie does not come with the return, which begins at another site.
    await request[ADMISSION].sessions.replace(request.cookies.get(COOKIE, ""))
    response = web.Response(status=302)
    response.headers["Location"] = authorization_url(
        provider, client.rules, pending, _redirect_uri(request)
    )
    response.set_cookie(
        _pending_cookie(request),
        write_cookie(pending),
        max_age=SIGN_IN_TIME,
        path="/",
        httponly=True,
        secure=request.scheme == "https",
        samesite="Lax",
    )
    return response


@for_browsers("../")
@in_first_cell
async def end(request: web.Request) -> web.Response:
    """Begin the session of the user for whom the provider issued the code."""
    require_provider(request)
    pending = read_cookie(request.cookies.get(_pending_cookie(request), ""))
    cell = await request.app[CELLS].find(pending.project)
    cell.enter(request)
    with naming_cell(cell.name):
        user = await _identify(request, pending)
        response = web.Response(status=303)
        response.headers["Location"] = f"{public_url(request)}/{pending.page}"
        await _begin_session(request, response, user, cell, pending.project)
        _end_pending(request, response)
        return response


async def _identify(request: web.Request, pending: PendingSignIn) -> OidcUser:
    client = require_provider(request)
    provider = await client.provider()
    code = authorization_code(request.query, pending, provider, client.rules.issuer)
    gatekeeper, address, now = request[ADMISSION].gatekeeper, request.remote or "", monotonic()
    try:
        async with gatekeeper.turn(address, now):
            return await client.exchange(code, pending, _redirect_uri(request))
    except HeadgateError as error:
        if error.code == UNAUTHORIZED:  # the provider rejected the code
            gatekeeper.limits.count_wrong(address, now)
        raise


async def _begin_session(
    request: web.Request, response: web.Response, user: OidcUser, cell: Cell, project: str
) -> None:
    """Begin the session of a new token, whose secret is not kept. cell: of the project. Raises
    Forbidden."""
    context, admission, rules = (
        context_of(request),
        request[ADMISSION],
        require_provider(request).rules,
    )
    granted_project, roles = grant_roles(rules.grants, user, project)
    token_id = context.new_id()
    new = NewToken(
        id=token_id,
        project=granted_project,
        name=user.name,
        roles=roles,
        kind="token",
        hash=secrets.hash_token(secrets.write_token(token_id, context.random_bytes(SECRET_BYTES))),
        created_by="OpenID Connect",
        lasts=admission.sessions.lasts,
        subject=f"{rules.issuer} {user.subject}",
    )
    if granted_project != EVERYWHERE:
        await request.app[CELLS].add_project(cell, project)
    async with context.database.connection() as conn:
        await tokens.create(conn, new)
    if granted_project == EVERYWHERE:
        await request.app[CELLS].share_tokens()
    credentials = RequestCredentials(block=block_of(request.remote or ""), session_token=token_id)
    who = await admission.gatekeeper.admit(credentials, project, request.remote or "", monotonic())
    cookie, _ = await admission.sessions.begin(credentials, who)
    set_session_cookie(request, response, cookie)


def _end_pending(request: web.Request, response: web.Response) -> None:
    response.del_cookie(
        _pending_cookie(request),
        path="/",
        httponly=True,
        secure=request.scheme == "https",
        samesite="Lax",
    )


def _pending_cookie(request: web.Request) -> str:
    """With TLS, other hosts of the domain cannot set the cookie."""
    return f"__Host-{PENDING_COOKIE}" if request.scheme == "https" else PENDING_COOKIE


def require_provider(request: web.Request) -> OidcClient:
    """Raises NotFound."""
    if (client := context_of(request).oidc) is None:
        raise NotFound(
            "this server has no OpenID provider",
            place="[auth.oidc] issuer",
            remedy="Sign in with a token or password; the operator can set a provider.",
            code="NotFound",
        )
    return client


def _redirect_uri(request: web.Request) -> str:
    return f"{public_url(request)}{CALLBACK}"


ROUTES = (
    Route("GET", "/v1/{project}/session/oidc", begin,
          "Sign in with OpenID Connect: redirects a browser to the provider", "access",
          query={"page": text("a page of the dashboard as the fragment of its URL, to return to")},
          status=302, content_type="", error_page=True, needs=Right.NOTHING),
)  # fmt: skip
#: Providers may add parameters to the return.
CALLBACK_ROUTES = (
    Route("GET", CALLBACK, end,
          "The return of a browser from the OpenID provider", "access",
          query={"code": text("the authorization code"),
                 "state": QueryParameter("of the redirect", required=True),
                 "iss": text("the issuer (RFC 9207)"),
                 "error": text("why the provider refused"),
                 "error_description": text("the same in words")},
          status=303, content_type="", error_page=True, needs=Right.NOTHING),
)  # fmt: skip
