"""headgate login --web: a login with the OpenID provider of a server, in a browser.

The browser signs in at the server and opens a page of the dashboard, where the user types the code
that the terminal shows. The login code that the page then gets comes back through a redirect to
loopback (RFC 8252), or the user pastes it. It is of no use without the verifier, which this process
never shows.
"""

import asyncio
import hmac
import os
import secrets
import sys
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import typer

from headgate.connection import ClientCredentials, url_path
from headgate.errors import RequestError
from hub.auth.login_secrets import LoginSecrets, new_login_secrets
from hub.cli.connection.client import ApiClient
from hub.cli.connection.connections import ResolvedConnection
from hub.cli.context import ask_with
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop
from hub.cli.signals import code_of_abort

Json = Any
Result = TypeVar("Result")
SIGN_IN = url_path("session", "oidc")
CALLBACK = "/callback"
#: Seconds for the whole sign-in in the browser, as on the server.
LOGIN_TIME = 600.0
#: Seconds and bytes of a request of the browser.
_REQUEST_TIME, _MAX_REQUEST = 10.0, 16_384
_HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n"
    "Connection: close\r\n"
)
_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Headgate</title>'
    "<h1>{title}</h1><p>{text}</p></html>\n"
)


def log_in(connection: ResolvedConnection, *, browser: bool) -> Json:
    """The token, with its user and its end. browser: open one on this machine, if it has one. An
    error is printed and ends the command."""
    anonymous = replace(connection, credentials=ClientCredentials())

    def ask(work: Callable[[ApiClient], Awaitable[Result]]) -> Result:
        return ask_with(anonymous, work, interrupted="interrupted; nothing was saved")

    ask(lambda client: client.redirect_of(SIGN_IN))  # is there a provider that responds?
    login = new_login_secrets(secrets.token_bytes, secrets.choice)
    if browser and can_open_browser(os.environ, sys.platform):
        code = ask(lambda client: _receive_code(client, login))
    else:
        address = login_address(anonymous, login, None)
        _show(f"Open this address in a browser, on any machine:\n{address}", login)
        code = read_code()
    body = {"code": code, "code_verifier": login.verifier, "user_code": login.user_code}
    return ask(lambda client: client.call("POST", f"{SIGN_IN}/tokens", body=body))


def can_open_browser(environment: Mapping[str, str], platform: str) -> bool:
    """Whether the machine of the user probably has a browser. Pure."""
    if environment.get("BROWSER"):
        return True
    if environment.get("SSH_CONNECTION"):
        return False
    shown = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    return bool(shown) or platform in ("darwin", "win32")


def login_address(
    connection: ApiClient | ResolvedConnection, login: LoginSecrets, port: int | None
) -> str:
    """The address that the browser opens. What it contains does not suffice for a login. port: of
    this process; None: the user pastes the code."""
    query = {"challenge": login.challenge}
    if port is not None:
        query |= {"port": str(port), "state": login.state}
    project = url_path(connection.project)
    page = urlencode({"page": f"#{project}/cli-login?{urlencode(query)}"})
    return f"{connection.url.rstrip('/')}/v1{project}{SIGN_IN}?{page}"


async def _receive_code(client: ApiClient, login: LoginSecrets) -> str:
    """Raises RequestError."""
    received: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with _listen(login.state, received) as port:
        address = login_address(client, login, port)
        _show(f"Sign in in the browser. If none opens, open this address on this machine:\n"
              f"{address}", login)  # fmt: skip
        # Some browsers end only when the user closes them.
        Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            async with asyncio.timeout(LOGIN_TIME):
                return await received
        except TimeoutError:
            minutes = int(LOGIN_TIME // 60)
            reason = f"no login in the browser within {minutes} minutes; nothing was saved"
            raise RequestError(0, f"{reason}. Try again, or use --no-browser.") from None


def _show(instruction: str, login: LoginSecrets) -> None:
    """On standard error, because the result is on standard output."""
    typer.echo(f"{instruction}\n", err=True)
    typer.echo(f"Type this code into the page: {login.user_code}\n", err=True)


def read_code() -> str:
    """Prompt on a terminal, else read the first line of standard input."""
    if sys.stdin.isatty():
        try:
            text = str(typer.prompt("Code from the browser", err=True))
        except typer.Abort as abort:
            stop("nothing was saved", code_of_abort(abort))
    else:
        text = sys.stdin.readline()
    if not text.strip():
        stop("no code was entered; nothing was saved", ExitCode.USAGE)
    return text.strip()


@asynccontextmanager
async def _listen(state: str, received: "asyncio.Future[str]") -> AsyncIterator[int]:
    """The port on loopback that receives the response."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIME):
                head = await reader.readuntil(b"\r\n\r\n")
                status, title, text = _accept(head.decode("latin-1"), port, state, received)
                page = _PAGE.format(title=title, text=text).encode()
                writer.write(f"HTTP/1.1 {status}\r\n{_HEADERS}"
                             f"Content-Length: {len(page)}\r\n\r\n".encode() + page)  # fmt: skip
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the browser disconnected, or another program connected
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_MAX_REQUEST)
    port: int = server.sockets[0].getsockname()[1]
    try:
        yield port
    finally:
        server.close()


def _accept(
    head: str, port: int, state: str, received: "asyncio.Future[str]"
) -> tuple[str, str, str]:
    """Status, title and text of the response. A request that is not the response of this login
    changes nothing."""
    query = callback_query(head, port)
    if query is None:
        return "404 Not Found", "Not found", "This address belongs to a login of Headgate."
    if not hmac.compare_digest(query.get("state", "").encode(), state.encode()):
        return "400 Bad Request", "Not signed in", "This response belongs to another login."
    if not received.done():
        if code := query.get("code"):
            received.set_result(code)
        else:
            reason = "the login was cancelled in the browser; nothing was saved"
            received.set_exception(RequestError(0, reason))
    return "200 OK", "Return to the terminal", "You can close this page."


def callback_query(head: str, port: int) -> Mapping[str, str] | None:
    """The query of a request to the redirect address; None: it is another request. Pure."""
    first, *lines = head.split("\r\n")
    method, _, rest = first.partition(" ")
    target = rest.partition(" ")[0]
    names = (line.partition(":") for line in lines)
    hosts = [value.strip() for name, _, value in names if name.strip().lower() == "host"]
    try:
        parts = urlsplit(target)
    except ValueError:
        return None
    if method != "GET" or hosts != [f"127.0.0.1:{port}"] or parts.path != CALLBACK or parts.netloc:
        return None
    found = parse_qs(parts.query, max_num_fields=10) if parts.query.count("&") < 10 else {}
    return {name: values[0] for name, values in found.items() if len(values) == 1}
