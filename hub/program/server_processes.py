"""Runs a server: in this process, or in several that share its sockets, one for each core."""

import asyncio
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog
from pydantic import SecretStr
from structlog.typing import FilteringBoundLogger

from engine.errors import Finding, HeadgateError, Invalid
from engine.store.embedded.server import EmbeddedServer
from hub.auth.request_counts import RequestCounts
from hub.listen_address import LISTEN, METRICS, bind
from hub.log import set_up_logging
from hub.program.app import (
    ROLES,
    run_process,
    run_reporting_errors,
    send_ready,
    stop_when_closed,
)
from hub.program.cells.cell_connection import ROLES as CELL_ROLES
from hub.program.process_slot import ProcessSlot, count_processes
from hub.program.process_supervisor import (
    ChildProcess,
    ProcessSupervisor,
    RunChild,
    share_loaded_modules,
)
from hub.settings.cells import CellDatabase
from hub.settings.database_urls import without_password
from hub.settings.settings import DatabaseSettings, Settings, with_sections
from hub.settings.types import Section

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


def serve(
    settings: Settings,
    roles: frozenset[str] = ROLES,
    load: Callable[[], Settings] | None = None,
) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. Call from the main thread.

    load: reads the settings again, on SIGHUP; raises HeadgateError. None: they stay.
    """
    if settings.cells.databases and roles != CELL_ROLES:
        print(f"headgate: {_ROLES_OF_CELLS}", file=sys.stderr)
        return 1
    count = count_processes(settings, has_all_roles=roles == ROLES)
    if count == 1:
        return run_process(settings, roles, ProcessSlot())
    set_up_logging(settings.log.style, level=settings.log.level, for_good=True, process=0)
    try:
        with ExitStack() as stack:
            return _serve(settings, roles, count, stack, load or (lambda: settings))
    except HeadgateError as error:
        print(f"headgate: {error}", file=sys.stderr)
        return 1


def _serve(
    settings: Settings,
    roles: frozenset[str],
    count: int,
    stack: ExitStack,
    load: Callable[[], Settings],
) -> int:
    """Raises HeadgateError if an address cannot be used."""
    first = settings
    slot, settings = _open_sockets(settings, roles, count, stack)
    share_loaded_modules()
    supervisor = ProcessSupervisor(settings.engine.drain.total_seconds())
    with supervisor.handle_signals():
        if not (settings.cells.databases or settings.database.url.get_secret_value()):
            database = ChildProcess(0, partial(_run_database, settings, count))
            if not supervisor.start([database]):
                return supervisor.code
            settings = _with_database(settings, database.message or "")

        def processes(current: Settings) -> dict[int, RunChild]:
            return {
                number: partial(
                    _run_child,
                    current,
                    roles if number == 1 else roles - SINGLE,
                    replace(slot, number=number),
                )
                for number in range(1, count + 1)
            }

        def reload() -> dict[int, RunChild]:
            nonlocal settings
            settings = keep_fixed(load(), first, settings)
            supervisor.drain = settings.engine.drain.total_seconds()
            return processes(settings)

        children = [ChildProcess(number, run) for number, run in processes(settings).items()]
        # The first one alone, because it upgrades the database and creates keys.
        if not (supervisor.start(children[:1]) and supervisor.start(children[1:])):
            return supervisor.code
        log.info("headgate.ready", url=children[0].message, roles=sorted(roles), processes=count)
        supervisor.supervise(reload)
        log.info("headgate.stopping")
        for shared in (*slot.api, *slot.metrics):
            shared.close()
    return 0


def _run_child(
    settings: Settings,
    roles: frozenset[str],
    slot: ProcessSlot,
    control: socket.socket,
    replaces: bool,
) -> int:
    return run_process(settings, roles, replace(slot, replaces=replaces), control)


def _open_sockets(
    settings: Settings, roles: frozenset[str], count: int, stack: ExitStack
) -> tuple[ProcessSlot, Settings]:
    """The sockets that all processes share, and the settings with their port."""
    # Its name, which is in the sockets' paths, must be short.
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-")))
    # One process more, while it replaces another one.
    counts = RequestCounts(processes=count + 1) if "api" in roles else None
    slot = ProcessSlot(count=count, directory=directory, counts=counts)
    if "api" in roles:
        slot = replace(slot, api=bind(settings.server.listen, LISTEN))
        host = settings.server.listen.rpartition(":")[0]
        listen = f"{host}:{slot.api[0].getsockname()[1]}"
        server = settings.server.model_copy(update={"listen": listen})
        settings = settings.model_copy(update={"server": server})
    if address := settings.metrics.address:
        slot = replace(slot, metrics=bind(address, METRICS))
    for shared in (*slot.api, *slot.metrics):
        stack.callback(shared.close)
    return slot, settings


def keep_fixed(changed: Settings, first: Settings, current: Settings) -> Settings:
    """Changed settings, with those of the start that stay until the server ends: its addresses, the
    number of its processes, and its database. Warns about those that differ. Raises Invalid if the
    others are not allowed with them, such as `[auth] mode = "none"` at the address that stays.

    first: as they were read at the start. current: with the address and database in use.
    """
    embedded = not (first.cells.databases or first.database.url.get_secret_value())
    if embedded:
        keeps_database = changed.database != first.database
    else:
        keeps_database = _database_in_use(changed) != _database_in_use(first)
    needs_restart = [
        name
        for name, now, then in (
            ("[server] listen", changed.server.listen, first.server.listen),
            ("[server] processes", changed.server.processes, first.server.processes),
            ("[metrics] address", changed.metrics.address, first.metrics.address),
            ("[database]", keeps_database, False),
            ("[cells]", _keeps_cells(changed, first), False),
        )
        if now != then
    ]
    if needs_restart:
        log.warning(
            "settings.need_restart", settings=needs_restart, remedy="Restart the server to use them"
        )
    kept = ("listen", "processes")
    parts: dict[str, Section] = {
        "server": changed.server.model_copy(
            update={name: getattr(current.server, name) for name in kept}
        ),
        "metrics": changed.metrics.model_copy(update={"address": current.metrics.address}),
    }
    if "[cells]" in needs_restart:
        parts["cells"] = current.cells
    if embedded or keeps_database or "[cells]" in needs_restart:
        parts["database"] = current.database
    try:
        return with_sections(changed, parts)
    except Invalid as error:
        kept_names = ", ".join(needs_restart)
        raise Invalid(
            [
                replace(
                    one, remedy=f"{one.remedy}; or restart the server, which keeps {kept_names}"
                )
                for one in error.findings
            ]
        ) from None


def _keeps_cells(changed: Settings, first: Settings) -> bool:
    """Whether the cells stay: a server begins or ends to serve cells only with a restart, and a
    cell does not get another database. Cells can be added and removed."""
    if bool(changed.cells.databases) != bool(first.cells.databases):
        return True
    former = {one.name: _urls_in_use(one) for one in first.cells.databases}
    now = {one.name: _urls_in_use(one) for one in changed.cells.databases}
    return any(former[name] != now[name] for name in former.keys() & now.keys())


def _database_in_use(settings: Settings) -> tuple[object, ...]:
    """What all processes must have in common while they are replaced: the database, and the folder
    of the keys."""
    return (*_urls_in_use(settings.database), settings.database.data_dir)


def _urls_in_use(database: DatabaseSettings | CellDatabase) -> tuple[str, ...]:
    """The URLs of a database. Another password of the same user is no other database."""
    return tuple(map(without_password, (database.url, database.pooler_url)))


def _with_database(settings: Settings, url: str) -> Settings:
    database = settings.database.model_copy(update={"url": SecretStr(url)})
    return settings.model_copy(update={"database": database})


def _run_database(settings: Settings, count: int, control: socket.socket, _replaces: bool) -> int:
    """Run the embedded database until the control socket is closed; return the exit code."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the other processes need it until they end
    set_up_logging(settings.log.style, level=settings.log.level, for_good=True, process=0)
    # One process more, while another one replaces it.
    connections = (count + 1) * (settings.database.pool + MORE_CONNECTIONS) + RESERVED
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
