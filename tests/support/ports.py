"""Ports of loopback for servers whose address is configured before they start."""

import atexit
import functools
import itertools
import os
import random
import socket
from collections.abc import Iterator

#: Below the ports that the kernel chooses for connections and for servers at port 0 (32768 and
#: more on Linux): otherwise one of them may take a port before its server listens.
_PORTS = range(10_000, 21_000)
#: Ports that one process uses in turn.
_OWN = 250


def free_port() -> int:
    """A port on which no server listens, and which no other process of tests gets meanwhile. This
    process gets it again after 249 others: its server must listen by then. So tests call it when
    they run, not when their module is imported."""
    for port in itertools.islice(_own_ports(os.getpid()), _OWN):
        if is_free(port):
            return port
    raise RuntimeError("servers listen on all ports of this process of tests; stop some of them")


@functools.cache
def _own_ports(pid: int) -> Iterator[int]:
    """pid: of this process; one that is forked has ports of its own."""
    return itertools.cycle(_reserve())


def _reserve() -> range:
    """Ports that no other process reserves until this one ends.

    The reservation is a socket with a name, which exists once for each network, as a port does.
    """
    starts = list(_PORTS[::_OWN])
    random.SystemRandom().shuffle(starts)
    for start in starts:
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0headgate-test-ports-{start}")
        except OSError:
            reservation.close()
            continue
        atexit.register(reservation.close)
        return range(start, start + _OWN)
    raise RuntimeError(
        f"other processes of tests have reserved all ports from {_PORTS[0]} to {_PORTS[-1]}; end "
        "those that earlier runs have left"
    )


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
