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
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError
from engine.lifecycle.plugins import Plugins
from engine.service import Engine
from engine.store.database import Database, open_database
from engine.store.embedded import EmbeddedServer
from engine.store.instance import signing_key
from engine.store.migrate import migrate
from engine.types.contract import ResourceType
from engine.types.placement import Placer
from hub.api.application import make_application
from hub.api.parts import Parts
from hub.authenticating import authenticating
from hub.listening import listening
from hub.log import set_up_logging
from hub.loops import Loops
from hub.measuring import metrics_served
from hub.settings import Settings
from hub.template_urls import TemplateFetcher
from hub.tracing import tracing
from hub.wiring import make_admission, make_sealer, new_secret

log: FilteringBoundLogger = structlog.get_logger()

ROLES = frozenset({"api", "engine", "dispatch", "purge"})
#: Names of configured subscriptions are made from what they say.
_CONFIGURED = UUID("6f1f4a0e-51b7-4a3c-9d0c-1f2f5a8f7a10")


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
    """The program, ready; on leaving it drains what runs and stops. Raises Unavailable.

    types: resource types besides those that come with headgate and its plug-ins. plugins:
    lifecycle plug-ins; placer: asks where members of groups are placed; None: those that are
    installed.
    """
    async with AsyncExitStack() as stack:
        url = settings.database.url.get_secret_value()
        server: EmbeddedServer | None = None
        if not url:
            server = EmbeddedServer(settings.database.data_dir, binaries=settings.database.programs)
            url = await server.start()
            stack.push_async_callback(server.stop)
        await migrate(url)
        sealer = make_sealer(settings)
        database = await open_database(url, size=settings.database.pool, sealer=sealer)
        stack.push_async_callback(database.close)
        async with database.connection() as conn:
            key = await signing_key(conn, secrets.token_bytes(32), sealer)
        asked = await stack.enter_async_context(authenticating(settings.auth, database))
        tracer = await stack.enter_async_context(tracing(settings.tracing))
        loops = Loops(settings, database, key, sealer, asked, types, plugins, tracer, placer)
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
            base = await stack.enter_async_context(_api(settings, loops))
        try:
            yield Running(base, stop, loops.engine, database)
        finally:
            stop.set()
            loops.wake()
            await loops.drained(tasks)


def collect_seldom() -> None:
    """What start-up made stays; and a template of ten thousand resources is no garbage.

    With the usual thresholds, half the time of reading a large template went to the collector.
    """
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


@asynccontextmanager
async def _api(settings: Settings, loops: Loops) -> AsyncIterator[str]:
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
        token_for=loops.token_for,
        doors=loops.doors,
        servers=loops.servers,
        new_id=uuid4,
        new_secret=new_secret,
        random_bytes=secrets.token_bytes,
        ready=loops.ready,
        fetch_template=fetcher.fetch,
        metrics=loops.metrics,
        tracer=loops.tracer,
    )
    admission = make_admission(settings, loops.authenticator, loops.sealer)
    async with listening(settings.server, make_application(parts, admission)) as url:
        yield url
