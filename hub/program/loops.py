"""Everything that runs in one process, made once and started by role."""

import asyncio
import os
import random
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from uuid import UUID, uuid4

from channels.amqp.answers import Answers
from channels.amqp.broker import Broker
from channels.amqp.notifications import HeatChannel
from channels.amqp.publisher import AmqpChannel
from channels.contract import Channel, ReceiverDecision
from channels.dispatcher import Dispatcher
from channels.ignored_answers import IgnoredAnswer, IgnoredAnswers, IgnoredReason
from channels.plugins import installed as installed_channels
from channels.retry import horizon
from channels.store.configured_subscriptions import configure
from channels.stream.feed import Feed
from channels.webhook.client import WebhookChannel
from engine.errors import HeadgateError, Unavailable
from engine.hooks.automation import Automation
from engine.lifecycle.gate import StackGate
from engine.lifecycle.plugins import Plugins, installed
from engine.loops import Supervisor
from engine.service import Engine
from engine.service.software.config_store import ConfigStore
from engine.service.software.configs import Software
from engine.service.traversals.nested import Run
from engine.store.advance import End
from engine.store.database import Database
from engine.store.embedded import EmbeddedServer
from engine.store.encryption import Sealer
from engine.store.installation import alive
from engine.store.processes import Process
from engine.store.stack_queries import read_traversal_span
from engine.store.token_keys import CHANGED
from engine.tracing import Tracer
from engine.types.contract import Call, Outcome, ResourceType
from engine.types.placement import Placer
from engine.types.signal_urls import SignalUrls
from engine.types.software import ServerUrls, software_types
from engine.words import Door, Json
from engine.work.audit_signing import AuditSigning
from engine.work.clock_watch import ClockWatch
from engine.work.lifecycle_notifier import LifecycleNotifier
from engine.work.prepare import Prepared
from engine.work.presence import Presence
from engine.work.purge import Purging
from engine.work.timers import Timers
from engine.work.worker import Worker
from hub.api.signals import read_signal
from hub.auth.answerers import Answerers
from hub.auth.identity import Authenticator
from hub.keys.audit_key import appending, signer_of
from hub.keys.token_keys import StoredTokenKeys
from hub.metrics import Metrics
from hub.program.resource_types import TypesAtHand
from hub.program.wiring import (
    ages,
    broker_settings,
    configured_subscriptions,
    dispatcher_settings,
    make_limits,
    webhook_settings,
    worker_settings,
)
from hub.settings.settings import Settings

#: How often this process says that it is at work.
REPORT_INTERVAL = timedelta(seconds=30)

#: Runs a loop until an event is set.
LoopRun = Callable[[asyncio.Event], Awaitable[None]]


def _process(roles: frozenset[str], sealer: Sealer) -> Process:
    return Process(uuid4(), socket.gethostname(), sorted(roles), REPORT_INTERVAL, sealer.key_ids)


class Loops:
    """Everything that runs in this process, made once and started by role."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        token_keys: StoredTokenKeys,
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
        keeper = ConfigStore(database, Software(database, new_id=uuid4))
        keystone = settings.auth.keystone.url if settings.auth.mode == "keystone" else ""
        self.servers = ServerUrls(token_keys.keys, settings.server.base_url(), keystone)
        software = software_types(keeper, self.servers)
        gate = StackGate(self.plugins)
        self._types = TypesAtHand(
            settings.resource_types, *software, *types, gate=gate, placer=placer
        )
        registry = self._types.registry
        self.sealer = sealer
        self.token_keys = token_keys
        self.supervisor = Supervisor(
            random=random.SystemRandom().random,
            new_id=lambda: secrets.token_hex(6),
            failed=lambda loop: self.metrics.internal_error(loop),
        )
        self.feed = Feed(database, supervisor=self.supervisor)
        self.metrics = Metrics(database, self.feed)
        self.signal_urls = SignalUrls(token_keys.keys, settings.server.base_url())
        self.lifecycle = LifecycleNotifier(
            database, self.plugins, poll=settings.engine.poll, supervisor=self.supervisor
        )
        limits = make_limits(settings)
        self.worker = Worker(
            database,
            registry,
            worker_settings(settings),
            name=f"{socket.gethostname()}:{os.getpid()}",
            new_id=uuid4,
            end=self._ended,
            fail_end=self._end_failed,
            sealer=self.sealer,
            exchange=authenticator.exchange,
            run_nested=self._carried,
            signal_urls=self.signal_urls,
            resource_bytes=lambda project: limits.of(project).resource_bytes,
            measures=self.metrics,
            tracer=self.tracer,
        )
        self.timers = Timers(
            database,
            poll=settings.engine.poll,
            default_timeout=settings.hooks.default_timeout,
            new_id=uuid4,
            measures=self.metrics,
            supervisor=self.supervisor,
        )
        self.clock = ClockWatch(
            database,
            lease=settings.engine.lease,
            jumped=self.metrics.clock_jumped,
            supervisor=self.supervisor,
        )
        self.purging = Purging(
            database,
            ages(settings.retention),
            every=settings.retention.every,
            supervisor=self.supervisor,
        )
        data_dir = settings.database.data_dir
        self.audit_signing = AuditSigning(
            database,
            signer_of(settings.audit.key_path(data_dir)),
            appending(settings.audit.checkpoints_path(data_dir)),
            every=settings.audit.sign_every,
            supervisor=self.supervisor,
        )
        self.engine = Engine(
            database,
            registry,
            limits,
            new_id=uuid4,
            wake=self._stirred,
            lifecycle_plugins=bool(self.plugins),
            sealer=self.sealer,
            measures=self.metrics,
        )
        self.answerers = Answerers(database, authenticator, token_keys)
        self.webhook = WebhookChannel(webhook_settings(settings.channels.webhook))
        self.channels: dict[str, Channel] = {"webhook": self.webhook}
        self.broker: Broker | None = None
        if (broker := broker_settings(settings.channels.amqp)) is not None:
            self.broker = Broker(broker, self.supervisor)
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
            token_for=self.answerers.token_for,
            entitle=self.answerers.entitled,
            public_url=settings.server.base_url(),
            answer=self._answered,
            random=random.SystemRandom().random,
            observe=self.metrics.tried,
            tracer=self.tracer,
            supervisor=self.supervisor,
        )

    async def _carried(self, prepared: Prepared, call: Call, run: Run) -> Outcome:
        return await self.engine.nested.run_operation(prepared, call, run)

    async def _end_failed(self, ended: End, reason: str) -> None:
        await self.engine.stacks.fail_traversal(ended, reason)

    async def _ended(self, ended: End) -> None:
        """A traversal is over: its span is made now, by whoever ends it."""
        await self.engine.stacks.end_traversal(ended)
        if type(self.tracer) is Tracer:
            return  # nobody would see it
        async with self.database.connection() as conn:
            walk = await read_traversal_span(conn, ended.stack_id, ended.traversal)
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
        process = _process(roles, self.sealer)
        presence = Presence(self.database, process, self.supervisor)
        await self.supervisor.guard("presence").attempt(presence.report())
        await stack.enter_async_context(self.database.listen(CHANGED, self.token_keys.wake))
        loops: dict[str, LoopRun] = {
            "presence": presence.run,
            "lag": self.metrics.watch_loop,
            "clock": self.clock.run,
            "token keys": self.token_keys.run,
        }
        if "engine" in roles:
            for channel, wake in (
                ("headgate_work", self.worker.wake),
                ("headgate_hook", self.timers.wake),
            ):
                await stack.enter_async_context(self.database.listen(channel, wake))
            loops |= {
                "worker": self.worker.run,
                "timers": self.timers.run,
                "lifecycle": self.lifecycle.run,
            }
        if "dispatch" in roles:
            await self._configure_subscriptions()
            loops["dispatcher"] = self.dispatcher.run
        if "purge" in roles:
            loops |= {"purging": self.purging.run, "audit_signing": self.audit_signing.run}
        if self.broker is not None and roles & {"api", "dispatch"}:
            loops["amqp"] = self._amqp(self.broker, "dispatch" in roles)
        if "api" in roles:
            loops["feed"] = self.feed.run
        tasks = [
            group.create_task(self._outlive(name, run, stop), name=name)
            for name, run in loops.items()
        ]
        if self._server is not None:
            supervising = self._outlive("postgres", self._supervised(self._server), stop)
            stack.callback(group.create_task(supervising, name="postgres").cancel)
        return tasks

    async def _outlive(self, name: str, run: LoopRun, stop: asyncio.Event) -> None:
        """Begin a loop anew after an error that none of its own guards has kept."""

        async def turn() -> None:
            await run(stop)

        await self.supervisor.guard(name).run(turn, stop)

    def _amqp(self, broker: Broker, consumes: bool) -> LoopRun:
        ignored = IgnoredAnswers(self.database, self.answerers.entitled, AmqpChannel.name)
        answers = Answers(
            broker,
            self._answered_by_message,
            ignored.record,
            ignored=self.metrics.answer_ignored,
            supervisor=self.supervisor,
        )
        return lambda stop: broker.run(stop, answers.consume if consumes else None)

    def _supervised(self, server: EmbeddedServer) -> LoopRun:
        async def run(stop: asyncio.Event) -> None:
            await server.supervise()
            await stop.wait()

        return run

    def wake(self) -> None:
        self.worker.wake()
        self.timers.wake()
        self.lifecycle.wake()

    def _stirred(self) -> None:
        """Something was accepted, answered or has ended here."""
        self.worker.wake()
        if self.plugins:
            self.lifecycle.wake()

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

    async def _answered(
        self, hook_id: UUID, said: ReceiverDecision, automation: Automation, target: str
    ) -> str | None:
        """A receiver's answer in its response; returns why it was refused, or None."""
        body = {"decision": said.decision, "reason": said.reason, **said.more}
        return await self._taken(hook_id, body, automation, Door.WEBHOOK, target)

    async def _answered_by_message(
        self, hook_id: UUID, token: str, body: Mapping[str, Json], sender: str
    ) -> IgnoredAnswer | None:
        """An answer that came over AMQP, by right of the hook's token."""
        automation = await self.answerers.holder(hook_id, token)
        if automation is None:
            return IgnoredAnswer("this is not the hook's token", IgnoredReason.INVALID_TOKEN)
        refused = await self._taken(hook_id, body, automation, Door.AMQP, sender)
        if refused is None:
            return None
        return IgnoredAnswer(refused, IgnoredReason.REFUSED, automation.id)

    async def _taken(
        self,
        hook_id: UUID,
        body: Mapping[str, Json],
        automation: Automation,
        door: Door,
        address: str,
    ) -> str | None:
        try:
            answer = read_signal(body).by(
                automation.principal, door, automation=automation, address=address
            )
            await self.engine.hooks.answer(hook_id, answer, project=None)
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
