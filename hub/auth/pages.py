"""Without authentication: refuse requests that a page of another site sends through a browser.

A browser reaches servers on its own machine for pages of every site. So each request's origin is
checked, and the host name that it used: a foreign name that resolves to this server (DNS rebinding)
would give a foreign page the server's own origin. Pure.
"""

from collections.abc import Collection, Mapping
from ipaddress import ip_address

from yarl import URL

from engine.errors import Forbidden
from hub.auth.sessions import SAFE

#: Sec-Fetch-Site of what no page of another origin has sent.
_OWN = ("same-origin", "none")


def check_page(method: str, headers: Mapping[str, str], origins: Collection[str]) -> None:
    """origins: ours, and those that the operator lets in. Raises Forbidden."""
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
    """host: of the request, with its port if it has one. An address cannot be made to lead
    elsewhere. Raises Forbidden."""
    name = (URL(f"http://{host}").host or "").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost") or _is_address(name):
        return
    if public_url and name == URL(public_url).host:
        return
    raise Forbidden(
        f'this server does not go by the name "{name}"',
        remedy="Ask it at localhost; the operator gives it a name with [server] public_url.",
        code="UnknownHost",
    )


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
