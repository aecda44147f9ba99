"""Requests of a session that change something must come from a page of this server."""

from datetime import UTC, datetime

import pytest

from engine.errors import Forbidden
from hub.auth.cross_site import check_origin
from hub.auth.request_credentials import RequestCredentials
from hub.auth.sessions import BrowserSession


@pytest.mark.parametrize(
    ("method", "csrf", "site", "allowed"),
    [
        ("GET", "", "cross-site", True),
        ("HEAD", "", "", True),
        ("POST", "of the page", "same-origin", True),
        ("POST", "of the page", "", True),
        ("POST", "of the page", "none", True),
        ("POST", "", "same-origin", False),
        ("POST", "of the pagé", "same-origin", False),
        ("DELETE", "of the page", "cross-site", False),
        ("PATCH", "of the page", "same-site", False),
        ("MADE-UP", "", "", False),
    ],
)
def test_session_requests_that_change_something_need_a_page_of_this_server(
    method: str, csrf: str, site: str, allowed: bool
) -> None:
    session = BrowserSession(
        b"id", RequestCredentials(token="t"), "of the page", datetime(2026, 1, 1, tzinfo=UTC)
    )
    if allowed:
        check_origin(session, method, csrf, site)
    else:
        with pytest.raises(Forbidden, match="X-CSRF-Token"):
            check_origin(session, method, csrf, site)
