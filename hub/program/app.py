"""Assembles and runs a process: database, loops of its roles, HTTP servers, and an orderly stop.

Each role is a set of loops over one database; any number of processes can have any roles.
hub/program/server_processes.py starts several of them.
"""

import asyncio
import gc
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError
from engine.hooks.operator import overlaps
from engine.lifecycle.plugins import Plugins
from engine.service import Engine
from engine.store.database import Database
from engine.store.embedded.server import EmbeddedServer
from engine.store.schema.upgrade import migrate
from engine.store.server_check import check_pooler_url, check_replicas, check_servers
from engine.types.contract import ResourceType
from engine.types.placement import Placer
from hub.api.app_context import ServerContext
from hub.api.application import make_application
from hub.api.cells import OneDatabase
from hub.auth.passwords import AT_ONCE, PasswordHasher
from hub.http.listener import (
    ignore_hangup,
    monitoring_application,
    serve_api,
    serve_monitoring,
)
from hub.http.template_urls import TemplateFetcher
from hub.keys.token_keys import StoredTokenKeys
from hub.log import set_up_logging
from hub.metrics_exchange import serve_own_metrics
from hub.program.authenticator import make_oidc_client, open_authenticator
from hub.program.cell_services import make_cell
from hub.program.cells.running import running_cells
from hub.program.command_account import check_run_as
from hub.program.database_opening import open_registered, open_replicas
from hub.program.database_startup import DatabaseStartup, StartupStopped
from hub.program.loops import Loops, make_process
from hub.program.process_slot import ProcessSlot
from hub.program.slack import make_slack_answers
from hub.program.tracing import tracing
from hub.program.wiring import make_keyring, make_request_limits, make_sessions
from hub.settings.settings import Settings

log: FilteringBoundLogger = structlog.get_logger()

ROLES = frozenset({"api", "engine", "dispatch", "purge"})


def run_process(
    settings: Settings,
    roles: frozenset[str],
    slot: ProcessSlot,
    control: socket.socket | None = None,
) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. Call from the main thread.

    control: of a child process; see hub/program/process_supervisor.py.
    """
    set_up_logging(
        settings.log.style,
        level=settings.log.level,
        for_good=True,
        process=slot.number if slot.count > 1 else None,
    )
    return run_reporting_errors(_serve(settings, roles, slot, control))


def run_reporting_errors(main: Coroutine[None, None, None]) -> int:
    """Run a coroutine, and print its HeadgateErrors to standard error; return the exit code."""
    code = 0
    try:
        _run(main)
    except* HeadgateError as group:
        code = 1
        for error in _leaves(group):
            print(f"headgate: {error}", file=sys.stderr)
    return code


def _run(main: Coroutine[None, None, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main)


def _leaves(group: BaseExceptionGroup[HeadgateError]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


@dataclass(slots=True)
class RunningProcess:
    """A running process. url: of its API, if it has that role."""

    url: str
    stop: asyncio.Event
    engine: Engine
    database: Database


async def _serve(
    settings: Settings,
    roles: frozenset[str],
    slot: ProcessSlot,
    control: socket.socket | None,
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGHUP, ignore_hangup)
    if control is None:
        loop.add_signal_handler(signal.SIGINT, stop.set)
    else:
        stop_when_closed(control, stop)
    with suppress(StartupStopped):
        async with _serving(settings, roles, stop, slot) as url:
            event = "headgate.ready" if control is None else "process.ready"
            log.info(event, url=url, roles=sorted(roles), pid=os.getpid())
            if control is not None:
                send_ready(control, url)
            await stop.wait()
            log.info("headgate.stopping")


@asynccontextmanager
async def _serving(
    settings: Settings, roles: frozenset[str], stop: asyncio.Event, slot: ProcessSlot
) -> AsyncIterator[str]:
    """A running process with one database, or with cells: the URL of its API."""
    if settings.cells.databases:
        async with running_cells(settings, stop, slot=slot) as url:
            reduce_gc_frequency()
            yield url
    else:
        async with running(settings, roles, stop, slot=slot) as program:
            yield program.url


def stop_when_closed(control: socket.socket, stop: asyncio.Event) -> None:
    """Set `stop` when the supervisor closes its end of a control socket, or is killed."""
    loop = asyncio.get_running_loop()

    def request_stop() -> None:
        loop.remove_reader(control)
        stop.set()

    loop.add_reader(control, request_stop)


def send_ready(control: socket.socket, message: str) -> None:
    """Report to the supervisor that this process is ready."""
    with suppress(OSError):  # the supervisor has ended
        control.send(message.encode())


@asynccontextmanager
async def running(
    settings: Settings,
    roles: frozenset[str],
    stop: asyncio.Event,
    *,
    types: Sequence[ResourceType] = (),
    plugins: Plugins | None = None,
    placer: Placer | None = None,
    slot: ProcessSlot = ProcessSlot(),  # noqa: B008  frozen
) -> AsyncIterator[RunningProcess]:
    """A context manager: a ready process, drained and stopped at the end. Waits for its database.

    Raises Unavailable, and Stopped if `stop` is set while it waits.

    types: resource types in addition to built-in ones and those of plug-ins. plugins: lifecycle
    plug-ins. placer: places members of groups. None: the installed ones. slot: of this process
    among those with the same sockets.
    """
    async with AsyncExitStack() as stack:
        url = settings.database.url.get_secret_value()
        pooler_url = settings.database.pooler_url.get_secret_value()
        read_url = settings.database.read_url.get_secret_value()
        server: EmbeddedServer | None = None
        if not url:
            server = EmbeddedServer(
                settings.database.data_dir,
                binaries=settings.database.programs,
                account=settings.database.account,
            )
            url = await server.start()
            stack.push_async_callback(server.stop)
        for one in overlaps(settings.hooks.operator_rules()):
            log.warning("hooks.rules_overlap", reason=one.reason, remedy=one.remedy)
        keyring = make_keyring(settings)
        if "engine" in roles:
            check_run_as(settings)
        size = settings.database.pool

        process = make_process(roles, keyring, settings.engine.worker_labels)

        async def migrate_and_open() -> tuple[Database, StoredTokenKeys]:
            await check_servers(url, time.time)
            await check_pooler_url(url, pooler_url)
            await check_replicas(url, read_url)
            await migrate(url, version=process.program.version)
            return await open_registered(url, size, keyring, process, pooler_url=pooler_url)

        startup = DatabaseStartup(
            settings.server if "api" in roles and not slot.replaces else None,
            "" if slot.replaces else settings.metrics.address,
            stop,
            slot,
        )
        database, token_keys = await startup.when_available(migrate_and_open)
        stack.push_async_callback(database.close)
        replica = await open_replicas(stack, read_url if "api" in roles else "", size, keyring)
        hasher = PasswordHasher(at_once=slot.share(AT_ONCE))
        authenticator = await stack.enter_async_context(
            open_authenticator(settings.auth, database, hasher, keyring)
        )
        tracer = await stack.enter_async_context(tracing(settings.tracing))
        loops = Loops(
            settings, database, token_keys, keyring, authenticator, types, plugins, tracer, placer,
            slot, replica,
        )  # fmt: skip
        if server is not None:
            loops.supervise(server)
        await loops.enter(stack)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = await loops.start(group, stack, process, stop)
        reduce_gc_frequency()
        if slot.directory is not None:
            exchange = serve_own_metrics(loops.metrics, slot.directory, slot.number)
            await stack.enter_async_context(exchange)
        if address := settings.metrics.address:
            monitoring = monitoring_application(loops.metrics, loops.ready)
            await stack.enter_async_context(serve_monitoring(monitoring, address, slot.metrics))
        base = settings.server.base_url()
        if "api" in roles:
            base = await stack.enter_async_context(_api(settings, loops, hasher, slot))
        try:
            yield RunningProcess(base, stop, loops.engine, database)
        finally:
            stop.set()
            loops.wake()
            await loops.drain(tasks)


def reduce_gc_frequency() -> None:
    """Run the garbage collector less often, and exclude the objects that exist after the start.

    With the default thresholds, it takes half of the time of parsing a large template.
    """
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


@asynccontextmanager
async def _api(
    settings: Settings, loops: Loops, hasher: PasswordHasher, slot: ProcessSlot
) -> AsyncIterator[str]:
    """Serve the API of one database; return its URL."""
    oidc, limits = make_oidc_client(settings.auth), make_request_limits(settings, slot)
    fetcher = TemplateFetcher(settings.template_urls)
    sessions = make_sessions(settings, loops.database)
    cells = OneDatabase(make_cell("", settings, loops, hasher, limits, sessions, fetcher, oidc))
    slack = make_slack_answers(settings, cells, loops.delivery.http, loops.supervisor)
    server = ServerContext(
        settings, loops.metrics, loops.tracer, loops.ready, secrets.token_bytes, slack
    )
    application = make_application(server, cells, limits)
    async with (
        oidc or nullcontext(),
        slack or nullcontext(),
        serve_api(settings.server, application, slot.api) as url,
    ):
        yield url
