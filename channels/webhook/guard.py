"""Which addresses may be reached for others. Judging is pure; `JudgedResolver` asks for addresses.

A target is looked at when it is registered and again at every connection: each address its name
resolves to is judged, and one refused address refuses the name, so that nobody reaches an inner
network by a name that changes its mind. aiohttp passes literal addresses by its resolver, so they
are judged before the request; and the socket factory judges what is really connected to.
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

#: Gives the addresses of a host as texts. Raises OSError when there are none.
Lookup = Callable[[str, int], Awaitable[Sequence[str]]]

LONGEST_TARGET = 2048
REMEDY = "The operator can allow its network in [channels.webhook] allow."
_FORM = "Write https://host/path."
SCHEMES = ("https", "http")

#: The nearest (first) network that holds an address says why it is refused.
REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("0.0.0.0/8", "this host itself"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a provider's inner network (CGNAT)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local, where clouds keep their metadata service"),
        ("168.63.129.16/32", "a cloud's own, public as it looks (Azure's metadata and agents)"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "reserved for measurements"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "this host itself"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "an IPv4 address in IPv6's clothes"),
        ("::/96", "an IPv4 address in IPv6's clothes"),
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
#: Only these of IPv6 are given out as public; what is outside is refused as reserved.
PUBLIC_IPV6 = ip_network("2000::/3")

_BLANK = re.compile(r"[\x00-\x20\x7f]")
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.(?!-)[A-Za-z0-9_-]{1,63})*\.?")
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9a-fA-F]*)\.*$")


class Refused(OSError):
    """A target that may not be reached. An OSError, because resolvers raise these.

    Its text is shown to the users of a project, so it names no address that a name resolves to:
    that would be a map of the operator's inner network. The log has the address.
    """


def judge(address: Address, allow: Sequence[Network]) -> str | None:
    """Return why an address is refused, or None when it may be reached.

    allow: networks that may be reached besides public ones. An IPv4 address in IPv6's clothes is
    allowed when the network that holds either of the two is.
    """
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "bound to one interface (it has a zone)"
    inner = _inner(address)
    if any(seen in network for network in allow for seen in (address, inner) if seen is not None):
        return None
    for network, why in REFUSED:
        if address in network:
            return why
    if isinstance(address, IPv6Address) and address not in PUBLIC_IPV6:
        return "reserved"
    return None


def _inner(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to, if it is of such a kind."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in ip_network("64:ff9b::/96"):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def judge_text(text: str, allow: Sequence[Network]) -> str | None:
    """As `judge`, of an address as text; what is no address is refused."""
    try:
        return judge(ip_address(text), allow)
    except ValueError:
        return "no address"


def parse_target(
    target: str, allow: Sequence[Network], *, remedy: str = REMEDY
) -> tuple[URL | None, list[Finding]]:
    """Read a target with the parser that will be used to reach it; say all that is wrong.

    A host that is an address is judged here; a name is to be resolved, see `JudgedResolver`.
    remedy: what may be done about an address that is refused.
    """
    if len(target) > LONGEST_TARGET:
        return None, [finding(f"is longer than {LONGEST_TARGET} characters", "Shorten it.")]
    if _BLANK.search(target):
        return None, [
            finding("holds blanks or control characters", "Take them out, or encode them.")
        ]
    try:
        url = URL(target)
        host, port = url.raw_host or "", url.port
    except (ValueError, TypeError):
        return None, [finding("is not a valid URL", _FORM)]
    found = []
    if url.scheme not in SCHEMES:
        found.append(finding(f'the scheme "{url.scheme}" is not known', _FORM))
    if url.raw_user is not None or url.raw_password is not None:
        found.append(
            finding("holds a user or password", "Leave it out: addresses are shown to people.")
        )
    if not host or port is None or not 0 < port < 65536:
        found.append(finding("names no host and port to reach", _FORM))
    elif why := judge_host(host, allow):
        found.append(finding(f"may not be reached: {host} is {why}", remedy))
    return (None if found else url), found


def finding(reason: str, remedy: str) -> Finding:
    return Finding("target", reason, remedy, "InvalidTarget")


def judge_host(host: str, allow: Sequence[Network]) -> str | None:
    """Why a host of a URL is refused already as it is written; None for names and good addresses.

    Addresses spelt as one number, in octal, in hexadecimal, shortened or with a dot at the end are
    refused: programs disagree about where they lead.
    """
    if ":" in host:
        return judge_text(host, allow)
    if not _ENDS_IN_NUMBER.search(host):
        return None if _NAME.fullmatch(host) else "no name of a host"
    try:
        address = IPv4Address(host)
    except ValueError:
        return "an odd spelling of an address"
    return judge(address, allow)


def is_address(host: str) -> bool:
    """Whether a judged host is an address already, which nobody needs to resolve."""
    return ":" in host or _ENDS_IN_NUMBER.search(host) is not None


class JudgedResolver(AbstractResolver):
    """Resolves names for aiohttp, and gives out only addresses that were judged."""

    def __init__(self, lookup: Lookup, allow: Sequence[Network], *, remedy: str = REMEDY) -> None:
        self._lookup = lookup
        self._allow = tuple(allow)
        self._remedy = remedy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises Refused when any address is, OSError when there is none."""
        addresses = await self._lookup(host, port)
        if not addresses:
            raise OSError(f"{host} has no address")
        for text in addresses:
            if why := judge_text(text, self._allow):
                log.info("egress.refused", host=host, address=text, reason=why)
                raise Refused(f"{host} has an address that is not allowed. {self._remedy}")
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
        """Holds nothing."""


def judging_socket_factory(
    allow: Sequence[Network], *, remedy: str = REMEDY
) -> Callable[[tuple[Any, ...]], socket.socket]:
    """Makes the sockets of connections; the last to look at where one goes."""
    allowed = tuple(allow)

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, proto, _, where = info
        if why := judge_text(str(where[0]), allowed):
            log.info("egress.refused", address=str(where[0]), reason=why)
            raise Refused(f"the address that it resolved to is not allowed. {remedy}")
        made = socket.socket(family, kind, proto)
        made.setblocking(False)
        return made

    return make


def guarded_connector(
    resolver: JudgedResolver,
    allow: Sequence[Network],
    *,
    remedy: str = REMEDY,
    tls: ssl.SSLContext | None = None,
) -> TCPConnector:
    """Connections that go only where was judged. tls: None: the system's authorities."""
    return TCPConnector(
        resolver=resolver,
        socket_factory=judging_socket_factory(allow, remedy=remedy),
        use_dns_cache=False,
        ssl=tls or True,
        limit=0,
    )
