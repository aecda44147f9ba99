"""Addresses at which a server listens, and the sockets for them.

This module loads no library, so that `headgate serve` can check an address at once.
"""

import re
import socket
from collections.abc import Callable

from engine.errors import Unavailable

#: The setting with the address of the API.
LISTEN = "[server] listen"
#: The setting with the address of the metrics.
METRICS = "[metrics] address"
#: Maximum number of connections that are not accepted yet.
BACKLOG = 128
MAX_PORT = 65_535
_PORT = re.compile(r"[0-9]{1,5}")


def host_and_port(listen: str) -> tuple[str, str]:
    """Split ``HOST:PORT`` or ``[HOST]:PORT``."""
    host, _, port = listen.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port


def is_address(text: str) -> bool:
    """Whether a text is ``HOST:PORT``."""
    host, port = host_and_port(text)
    return bool(host and _PORT.fullmatch(port) and int(port) <= MAX_PORT)


def bind(address: str, place: str) -> list[socket.socket]:
    """Sockets that listen at HOST:PORT. place: the setting, for errors. Raises Unavailable."""
    sockets = _open(
        address,
        place,
        lambda name, family: socket.create_server(name, family=family, backlog=BACKLOG),
    )
    for one in sockets:
        one.setblocking(False)
    return sockets


def check_address(address: str, place: str) -> None:
    """Raise Unavailable if `bind` would. No client can connect meanwhile."""
    for one in _open(address, place, _bind_only):
        one.close()


def _bind_only(name: tuple[str, int], family: int) -> socket.socket:
    """A socket as that of `socket.create_server`, which does not listen."""
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(name)
    except OSError:
        opened.close()
        raise
    return opened


def _open(
    address: str, place: str, open_socket: Callable[[tuple[str, int], int], socket.socket]
) -> list[socket.socket]:
    host, port = host_and_port(address)
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, name in socket.getaddrinfo(
            host or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            sockets.append(open_socket((str(name[0]), int(name[1])), family))
    except OSError as error:
        for opened in sockets:
            opened.close()
        raise Unavailable(
            f"cannot listen on {address}: {error.strerror}",
            place=place,
            remedy="Stop the program that uses it, or choose another port with --listen."
            if place == LISTEN
            else "Configure a different port for each server of a machine.",
        ) from error
    return sockets
