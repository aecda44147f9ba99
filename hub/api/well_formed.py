"""What no handler is called with: addresses, hosts and headers that are no text, or no names."""

import re

from aiohttp import web

from hub.api.parts import invalid

#: A name or an address, and a port: what our own addresses may begin with.
_HOST = re.compile(r"(?:[\w.-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)


def check(request: web.Request) -> None:
    """Raises Invalid."""
    # NUL is no character of any name, and the store cannot even ask for it.
    if "%00" in request.rel_url.raw_path or "%00" in request.rel_url.raw_query_string:
        raise invalid("", "the URL contains a NUL character", "Leave it out.")
    for name, value in request.raw_headers:
        if not _is_text(value):
            place = name.decode("ascii", "replace")
            raise invalid(place, "a header is not valid text", "Send it as UTF-8.")
    # Without one, which HTTP/1.0 allows, there would be a look-up of our own name.
    if "Host" in request.headers and not _HOST.fullmatch(request.host):
        raise invalid("Host", "this is not a valid host", "Send a name or an address, and a port.")


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
