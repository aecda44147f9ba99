"""Logins of the command line through a signed-in browser: confirm one, and get its token."""

import time
from typing import Annotated

from aiohttp import web
from pydantic import Field

from engine.errors import Forbidden, HeadgateError
from engine.store.access import tokens as store
from hub.api.admission import SESSION, count_wrong_tokens
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.cells import CELLS
from hub.api.headgate import responses
from hub.api.headgate.oidc import SECRET_BYTES, require_provider
from hub.api.headgate.tokens import document
from hub.api.request_validation import Body, invalid, read_model
from hub.api.routes import Route, json_response
from hub.auth import secrets
from hub.auth.cli_login import (
    CHALLENGE,
    CODE_TIME,
    MAX_LOGINS,
    CliLogin,
    LoginCode,
    login_of,
    read_login_code,
    write_login_code,
)
from hub.auth.cross_site import check_site
from hub.auth.login_secrets import is_user_code
from hub.auth.roles import Right
from hub.auth.token_authenticator import unauthorized_error

#: Characters of any value, so that each body fits into UNAUTHENTICATED_BODY.
_MAX_LENGTH = 200
_Text = Annotated[str, Field(max_length=_MAX_LENGTH)]
CREATED_BY = "headgate login"


class ConfirmLogin(Body):
    """user_code: as the terminal shows it. code_challenge: of PKCE, with S256."""

    user_code: _Text
    code_challenge: _Text


class RedeemLogin(Body):
    """code: of a confirmed login. code_verifier: of PKCE. user_code: as the terminal shows it."""

    code: _Text
    code_verifier: _Text
    user_code: _Text


async def confirm(request: web.Request) -> web.Response:
    """Only a session can confirm: its CSRF token proves that a page of this server sent this."""
    body, context = await read_model(request, ConfirmLogin), context_of(request)
    require_provider(request)
    if not CHALLENGE.fullmatch(body.code_challenge):
        raise invalid("code_challenge", "is not valid", "Run `headgate login --web` again.")
    if not is_user_code(body.user_code):
        remedy = "Type the 8 letters that the terminal shows."
        raise invalid("user_code", "is not the code of a login", remedy)
    sign_in = await _sign_in_of(request)
    async with context.database.connection() as conn:
        await store.check_copies(conn, sign_in.id, MAX_LOGINS)
    code = LoginCode(sign_in.id, context.new_id(), int(time.time()) + CODE_TIME)
    login = CliLogin(project_of(request), body.code_challenge, body.user_code)
    text = write_login_code(context.token_keys.keys.newest, code, login)
    return json_response(responses.LoginCode(code=text), 201)


async def _sign_in_of(request: web.Request) -> store.TokenRecord:
    """The sign-in with OpenID Connect of the session. Raises Forbidden."""
    session = request.get(SESSION)
    token_id = session.credentials.session_token if session else None
    async with context_of(request).database.connection() as conn:
        found = await store.use(conn, token_id) if token_id else None
    if found is None or found.subject is None:
        raise Forbidden(
            f"{identity_of(request).name} is not signed in with OpenID Connect",
            remedy="Run `headgate login --web` again, and sign in in the browser that it opens.",
            code="Forbidden",
        )
    return found


async def redeem(request: web.Request) -> web.Response:
    """The token of a confirmed login, once."""
    check_site(request.headers.get("Sec-Fetch-Site", ""))  # so that no page causes a lockout
    body, context = await read_model(request, RedeemLogin), context_of(request)
    require_provider(request)
    login = login_of(project_of(request), body.code_verifier, body.user_code)

    def read() -> LoginCode | None:
        return read_login_code((one.key for one in context.token_keys.keys), body.code, login)

    code = await context.token_keys.check_refreshed(read)
    if code is None:
        raise _refusal(
            "the code belongs to another login, or another code was typed in the browser"
        )
    if code.expires < time.time():
        raise _refusal(f"the code has expired after {CODE_TIME // 60} minutes")
    token = secrets.write_token(code.token_id, context.random_bytes(SECRET_BYTES))
    async with context.database.connection() as conn:
        row = await store.copy_sign_in(
            conn, code.sign_in, code.token_id, secrets.hash_token(token), CREATED_BY,
            limit=MAX_LOGINS,
        )  # fmt: skip
    if row is None:
        raise _refusal("the code was already used, or the sign-in in the browser has ended")
    if row.project == store.EVERYWHERE:
        await request.app[CELLS].share_tokens()
    created: responses.NewToken = {**document(row), "token": token}
    return json_response(created, 201)


def _refusal(reason: str) -> HeadgateError:
    return unauthorized_error(reason, "Run `headgate login --web` again.")


ROUTES = (
    Route("POST", "/v1/{project}/session/oidc/codes", confirm,
          "Confirm a login of the command line", "access", body=ConfirmLogin, takes_body=True,
          status=201, response=responses.LoginCode, needs=Right.READ),
    Route("POST", "/v1/{project}/session/oidc/tokens", count_wrong_tokens(redeem),
          "Exchange the code of a confirmed login for a token", "access", body=RedeemLogin,
          takes_body=True, status=201, response=responses.NewToken, needs=Right.NOTHING),
)  # fmt: skip
