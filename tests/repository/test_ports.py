"""Tests and their servers get ports that no other process of tests gets at the same time."""

import ast
import socket
import subprocess
import sys
from pathlib import Path

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
        assert first not in {free_port() for _ in range(300)}


def test_no_module_takes_a_port_when_it_is_imported() -> None:
    """Its server would start much later, when the process has given the port to another one."""
    early = [
        f"{path}:{statement.lineno}"
        for path in Path(__file__).parents[1].rglob("*.py")
        if "free_port()" in (text := path.read_text())
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr)
        for one in ast.walk(statement)
        if isinstance(one, ast.Call) and ast.unparse(one.func).endswith("free_port")
    ]
    assert early == []
