"""Ports of loopback for servers whose address is configured before they start."""

import random
import socket

#: Below the ports that the kernel chooses for connections and for servers at port 0 (32768 and
#: more on Linux): otherwise one of them may take a port before its server listens.
_PORTS = range(10_000, 21_000)


def free_port() -> int:
    """A random port on which no server listens. Its server must listen soon."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
