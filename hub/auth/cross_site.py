"""Refuses requests that a page of another site sends through a browser. Pure.

A session needs its CSRF token, because browsers send cookies with every request. Without
authentication, pages of any site can reach servers on the machine of the browser. So the origin of
a request is checked, and the host name that it uses: a foreign name that resolves to this server
(DNS rebinding) would give a foreign page the origin of this server.
"""

import hmac
from collections.abc import Collection, Mapping
from ipaddress import ip_address

from yarl import URL

from engine.errors import Forbidden
from hub.auth.sessions import BrowserSession

CSRF_HEADER = "X-CSRF-Token"
#: Methods that change nothing.
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: `Sec-Fetch-Site` of requests that no page of another origin sends.
_OWN = ("same-origin", "none")


def check_page(method: str, headers: Mapping[str, str], origins: Collection[str]) -> None:
    """Check a request without authentication. origins: of this server and `cors_origins`. Raises
    Forbidden."""
    site, origin = headers.get("Sec-Fetch-Site", ""), headers.get("Origin", "")
    if method in SAFE or site in _OWN or origin in origins or not (site or origin):
        return
    raise Forbidden(
        "a page of another site sent this request",
        remedy="The operator can allow this origin in [server] cors_origins, or require sign-in"
        " with [auth] mode.",
        code="CrossSiteRequest",
    )


def check_host(host: str, public_url: str) -> None:
    """Check the host name of a request without authentication; addresses are always accepted. host:
    with its port, if any. Raises Forbidden."""
    name = (URL(f"http://{host}").host or "").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost") or _is_address(name):
        return
    if public_url and name == URL(public_url).host:
        return
    raise Forbidden(
        f'"{name}" is not a host name of this server',
        remedy="Use localhost; the operator sets the host name in [server] public_url.",
        code="UnknownHost",
    )


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def check_origin(session: BrowserSession, method: str, csrf: str, fetch_site: str) -> None:
    """Check a request of a session. csrf: the header. fetch_site: ``Sec-Fetch-Site``. Raises
    Forbidden."""
    if method in SAFE:
        return
    check_site(fetch_site)
    if not hmac.compare_digest(csrf.encode(), session.csrf.encode()):
        raise _cross_site_error()


def check_site(fetch_site: str) -> None:
    """Check the header `Sec-Fetch-Site`. Raises Forbidden."""
    if fetch_site not in ("", "same-origin", "none"):
        raise _cross_site_error()


def _cross_site_error() -> Forbidden:
    return Forbidden(
        "a page of another site sent this request",
        remedy=f"Send {CSRF_HEADER} with the `csrf` of GET .../session, or a token instead of"
        " the cookie.",
        code="CrossSiteRequest",
    )
