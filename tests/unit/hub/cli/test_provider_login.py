"""The login of the command line in a browser: its addresses, and the response to it."""

from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

import pytest

from headgate.connection import ClientCredentials
from hub.auth.login_secrets import LoginSecrets
from hub.cli.commands.provider_login import callback_query, can_open_browser, login_address
from hub.cli.connection.connections import ResolvedConnection

PORT = 43210
LOGIN = LoginSecrets("the verifier", "the state", "BCDF-GHJK")


def head(target: str, *, method: str = "GET", host: str = f"127.0.0.1:{PORT}") -> str:
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n"


def test_the_redirect_address_has_the_parameters_of_the_response() -> None:
    assert callback_query(head("/callback?code=c%2D1&state=s"), PORT) == {
        "code": "c-1",
        "state": "s",
    }
    assert callback_query(head("/callback?code=1&code=2&state=s"), PORT) == {"state": "s"}
    assert callback_query(head("/callback?" + "&".join(["a=1"] * 20)), PORT) == {}


@pytest.mark.parametrize(
    "text",
    [
        head("/callback?code=c", method="POST"),
        head("/callback/?code=c"),
        head("/?code=c"),
        head("//evil/callback?code=c"),
        head("http://evil/callback?code=c"),
        head("/callback?code=c", host="evil:43210"),
        head("/callback?code=c", host="localhost:43210"),
        head("/callback?code=c", host="127.0.0.1:43211"),
        head("/callback?code=c").replace("Accept:", "Host:"),
        head("http://[/callback?code=c"),
        "GET /callback?code=c HTTP/1.0\r\n\r\n",
        "\r\n\r\n",
        "",
    ],
)
def test_other_requests_are_no_response(text: str) -> None:
    assert callback_query(text, PORT) is None


def test_an_address_has_neither_the_verifier_nor_the_user_code() -> None:
    connection = ResolvedConnection("https://hg.example/", "web/1", ClientCredentials(token="t"))
    address = login_address(connection, LOGIN, PORT)
    parts = urlsplit(address)
    assert (parts.netloc, parts.path) == ("hg.example", "/v1/web%2F1/session/oidc")
    page, _, query = parse_qs(parts.query)["page"][0].partition("?")
    assert page == "#/web%2F1/cli-login"
    assert parse_qs(query) == {
        "challenge": [LOGIN.challenge],
        "port": [str(PORT)],
        "state": [LOGIN.state],
    }
    assert "verifier" not in address and LOGIN.user_code not in address
    assert "port" not in login_address(connection, LOGIN, None)


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "a b"}, "linux", False),
        ({"SSH_CONNECTION": "a b"}, "darwin", False),
        ({}, "darwin", True),
        ({"BROWSER": "firefox"}, "linux", True),
    ],
)
def test_a_browser_opens_on_machines_that_have_one(
    environment: Mapping[str, str], platform: str, expected: bool
) -> None:
    assert can_open_browser(environment, platform) is expected
