"""Tests and their servers get ports that no other process of tests gets at the same time."""

import socket
import subprocess
import sys

from tests.support.ports import free_port

#: Not all that a process has: a port on which another server listens is left out.
PORTS = "from tests.support.ports import free_port; print(*(free_port() for _ in range(50)))"
FORKED = f"""
import os, sys
{PORTS}
sys.stdout.flush()
if os.fork():
    os.wait()
else:
    {PORTS}
"""


def lines_of(program: str) -> list[set[int]]:
    """The ports that a new process prints, by line."""
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return [{int(port) for port in line.split()} for line in printed.splitlines()]


def test_ports_of_two_processes_differ() -> None:
    own = {free_port() for _ in range(50)}
    assert len(own) == 50
    (others,) = lines_of(PORTS)
    assert own.isdisjoint(others)


def test_a_forked_process_has_ports_of_its_own() -> None:
    parent, child = lines_of(FORKED)
    assert len(parent) == len(child) == 50 and parent.isdisjoint(child)


def test_a_port_on_which_a_server_listens_is_left_out() -> None:
    first = free_port()
    with socket.socket() as server:
        server.bind(("127.0.0.1", first))
        server.listen()
        assert first not in {free_port() for _ in range(150)}
