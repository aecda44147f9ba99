"""Where nobody is asked who they are: no page of another site speaks for whoever sits at a browser.

A browser reaches what listens on its own machine, also for a page of somebody else. So it is looked
from which page it sends, and under which name it found the server: a name of somebody else's that
leads here (DNS rebinding) would make their page one of ours. Pure.
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
        "this was sent by a page of another site",
        remedy="The operator lets a site in with [server] cors_origins, or has everybody asked who"
        " they are with [auth] mode.",
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
