"""Headers that every response has, and headers of trusted proxies in requests."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aiohttp import web

Network = IPv4Network | IPv6Network

SECURITY: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "headgate",
}
OVER_TLS: Mapping[str, str] = {"Strict-Transport-Security": "max-age=31536000"}
#: Request and response headers that pages of other origins may use.
CORS_ALLOWED = (
    "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Auth-Token,"
    " X-Headgate-Credential"
)
CORS_EXPOSED = "Location, Retry-After, X-Openstack-Request-Id"
#: Seconds.
CORS_MAX_AGE = "600"


def add_headers(
    response: web.StreamResponse, request: web.BaseRequest, origins: Sequence[str]
) -> None:
    """Add the common headers; headers of the handler have precedence.

    origins: that may use the API from a browser.
    """
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
    if request.scheme == "https":
        response.headers.update(OVER_TLS)
    if origins:
        _add_cors(response, request, origins)


def _add_cors(
    response: web.StreamResponse, request: web.BaseRequest, origins: Sequence[str]
) -> None:
    """Without Allow-Credentials: pages of other origins send a token, never a cookie."""
    response.headers["Vary"] = "Origin"
    origin = request.headers.get("Origin", "")
    if origin not in origins:
        return
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] = CORS_EXPOSED
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if request.method == "OPTIONS" and "Allow" in response.headers:
        response.headers["Access-Control-Allow-Methods"] = response.headers["Allow"]
        response.headers["Access-Control-Allow-Headers"] = CORS_ALLOWED
        response.headers["Access-Control-Max-Age"] = CORS_MAX_AGE


def behind_proxy(request: web.Request, trusted: Sequence[Network]) -> web.Request:
    """The request with the client's address, scheme and host from the headers of a trusted proxy.

    The client is the last address of ``X-Forwarded-For`` that is not a trusted proxy, because
    clients can send the addresses before it themselves.
    """
    if not trusted or not is_in(request.remote or "", trusted):
        return request
    headers = request.headers
    forwarded = ",".join(headers.getall("X-Forwarded-For", [])).split(",")
    addresses = [address.strip() for address in reversed(forwarded)]
    client = next((one for one in addresses if one and not is_in(one, trusted)), None)
    scheme = headers.get("X-Forwarded-Proto", "").lower()
    return request.clone(
        remote=client if client and _address(client) else request.remote or "",
        scheme=scheme if scheme in ("http", "https") else request.scheme,
        host=headers.get("X-Forwarded-Host", "").partition(",")[0].strip() or request.host,
    )


def is_in(text: str, networks: Sequence[Network]) -> bool:
    address = _address(text)
    return address is not None and any(address in network for network in networks)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
