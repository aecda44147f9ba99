"""Protection against server-side request forgery: decides which addresses may be reached.

A target is checked when it is stored and at every connection. One refused address of a name refuses
the name, so that DNS rebinding does not reach an internal network. aiohttp does not resolve literal
addresses, so they are checked before the request. The socket factory checks the actual address of
each connection.
"""

import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import structlog
from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from structlog.typing import FilteringBoundLogger
from yarl import URL

from engine.errors import Finding

log: FilteringBoundLogger = structlog.get_logger()

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

#: Resolves a host and port to addresses as texts. Raises OSError if there are none.
Lookup = Callable[[str, int], Awaitable[Sequence[str]]]

MAX_TARGET_LENGTH = 2048
REMEDY = "The operator can allow its network in [channels.webhook] allow."
_FORM = "Write https://host/path."
SCHEMES = ("https", "http")

#: Networks and the reason of the refusal; the first one that contains the address applies.
REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("0.0.0.0/8", "this host itself"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a provider's internal network (CGNAT)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local, used by the metadata services of clouds"),
        ("168.63.129.16/32", "used by a cloud platform internally (Azure's metadata and agents)"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "this host itself"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "an IPv4 address mapped to IPv6"),
        ("::/96", "an IPv4 address mapped to IPv6"),
        ("64:ff9b::/96", "an IPv4 address behind NAT64"),
        ("64:ff9b:1::/48", "an IPv4 address behind NAT64"),
        ("2001::/32", "a Teredo tunnel"),
        ("2001::/23", "reserved for protocols"),
        ("2001:db8::/32", "reserved for documentation"),
        ("3fff::/20", "reserved for documentation"),
        ("2002::/16", "a 6to4 tunnel"),
        ("5f00::/16", "reserved for segment routing"),
        ("100::/64", "discarded"),
        ("fc00::/7", "a private network"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
#: The only public range of IPv6; all others are refused as reserved.
PUBLIC_IPV6 = ip_network("2000::/3")

_BLANK = re.compile(r"[\x00-\x20\x7f]")
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.(?!-)[A-Za-z0-9_-]{1,63})*\.?")
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9a-fA-F]*)\.*$")


class RefusedTarget(OSError):
    """A target that may not be reached. An OSError, because resolvers raise these.

    Users of a project see its text, so it does not contain resolved addresses, which would reveal
    the operator's internal network. The log contains them.
    """


def check(address: Address, allow: Sequence[Network]) -> str | None:
    """Return why an address is refused; None: it may be reached.

    allow: allowed networks in addition to public ones. An IPv6 address that contains an
    IPv4 address is allowed if either of them is in an allowed network.
    """
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "bound to one interface (it has a zone)"
    embedded = _embedded_address(address)
    if any(
        seen in network for network in allow for seen in (address, embedded) if seen is not None
    ):
        return None
    for network, why in REFUSED:
        if address in network:
            return why
    if isinstance(address, IPv6Address) and address not in PUBLIC_IPV6:
        return "reserved"
    return None


def _embedded_address(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address contains (mapped, 6to4 or NAT64), if any."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in ip_network("64:ff9b::/96"):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def check_text(text: str, allow: Sequence[Network]) -> str | None:
    """As `check`, for a text; refuses a text that is not an address."""
    try:
        return check(ip_address(text), allow)
    except ValueError:
        return "not an address"


def parse_target(
    target: str, allow: Sequence[Network], *, remedy: str = REMEDY
) -> tuple[URL | None, list[Finding]]:
    """Parse a target with the parser of the HTTP client; return the URL or all findings.

    Checks a host that is an address; `GuardedResolver` checks names. remedy: the advice for a
    refused address.
    """
    if len(target) > MAX_TARGET_LENGTH:
        return None, [
            target_finding(f"is longer than {MAX_TARGET_LENGTH} characters", "Shorten it.")
        ]
    if _BLANK.search(target):
        return None, [
            target_finding("contains blanks or control characters", "Remove or encode them.")
        ]
    try:
        url = URL(target)
        host, port = url.raw_host or "", url.port
    except (ValueError, TypeError):
        return None, [target_finding("is not a valid URL", _FORM)]
    findings = []
    if url.scheme not in SCHEMES:
        findings.append(target_finding(f'the scheme "{url.scheme}" is not known', _FORM))
    if url.raw_user is not None or url.raw_password is not None:
        findings.append(
            target_finding(
                "contains a user or password", "Remove it: targets are visible to readers."
            )
        )
    if not host or port is None or not 0 < port < 65536:
        findings.append(target_finding("has no valid host and port", _FORM))
    elif why := check_host(host, allow):
        findings.append(target_finding(f"may not be reached: {host} is {why}", remedy))
    return (None if findings else url), findings


def target_finding(reason: str, remedy: str) -> Finding:
    return Finding("target", reason, remedy, "InvalidTarget")


def check_host(host: str, allow: Sequence[Network]) -> str | None:
    """Why the host of a URL is refused before resolution; None for names and allowed addresses.

    Refuses addresses that are one number, octal, hexadecimal, shortened or end in a dot, because
    programs interpret them differently.
    """
    if ":" in host:
        return check_text(host, allow)
    if not _ENDS_IN_NUMBER.search(host):
        return None if _NAME.fullmatch(host) else "not a valid host name"
    try:
        address = IPv4Address(host)
    except ValueError:
        return "an ambiguous notation of an address"
    return check(address, allow)


def is_address(host: str) -> bool:
    """Whether a checked host is an address, which needs no resolution."""
    return ":" in host or _ENDS_IN_NUMBER.search(host) is not None


class GuardedResolver(AbstractResolver):
    """Resolves names for aiohttp; refuses names with a refused address."""

    def __init__(self, lookup: Lookup, allow: Sequence[Network], *, remedy: str = REMEDY) -> None:
        self._lookup = lookup
        self._allow = tuple(allow)
        self._remedy = remedy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises RefusedTarget if any address is refused, OSError if there is none."""
        addresses = await self._lookup(host, port)
        if not addresses:
            raise OSError(f"{host} has no address")
        for text in addresses:
            if why := check_text(text, self._allow):
                log.info("egress.refused", host=host, address=text, reason=why)
                raise RefusedTarget(f"{host} has an address that is not allowed. {self._remedy}")
        return [
            ResolveResult(
                hostname=host,
                host=text,
                port=port,
                family=socket.AF_INET6 if ":" in text else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for text in addresses
        ]

    async def close(self) -> None:
        """Has nothing to close."""


def guarded_socket_factory(
    allow: Sequence[Network], *, remedy: str = REMEDY
) -> Callable[[tuple[Any, ...]], socket.socket]:
    """Creates the sockets of connections, after a last check of the address."""
    allowed = tuple(allow)

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, proto, _, where = info
        if why := check_text(str(where[0]), allowed):
            log.info("egress.refused", address=str(where[0]), reason=why)
            raise RefusedTarget(f"the address that it resolved to is not allowed. {remedy}")
        made = socket.socket(family, kind, proto)
        made.setblocking(False)
        return made

    return make


def guarded_connector(
    resolver: GuardedResolver,
    allow: Sequence[Network],
    *,
    remedy: str = REMEDY,
    tls: ssl.SSLContext | None = None,
) -> TCPConnector:
    """A connector that reaches only allowed addresses. tls: None: the system's authorities."""
    return TCPConnector(
        resolver=resolver,
        socket_factory=guarded_socket_factory(allow, remedy=remedy),
        use_dns_cache=False,
        ssl=tls or True,
        limit=0,
    )
