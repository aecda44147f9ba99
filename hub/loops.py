"""Everything that runs in one process, made once and started by role."""

import asyncio
import hmac
import os
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from uuid import UUID, uuid4

from channels.amqp.answers import Answers
from channels.amqp.broker import Broker
from channels.amqp.notifications import HeatChannel
from channels.amqp.publisher import AmqpChannel
from channels.contract import Channel, ReceiverDecision
from channels.dispatcher import Dispatcher
from channels.plugins import installed as installed_channels
from channels.retry import horizon
from channels.store.configured import configure
from channels.stream.feed import Feed
from channels.webhook.client import WebhookChannel
from engine.errors import HeadgateError, Unavailable
from engine.hooks.rule import TOKEN
from engine.hooks.tokens import hook_token
from engine.lifecycle.gate import StackGate
from engine.lifecycle.plugins import Plugins, installed
from engine.service import Engine
from engine.service.nested import Run
from engine.service.software import Software
from engine.service.software_keeper import Keeper
from engine.store.advance import End
from engine.store.database import Database
from engine.store.embedded import EmbeddedServer
from engine.store.instance import alive
from engine.store.processes import Process
from engine.store.sealing import Sealer
from engine.store.walks import read_walk
from engine.tracing import Tracer
from engine.types.contract import Call, Outcome, ResourceType
from engine.types.placement import Placer
from engine.types.signal_doors import SignalDoors
from engine.types.software import ServerDoors, software_types
from engine.words import Door, Json
from engine.work.prepare import Prepared
from engine.work.presence import Presence
from engine.work.purging import Purging
from engine.work.telling import Telling
from engine.work.timers import Timers
from engine.work.worker import Worker
from hub.api.signals import read_signal
from hub.auth.identity import Authenticator
from hub.metrics import Metrics
from hub.resource_types import TypesAtHand
from hub.settings import Settings
from hub.wiring import (
    ages,
    broker_settings,
    configured_subscriptions,
    dispatcher_settings,
    make_limits,
    webhook_settings,
    worker_settings,
)

#: How often this process says that it is at work.
REPORT_INTERVAL = timedelta(seconds=30)


def _process(roles: frozenset[str]) -> Process:
    return Process(uuid4(), socket.gethostname(), sorted(roles), REPORT_INTERVAL)


class Loops:
    """Everything that runs in this process, made once and started by role."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        key: bytes,
        sealer: Sealer,
        authenticator: Authenticator,
        types: Sequence[ResourceType] = (),
        plugins: Plugins | None = None,
        tracer: Tracer | None = None,
        placer: Placer | None = None,
    ) -> None:
        self.tracer = tracer or Tracer()
        self._settings = settings
        self.database = database
        self.authenticator = authenticator
        self.failed: str | None = None
        self._server: EmbeddedServer | None = None
        self.plugins = installed() if plugins is None else plugins
        keeper = Keeper(database, Software(database, new_id=uuid4))
        keystone = settings.auth.keystone.url if settings.auth.mode == "keystone" else ""
        self.servers = ServerDoors(key, settings.server.base_url(), keystone)
        software = software_types(keeper, self.servers)
        gate = StackGate(self.plugins)
        self._types = TypesAtHand(
            settings.resource_types, *software, *types, gate=gate, placer=placer
        )
        registry = self._types.registry
        self.sealer = sealer
        self.feed = Feed(database)
        self.metrics = Metrics(database, self.feed)
        self.doors = SignalDoors(key, settings.server.base_url())
        self.telling = Telling(database, self.plugins, poll=settings.engine.poll)
        self.worker = Worker(
            database,
            registry,
            worker_settings(settings),
            name=f"{socket.gethostname()}:{os.getpid()}",
            new_id=uuid4,
            end=self._ended,
            sealer=self.sealer,
            exchange=authenticator.exchange,
            carry=self._carried,
            doors=self.doors,
            measures=self.metrics,
            tracer=self.tracer,
        )
        self.timers = Timers(
            database,
            poll=settings.engine.poll,
            default_timeout=settings.hooks.default_timeout,
            new_id=uuid4,
            measures=self.metrics,
        )
        self.purging = Purging(database, ages(settings.retention), every=settings.retention.every)
        self.engine = Engine(
            database,
            registry,
            make_limits(settings),
            new_id=uuid4,
            wake=self._stirred,
            watched=bool(self.plugins),
            sealer=self.sealer,
            measures=self.metrics,
        )
        self.token_for: Callable[[UUID], str] = lambda hook_id: hook_token(key, hook_id)
        self.webhook = WebhookChannel(webhook_settings(settings.channels.webhook))
        self.channels: dict[str, Channel] = {"webhook": self.webhook}
        self.broker: Broker | None = None
        if (broker := broker_settings(settings.channels.amqp)) is not None:
            self.broker = Broker(broker)
            amqp = settings.channels.amqp
            self.channels["amqp"] = AmqpChannel(self.broker, amqp.exchanges)
            self.channels["heat"] = HeatChannel(self.broker, amqp.heat_exchanges)
        self.channels |= installed_channels(self.channels)
        dispatching = dispatcher_settings(settings)
        self.horizon: Callable[[str], float] = lambda name: horizon(dispatching.policy(name))
        self.dispatcher = Dispatcher(
            database,
            self.channels,
            settings=dispatching,
            token_for=self.token_for,
            public_url=settings.server.base_url(),
            answer=self._answered,
            random=random.SystemRandom().random,
            tried=self.metrics.tried,
            tracer=self.tracer,
        )

    async def _carried(self, prepared: Prepared, call: Call, run: Run) -> Outcome:
        return await self.engine.nested.carry(prepared, call, run)

    async def _ended(self, ended: End) -> None:
        """A traversal is over: its span is made now, by whoever ends it."""
        await self.engine.end_traversal(ended)
        if type(self.tracer) is Tracer:
            return  # nobody would see it
        async with self.database.connection() as conn:
            walk = await read_walk(conn, ended.stack_id, ended.traversal)
        if walk is not None and walk.traceparent and walk.over:
            span = self.tracer.begin(
                f"traversal {walk.action.lower()}", walk.traceparent, seconds_ago=walk.seconds,
                stack_id=str(ended.stack_id), traversal=ended.traversal,
            )  # fmt: skip
            span.end(state=walk.state)

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
        presence = Presence(self.database, _process(roles))
        await presence.say()
        tasks = [
            group.create_task(presence.run(stop), name="presence"),
            group.create_task(self.metrics.watch_loop(stop), name="lag"),
        ]
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
        if "purge" in roles:
            tasks.append(group.create_task(self.purging.run(stop), name="purging"))
        if self.broker is not None and roles & {"api", "dispatch"}:
            answers = Answers(self.broker, self._answered_by_message)
            consume = answers.consume if "dispatch" in roles else None
            tasks.append(group.create_task(self.broker.run(stop, consume), name="amqp"))
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
        return await self._taken(hook_id, body, by, Door.WEBHOOK, "")

    async def _answered_by_message(
        self, hook_id: UUID, token: str, body: Mapping[str, Json], sender: str
    ) -> str | None:
        """An answer that came over AMQP, by right of the hook's token."""
        if not hmac.compare_digest(token.encode(), self.token_for(hook_id).encode()):
            return "this is not the hook's token"
        return await self._taken(hook_id, body, TOKEN, Door.AMQP, sender)

    async def _taken(
        self, hook_id: UUID, body: Mapping[str, Json], by: str, door: Door, address: str
    ) -> str | None:
        try:
            answer = read_signal(body).by(by, door, by_token=True, address=address)
            await self.engine.answer(hook_id, answer, project=None)
        except Unavailable:
            raise
        except HeadgateError as error:
            return str(error)
        return None

    async def enter(self, stack: AsyncExitStack) -> None:
        """Channels and types that are open while the program runs."""
        await stack.enter_async_context(self._types)
        for channel in self.channels.values():
            if isinstance(channel, AbstractAsyncContextManager):
                await stack.enter_async_context(channel)

    async def _configure_subscriptions(self) -> None:
        wanted = configured_subscriptions(self._settings)
        for one in wanted:
            if one.channel not in self.channels:
                raise Unavailable(
                    f'there is no channel "{one.channel}" here',
                    place="[[subscriptions]] channel",
                    remedy=f"Known: {', '.join(sorted(self.channels))}. AMQP needs"
                    " [channels.amqp] url.",
                )
        async with self.database.connection() as conn:
            await configure(conn, wanted)
