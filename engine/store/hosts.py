"""The hosts that a database URL names. Pure, except that the environment has a default port."""

import os
from itertools import cycle, islice
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

#: Values of `target_session_attrs` with which the server accepts writes.
WRITABLE = ("read-write", "primary")
DEFAULT_PORT = "5432"
LAST_PORT = 65_535


class Host(NamedTuple):
    """name: of the host, or the directory of a Unix socket."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


def hosts_of(url: str) -> list[Host]:
    """The hosts of a URL, in its order; empty: it names none. Raises ValueError."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    named = parts.netloc.rpartition("@")[2] or query.get("host", [""])[-1]
    if not named:
        return []
    texts = named.split(",")
    ports = (query.get("port", [""])[-1] or os.environ.get("PGPORT") or DEFAULT_PORT).split(",")
    if len(ports) not in (1, len(texts)):
        raise ValueError(f"{len(texts)} hosts have {len(ports)} ports")
    defaults = islice(cycle(ports), len(texts))
    return [_host(text, port) for text, port in zip(texts, defaults, strict=True)]


def _host(text: str, default_port: str) -> Host:
    if text.startswith("/"):
        return Host(unquote(text), _port(default_port))
    if text.startswith("["):
        name, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        name, _, port = text.partition(":")
    if not name:
        raise ValueError("a host has no name")
    return Host(unquote(name), _port(port or default_port))


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= LAST_PORT:
        raise ValueError(f"{port} is not a port")
    return port


def target_of(url: str) -> str:
    """`target_session_attrs` of a URL; empty: it has none."""
    return parse_qs(urlsplit(url).query).get("target_session_attrs", [""])[-1]
