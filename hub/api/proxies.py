"""Requests that came through a proxy, as they were sent to it."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aiohttp import web

Network = IPv4Network | IPv6Network


def as_sent(request: web.Request, trusted: Sequence[Network]) -> web.Request:
    """The request with the sender's address, scheme and host, where a trusted proxy names them.

    ``X-Forwarded-For`` is read from its end: what stands in front of the first address that is no
    trusted proxy was written by who knows whom.
    """
    if not trusted or not is_in(request.remote or "", trusted):
        return request
    headers = request.headers
    said = [one.strip() for one in ",".join(headers.getall("X-Forwarded-For", [])).split(",")]
    sender = next((one for one in reversed(said) if one and not is_in(one, trusted)), None)
    scheme = headers.get("X-Forwarded-Proto", "").lower()
    return request.clone(
        remote=sender if sender and _address(sender) else request.remote or "",
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
