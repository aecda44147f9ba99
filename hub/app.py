"""The program put together: settings in, running roles out, an orderly stop.

The only place that knows everything. Each role is a set of loops over one database; any number of
processes may take any of them.
"""

import asyncio
import base64
import gc
import os
import random
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4, uuid5

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from channels.contract import ReceiverDecision
from channels.dispatcher import Dispatcher, DispatcherSettings
from channels.retry import RetryPolicy, horizon
from channels.selection import Selection
from channels.store import subscriptions
from channels.store.records import NewSubscription, Origin
from channels.stream.feed import Feed
from channels.webhook.client import WebhookChannel, WebhookSettings
from engine.errors import HeadgateError, Unavailable
from engine.hooks.rule import Limits as HookLimits
from engine.hooks.tokens import hook_token
from engine.hot.source import Limits as SourceLimits
from engine.lifecycle.gate import StackGate
from engine.lifecycle.plugins import Plugins, installed
from engine.service import Engine, Limits
from engine.store.database import Database, open_database
from engine.store.embedded import EmbeddedServer
from engine.store.instance import alive, signing_key
from engine.store.migrate import migrate
from engine.store.sealing import KEY_BYTES, Sealer, read_key
from engine.types.command import Command, CommandSettings
from engine.types.contract import ResourceType
from engine.types.registry import Registry, built_in
from engine.words import Door
from engine.work.retrying import Retrying
from engine.work.telling import Telling
from engine.work.timers import Timers
from engine.work.worker import Worker, WorkerSettings
from hub.api.application import make_application
from hub.api.parts import Parts
from hub.api.signals import read_signal
from hub.auth.identity import Nobody
from hub.log import set_up_logging
from hub.settings import Settings

log: FilteringBoundLogger = structlog.get_logger()

ROLES = frozenset({"api", "engine", "dispatch"})
#: Names of configured subscriptions are made from what they say.
_CONFIGURED = UUID("6f1f4a0e-51b7-4a3c-9d0c-1f2f5a8f7a10")


def serve(settings: Settings, roles: frozenset[str] = ROLES) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. Call from the main thread."""
    set_up_logging("console" if sys.stderr.isatty() else "json")
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
) -> AsyncIterator[Running]:
    """The program, ready; on leaving it drains what runs and stops. Raises Unavailable.

    types: resource types besides those that come with headgate and its plug-ins. plugins:
    lifecycle plug-ins; None: those that are installed.
    """
    async with AsyncExitStack() as stack:
        url = settings.database.url.get_secret_value()
        server: EmbeddedServer | None = None
        if not url:
            server = EmbeddedServer(settings.database.data_dir, binaries=settings.database.programs)
            url = await server.start()
            stack.push_async_callback(server.stop)
        await migrate(url)
        database = await open_database(url, size=settings.database.pool)
        stack.push_async_callback(database.close)
        async with database.connection() as conn:
            key = await signing_key(conn, secrets.token_bytes(32))
        loops = Loops(settings, database, key, types, plugins)
        if server is not None:
            loops.supervise(server)
        await stack.enter_async_context(loops.channel)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = await loops.start(group, stack, roles, stop)
        _collect_seldom()
        base = settings.server.base_url()
        if "api" in roles:
            base = await stack.enter_async_context(_api(settings, loops))
        try:
            yield Running(base, stop, loops.engine, database)
        finally:
            stop.set()
            loops.wake()
            await loops.drained(tasks)


def _collect_seldom() -> None:
    """What start-up made stays; and a template of ten thousand resources is no garbage.

    With the usual thresholds, half the time of reading a large template went to the collector.
    """
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


class Loops:
    """Everything that runs in this process, made once and started by role."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        key: bytes,
        types: Sequence[ResourceType] = (),
        plugins: Plugins | None = None,
    ) -> None:
        self._settings = settings
        self.database = database
        self.failed: str | None = None
        self._server: EmbeddedServer | None = None
        self.plugins = installed() if plugins is None else plugins
        registry = make_registry(settings, *types, gate=StackGate(self.plugins))
        key_file = settings.credentials.path(settings.database.data_dir)
        self.sealer = Sealer(
            read_key(key_file, secrets.token_bytes(KEY_BYTES)), random_bytes=secrets.token_bytes
        )
        self.telling = Telling(database, self.plugins, poll=settings.engine.poll)
        self.worker = Worker(
            database,
            registry,
            _worker_settings(settings),
            name=f"{socket.gethostname()}:{os.getpid()}",
            new_id=uuid4,
            end=lambda ended: self.engine.end_traversal(ended),
            sealer=self.sealer,
        )
        self.timers = Timers(
            database,
            poll=settings.engine.poll,
            default_timeout=settings.hooks.default_timeout,
            new_id=uuid4,
        )
        self.engine = Engine(
            database,
            registry,
            make_limits(settings),
            new_id=uuid4,
            wake=self._stirred,
            watched=bool(self.plugins),
            sealer=self.sealer,
        )
        self.token_for: Callable[[UUID], str] = lambda hook_id: hook_token(key, hook_id)
        webhook = settings.channels.webhook
        self.channel = WebhookChannel(
            WebhookSettings(
                allow=tuple(webhook.allow),
                connect_timeout=webhook.connect_timeout.total_seconds(),
                timeout=webhook.timeout.total_seconds(),
                max_answer=webhook.max_answer,
            )
        )
        self.retry = RetryPolicy(
            attempts=webhook.attempts,
            first=webhook.first_retry.total_seconds(),
            longest=webhook.max_retry.total_seconds(),
            attempt_timeout=webhook.timeout.total_seconds(),
        )
        self.feed = Feed(database)
        self.dispatcher = Dispatcher(
            database,
            {"webhook": self.channel},
            settings=DispatcherSettings(retry=self.retry, each=webhook.concurrency),
            token_for=self.token_for,
            public_url=settings.server.base_url(),
            answer=self._answered,
            random=random.SystemRandom().random,
        )

    def supervise(self, server: EmbeddedServer) -> None:
        self._server = server

    async def start(
        self,
        group: asyncio.TaskGroup,
        stack: AsyncExitStack,
        roles: frozenset[str],
        stop: asyncio.Event,
    ) -> list[asyncio.Task[None]]:
        """Start the loops of these roles; each ends soon after `stop` is set."""
        tasks: list[asyncio.Task[None]] = []
        if "engine" in roles:
            for channel, wake in (
                ("headgate_work", self.worker.wake),
                ("headgate_hook", self.timers.wake),
            ):
                await stack.enter_async_context(self.database.listen(channel, wake))
            tasks.append(group.create_task(self.worker.run(stop), name="worker"))
            tasks.append(group.create_task(self.timers.run(stop), name="timers"))
            tasks.append(group.create_task(self.telling.run(stop), name="telling"))
        if "dispatch" in roles:
            await self._configure_subscriptions()
            tasks.append(group.create_task(self.dispatcher.run(stop), name="dispatcher"))
        if "api" in roles:
            tasks.append(group.create_task(self.feed.run(stop), name="feed"))
        if self._server is not None:
            watching = group.create_task(self._server.supervise(), name="postgres")
            stack.callback(watching.cancel)
        return tasks

    def wake(self) -> None:
        self.worker.wake()
        self.timers.wake()
        self.telling.wake()

    def _stirred(self) -> None:
        """Something was accepted, answered or has ended here."""
        self.worker.wake()
        if self.plugins:
            self.telling.wake()

    async def drained(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait for the loops to end, a bounded time; then cut them off."""
        if tasks:
            seconds = self._settings.engine.drain.total_seconds() + 5
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()

    async def ready(self) -> list[str]:
        """What keeps this process from working, in words."""
        try:
            async with self.database.connection() as conn:
                await alive(conn)
        except Unavailable as error:
            return [str(error)]
        return []

    async def _answered(self, hook_id: UUID, said: ReceiverDecision, by: str) -> str | None:
        """A receiver's answer in its response; returns why it was refused, or None."""
        body = {"decision": said.decision, "reason": said.reason, **said.more}
        try:
            answer = read_signal(body).by(by, Door.WEBHOOK, by_token=True)
            await self.engine.answer(hook_id, answer, project=None)
        except Unavailable:
            raise
        except HeadgateError as error:
            return str(error)
        return None

    async def _configure_subscriptions(self) -> None:
        wanted = [
            NewSubscription(
                id=uuid5(_CONFIGURED, repr((one.project, one.channel, one.target, one.events))),
                project=one.project,
                channel=one.channel,
                target=one.target,
                selection=Selection(
                    list(one.events), list(one.stacks), list(one.resources), list(one.types),
                    list(one.points),
                ),
                ordered=one.ordered,
                secret=one.secret.get_secret_value() or new_secret(),
                origin=Origin.CONFIGURATION,
            )
            for one in self._settings.subscriptions
        ]  # fmt: skip
        async with self.database.connection() as conn:
            await subscriptions.configure(conn, wanted)


def new_secret() -> str:
    """A secret in the form of Standard Webhooks."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()


def make_registry(
    settings: Settings, *types: ResourceType, gate: ResourceType | None = None
) -> Registry:
    command = settings.resource_types.command
    return built_in(
        random.SystemRandom(),
        Command(
            CommandSettings(
                enabled=command.enabled,
                allow=tuple(str(path) for path in command.allow),
                max_output=command.max_output,
                max_timeout=command.max_timeout,
            )
        ),
        *types,
        gate=gate,
    )


def make_limits(settings: Settings) -> Limits:
    quotas = settings.quotas
    return Limits(
        source=SourceLimits(max_bytes=quotas.template_bytes, max_depth=quotas.document_depth),
        hooks=HookLimits(settings.hooks.default_timeout, settings.hooks.max_timeout),
        resources=quotas.resources_per_stack,
        stacks=quotas.stacks_per_project,
        versions=settings.retention.versions,
        snapshots=quotas.snapshots_per_stack,
        signals=quotas.signals_per_resource,
        signal_bytes=quotas.signal_bytes,
        operator=[
            one.as_rule(f"[[hooks.rules]] {place}")
            for place, one in enumerate(settings.hooks.rules, start=1)
        ],
    )


def _worker_settings(settings: Settings) -> WorkerSettings:
    engine = settings.engine
    return WorkerSettings(
        batch=engine.batch,
        lanes=engine.lanes,
        lease=engine.lease,
        poll=engine.poll,
        operations=engine.operations,
        drain=engine.drain,
        default_timeout=settings.hooks.default_timeout,
        retrying=Retrying(
            limit=engine.action_retry_limit,
            first=engine.first_retry,
            longest=engine.max_retry,
            random=random.SystemRandom().random,
        ),
    )


@asynccontextmanager
async def _api(settings: Settings, loops: Loops) -> AsyncIterator[str]:
    """The HTTP server; gives its URL."""
    parts = Parts(
        engine=loops.engine,
        database=loops.database,
        settings=settings,
        feed=loops.feed,
        dispatcher=loops.dispatcher,
        channels={"webhook": loops.channel},
        horizon=horizon(loops.retry),
        token_for=loops.token_for,
        new_id=uuid4,
        new_secret=new_secret,
        ready=loops.ready,
        authenticator=Nobody(),
    )
    runner = web.AppRunner(make_application(parts), access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.server.host, settings.server.port)
        try:
            await site.start()
        except OSError as error:
            raise Unavailable(
                f"cannot listen on {settings.server.listen}: {error.strerror}",
                place="[server] listen",
                remedy="Stop what listens there, or choose another port with --listen.",
            ) from error
        port = runner.addresses[0][1]
        yield settings.server.base_url(port)
    finally:
        await runner.cleanup()
