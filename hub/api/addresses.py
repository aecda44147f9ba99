"""Addresses as clients know them: the version's prefix, and where this server is to them."""

from aiohttp import web

#: The one version of the API is known by two names; routes are written down with the first.
PREFIX, PREFIXES = "v1", ("v1", "v1.0")


def origin_of(request: web.Request) -> str:
    """Where the client found this server: scheme, host and port."""
    return f"{request.scheme}://{request.host}"


def base_of(request: web.Request) -> str:
    """The API's root exactly as the client used it: it finds ids in our addresses by it."""
    first = request.rel_url.raw_path.split("/")[1]
    return f"{origin_of(request)}/{first if first in PREFIXES else PREFIX}"


def spellings(path: str) -> list[str]:
    """All paths by which a route is reached that is written down with one."""
    first, slash, rest = path.removeprefix("/").partition("/")
    return [f"/{one}{slash}{rest}" for one in PREFIXES] if first == PREFIX else [path]
