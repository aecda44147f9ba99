"""IP addresses as services and users write them. Pure."""

from ipaddress import ip_address


def canonical(address: str) -> str:
    """The address as services write it; an invalid one stays as it is."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address
