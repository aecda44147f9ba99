"""The block of addresses that one sender may be assumed to have. Pure."""

from ipaddress import IPv6Address, ip_address, ip_network

#: Bits of an IPv6 network that a single customer gets at least.
IPV6_PREFIX = 64


def block_of(address: str) -> str:
    """An IPv4 address by itself; the /64 of an IPv6 address; other text as it is."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ip_network((int(parsed), IPV6_PREFIX), strict=False))
    return str(parsed)
