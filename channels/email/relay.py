"""The relay that sends e-mails, and the addresses that they go to."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

#: The longest address: RFC 5321, 4.5.3.1.3.
MAX_ADDRESS = 254
#: Characters that separate addresses, or quote parts of them.
RESERVED = frozenset('<>(),;:\\"[]')


class Encryption(StrEnum):
    """STARTTLS: the connection is encrypted after its start, and refused without encryption."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class EmailSettings:
    """recipients: globs on the addresses that subscriptions of projects may name. timeout: seconds,
    for each step of a session. tls: None: the system's certificate authorities.
    """

    host: str
    port: int
    sender: str
    encryption: Encryption = Encryption.STARTTLS
    username: str = ""
    password: str = field(default="", repr=False)
    recipients: Sequence[str] = ()
    timeout: float = 15.0
    tls: ssl.SSLContext | None = field(default=None, repr=False)


def is_email_address(text: str) -> bool:
    """Whether this is one address in the form NAME@HOST, in printable ASCII."""
    name, at, host = text.rpartition("@")
    return (
        bool(name and at and "." in host.strip("."))
        and len(text) <= MAX_ADDRESS
        and text.isascii()
        and text.isprintable()
        and not any(one.isspace() or one in RESERVED or one == "@" for one in name + host)
    )
