"""The program put together: settings in, running roles out, an orderly stop.

The only place that knows everything. Each role is a set of loops over one database; any number of
processes may take any of them.
"""

import asyncio
import gc
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from uuid import uuid4

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError
from engine.lifecycle.plugins import Plugins
from engine.service import Engine
from engine.store.database import Database, open_database
from engine.store.embedded import EmbeddedServer
from engine.store.encryption import Sealer
from engine.store.installation import signing_key
from engine.store.schema_upgrade import migrate
from engine.store.token_keys import ensure_token_key
from engine.types.contract import ResourceType
from engine.types.placement import Placer
from hub.api.application import make_application
from hub.api.parts import Parts
from hub.auth.hasher import PasswordHasher
from hub.http.listener import listening
from hub.http.metrics_server import metrics_served
from hub.http.template_urls import TemplateFetcher
from hub.keys.token_keys import StoredTokenKeys
from hub.log import set_up_logging
from hub.program.authenticator import authenticating
from hub.program.command_account import check_run_as
from hub.program.database_startup import DatabaseStartup, Stopped
from hub.program.loops import Loops
from hub.program.tracing import tracing
from hub.program.wiring import make_admission, make_sealer, new_secret
from hub.settings.settings import Settings

log: FilteringBoundLogger = structlog.get_logger()

ROLES = frozenset({"api", "engine", "dispatch", "purge"})


def serve(settings: Settings, roles: frozenset[str] = ROLES) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. Call from the main thread."""
    set_up_logging(settings.log.style, level=settings.log.level, for_good=True)
    code = 0
    try:
        _run(_serve(settings, roles))
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
class Running:
    """A program that runs. url: where its API is, if it has that role."""

    url: str
    stop: asyncio.Event
    engine: Engine
    database: Database


async def _serve(settings: Settings, roles: frozenset[str]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with suppress(Stopped):
        async with running(settings, roles, stop) as program:
            log.info("headgate.ready", url=program.url, roles=sorted(roles), pid=os.getpid())
            await stop.wait()
            log.info("headgate.stopping")


@asynccontextmanager
async def running(
    settings: Settings,
    roles: frozenset[str],
    stop: asyncio.Event,
    *,
    types: Sequence[ResourceType] = (),
    plugins: Plugins | None = None,
    placer: Placer | None = None,
) -> AsyncIterator[Running]:
    """The program, ready; on leaving it drains what runs and stops. Waits for its database.

    Raises Unavailable, and Stopped where `stop` is set while it waits.

    types: resource types besides those that come with headgate and its plug-ins. plugins:
    lifecycle plug-ins; placer: asks where members of groups are placed; None: those that are
    installed.
    """
    async with AsyncExitStack() as stack:
        url = settings.database.url.get_secret_value()
        server: EmbeddedServer | None = None
        if not url:
            server = EmbeddedServer(
                settings.database.data_dir,
                binaries=settings.database.programs,
                account=settings.database.account,
            )
            url = await server.start()
            stack.push_async_callback(server.stop)
        sealer = make_sealer(settings)
        if "engine" in roles:
            check_run_as(settings)
        size = settings.database.pool

        async def opened() -> tuple[Database, StoredTokenKeys]:
            await migrate(url)
            return await _open(url, size, sealer)

        startup = DatabaseStartup(settings.server if "api" in roles else None, stop)
        database, token_keys = await startup.when_available(opened)
        stack.push_async_callback(database.close)
        hasher = PasswordHasher()
        asked = await stack.enter_async_context(authenticating(settings.auth, database, hasher))
        tracer = await stack.enter_async_context(tracing(settings.tracing))
        loops = Loops(settings, database, token_keys, sealer, asked, types, plugins, tracer, placer)
        if server is not None:
            loops.supervise(server)
        await loops.enter(stack)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = await loops.start(group, stack, roles, stop)
        collect_seldom()
        if address := settings.metrics.address:
            await stack.enter_async_context(metrics_served(loops.metrics, address))
        base = settings.server.base_url()
        if "api" in roles:
            base = await stack.enter_async_context(_api(settings, loops, hasher))
        try:
            yield Running(base, stop, loops.engine, database)
        finally:
            stop.set()
            loops.wake()
            await loops.drained(tasks)


async def _open(url: str, size: int, sealer: Sealer) -> tuple[Database, StoredTokenKeys]:
    """A database with the keys that its tokens derive from. Raises Unavailable."""
    database = await open_database(url, size=size, sealer=sealer)
    try:
        async with database.connection() as conn:
            first = await signing_key(conn, secrets.token_bytes(32), sealer)
            await ensure_token_key(conn, first, sealer)
        token_keys = StoredTokenKeys(database, sealer)
        await token_keys.refresh()
        return database, token_keys
    except BaseException:
        await database.close()
        raise


def collect_seldom() -> None:
    """What start-up made stays; and a template of ten thousand resources is no garbage.

    With the usual thresholds, half the time of reading a large template went to the collector.
    """
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


@asynccontextmanager
async def _api(settings: Settings, loops: Loops, hasher: PasswordHasher) -> AsyncIterator[str]:
    """The HTTP server; gives its URL."""
    fetcher = TemplateFetcher(settings.template_urls)
    parts = Parts(
        engine=loops.engine,
        database=loops.database,
        settings=settings,
        feed=loops.feed,
        dispatcher=loops.dispatcher,
        channels=loops.channels,
        horizon=loops.horizon,
        answerers=loops.answerers,
        token_keys=loops.token_keys,
        signal_urls=loops.signal_urls,
        servers=loops.servers,
        new_id=uuid4,
        new_secret=new_secret,
        random_bytes=secrets.token_bytes,
        ready=loops.ready,
        fetch_template=fetcher.fetch,
        metrics=loops.metrics,
        tracer=loops.tracer,
        hasher=hasher,
    )
    admission = make_admission(settings, loops.authenticator, loops.database)
    async with listening(settings.server, make_application(parts, admission)) as url:
        yield url
