"""Runs a server: in this process, or in several that share its sockets, one for each core."""

import asyncio
import signal
import socket
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog
from pydantic import SecretStr
from structlog.typing import FilteringBoundLogger

from engine.errors import Finding, HeadgateError
from engine.store.embedded.server import EmbeddedServer
from hub.http.listener import bind
from hub.log import set_up_logging
from hub.program.app import (
    ROLES,
    log_start,
    run_process,
    run_reporting_errors,
    send_ready,
    stop_when_closed,
)
from hub.program.cells.cell_connection import ROLES as CELL_ROLES
from hub.program.process_slot import ProcessSlot, count_processes
from hub.program.process_supervisor import ChildProcess, ProcessSupervisor, share_loaded_modules
from hub.settings.settings import Settings

log: FilteringBoundLogger = structlog.get_logger()

#: Roles of the first process only.
SINGLE = frozenset({"purge"})
#: Connections of a process to the embedded database in addition to its pool, and those of
#: administrators.
MORE_CONNECTIONS, RESERVED = 6, 12
_ROLES_OF_CELLS = Finding(
    "--role",
    "a process with [cells] has the role api only",
    "Start it with --role api; engines and dispatchers of a cell name its database in [database]"
    " url, and have no [cells]",
)


def serve(settings: Settings, roles: frozenset[str] = ROLES) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. Call from the main thread."""
    if settings.cells.databases and roles != CELL_ROLES:
        print(f"headgate: {_ROLES_OF_CELLS}", file=sys.stderr)
        return 1
    count = count_processes(settings, has_all_roles=roles == ROLES)
    if count == 1:
        return run_process(settings, roles, ProcessSlot())
    set_up_logging(settings.log.style, level=settings.log.level, for_good=True, process=0)
    try:
        with ExitStack() as stack:
            return _serve(settings, roles, count, stack)
    except HeadgateError as error:
        print(f"headgate: {error}", file=sys.stderr)
        return 1


def _serve(settings: Settings, roles: frozenset[str], count: int, stack: ExitStack) -> int:
    """Raises HeadgateError if an address cannot be used."""
    slot, settings = _open_sockets(settings, roles, count, stack)
    log_start(settings, roles, count=count)
    share_loaded_modules()
    supervisor = ProcessSupervisor(settings.engine.drain.total_seconds())
    with supervisor.handle_signals():
        if not (settings.cells.databases or settings.database.url.get_secret_value()):
            database = ChildProcess(0, partial(_run_database, settings, count))
            if not supervisor.start([database]):
                return supervisor.code
            settings = _with_database(settings, database.message or "")
        children = []
        for number in range(1, count + 1):
            of_this = roles if number == 1 else roles - SINGLE
            run = partial(run_process, settings, of_this, replace(slot, number=number))
            children.append(ChildProcess(number, run))
        # The first one alone, because it upgrades the database and creates keys.
        if not (supervisor.start(children[:1]) and supervisor.start(children[1:])):
            return supervisor.code
        log.info("headgate.ready", url=children[0].message, roles=sorted(roles), processes=count)
        supervisor.supervise()
        log.info("headgate.stopping")
        for shared in (*slot.api, *slot.metrics):
            shared.close()
    return 0


def _open_sockets(
    settings: Settings, roles: frozenset[str], count: int, stack: ExitStack
) -> tuple[ProcessSlot, Settings]:
    """The sockets that all processes share, and the settings with their port."""
    # Its name, which is in the sockets' paths, must be short.
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-")))
    slot = ProcessSlot(count=count, directory=directory)
    if "api" in roles:
        slot = replace(slot, api=bind(settings.server.listen, "[server] listen"))
        host = settings.server.listen.rpartition(":")[0]
        listen = f"{host}:{slot.api[0].getsockname()[1]}"
        server = settings.server.model_copy(update={"listen": listen})
        settings = settings.model_copy(update={"server": server})
    if address := settings.metrics.address:
        slot = replace(slot, metrics=bind(address, "[metrics] address"))
    for shared in (*slot.api, *slot.metrics):
        stack.callback(shared.close)
    return slot, settings


def _with_database(settings: Settings, url: str) -> Settings:
    database = settings.database.model_copy(update={"url": SecretStr(url)})
    return settings.model_copy(update={"database": database})


def _run_database(settings: Settings, count: int, control: socket.socket) -> int:
    """Run the embedded database until the control socket is closed; return the exit code."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the other processes need it until they end
    set_up_logging(settings.log.style, level=settings.log.level, for_good=True, process=0)
    connections = count * (settings.database.pool + MORE_CONNECTIONS) + RESERVED
    return run_reporting_errors(_database(settings, connections, control))


async def _database(settings: Settings, connections: int, control: socket.socket) -> None:
    stop = asyncio.Event()
    stop_when_closed(control, stop)
    server = EmbeddedServer(
        settings.database.data_dir,
        binaries=settings.database.programs,
        account=settings.database.account,
        options={"max_connections": str(max(connections, 60))},
    )
    send_ready(control, await server.start())
    supervising = asyncio.create_task(server.supervise())
    try:
        await stop.wait()
    finally:
        supervising.cancel()
        await server.stop()
