"""What every answer says besides itself: to caches, to browsers, and to pages of other origins."""

from collections.abc import Mapping, Sequence

from aiohttp import web

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
#: What a page of another origin may send, and see of the answer.
TAKEN = (
    "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Auth-Token,"
    " X-Headgate-Credential"
)
SHOWN = "Location, Retry-After, X-Openstack-Request-Id"
#: Seconds that a browser may remember what it was allowed.
PREFLIGHT_LASTS = "600"


def add_to(response: web.StreamResponse, request: web.BaseRequest, origins: Sequence[str]) -> None:
    """A handler's own headers stay."""
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
    if request.scheme == "https":
        response.headers.update(OVER_TLS)
    if origins:
        _share(response, request, origins)


def _share(response: web.StreamResponse, request: web.BaseRequest, origins: Sequence[str]) -> None:
    """Cookies are never taken from elsewhere: pages of other origins bring a token."""
    response.headers["Vary"] = "Origin"
    origin = request.headers.get("Origin", "")
    if origin not in origins:
        return
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] = SHOWN
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if request.method == "OPTIONS" and "Allow" in response.headers:
        response.headers["Access-Control-Allow-Methods"] = response.headers["Allow"]
        response.headers["Access-Control-Allow-Headers"] = TAKEN
        response.headers["Access-Control-Max-Age"] = PREFLIGHT_LASTS
