"""The loops and services of a process, created once and started by role."""

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
from channels.attempt import Attempts
from channels.contract import Channel, ReceiverDecision
from channels.dispatcher import Dispatcher
from channels.ignored_answers import IgnoredAnswer, IgnoredAnswers, IgnoredReason
from channels.plugins import load_installed as installed_channels
from channels.retry import horizon
from channels.store.subscriptions import configure
from channels.stream import Feed
from channels.webhook.client import WebhookChannel
from engine.errors import HeadgateError, Unavailable
from engine.hooks.answer_rights import Automation
from engine.lifecycle.gate import StackGate
from engine.lifecycle.plugins import Plugins, load_installed
from engine.loops import Supervisor
from engine.service import Engine
from engine.service.software.configs import ConfigStore, Software
from engine.store.advance import TraversalToEnd
from engine.store.database import Database
from engine.store.embedded import EmbeddedServer
from engine.store.encryption import Keyring
from engine.store.graphs import read_traversal_span
from engine.store.monitoring import ping
from engine.store.observations import CHANNEL as OBSERVE
from engine.store.processes import Process
from engine.store.token_keys import CHANGED
from engine.tracing import Tracer
from engine.types.contract import ResourceType
from engine.types.placement import Placer
from engine.types.signal_urls import SignalUrls
from engine.types.software import ServerUrls, software_types
from engine.words import AnswerChannel, Json
from engine.work.archive import ArchiveLoop
from engine.work.audit_signing import AuditSigning
from engine.work.clock_watch import ClockWatch
from engine.work.lifecycle_notifier import LifecycleNotifier
from engine.work.observer import Observer
from engine.work.presence import Presence
from engine.work.purge import PurgeLoop
from engine.work.timers import Timers
from engine.work.worker import Worker
from hub.api.hook_answers import read_signal
from hub.auth.hook_tokens import HookTokens
from hub.auth.identity import Authenticator
from hub.keys.audit_key import checkpoint_exporter, signer_of
from hub.keys.token_keys import StoredTokenKeys
from hub.metrics import Metrics
from hub.metrics_exchange import MetricsExchange
from hub.program.process_slot import ProcessSlot
from hub.program.resource_types import ProcessTypes
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

#: Interval at which this process reports that it is running.
REPORT_INTERVAL = timedelta(seconds=30)

#: Runs a loop until an event is set.
LoopRun = Callable[[asyncio.Event], Awaitable[None]]


def _process(roles: frozenset[str], keyring: Keyring) -> Process:
    return Process(uuid4(), socket.gethostname(), sorted(roles), REPORT_INTERVAL, keyring.key_ids)


class Loops:
    """The loops and services of a process, created once and started by role."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        token_keys: StoredTokenKeys,
        keyring: Keyring,
        authenticator: Authenticator,
        types: Sequence[ResourceType] = (),
        plugins: Plugins | None = None,
        tracer: Tracer | None = None,
        placer: Placer | None = None,
        slot: ProcessSlot = ProcessSlot(),  # noqa: B008  frozen
    ) -> None:
        self.tracer = tracer or Tracer()
        self._settings = settings
        self.database = database
        self.authenticator = authenticator
        self.failed: str | None = None
        self._server: EmbeddedServer | None = None
        self.plugins = load_installed() if plugins is None else plugins
        keeper = ConfigStore(database, Software(database, new_id=uuid4))
        keystone = settings.auth.keystone.url if settings.auth.mode == "keystone" else ""
        self.servers = ServerUrls(token_keys.keys, settings.server.base_url(), keystone)
        software = software_types(keeper, self.servers)
        gate = StackGate(self.plugins)
        self._types = ProcessTypes(
            settings.resource_types,
            *software,
            *types,
            gate=gate,
            placer=placer,
            catalog=authenticator.catalog,
        )
        registry = self._types.registry
        self.keyring = keyring
        self.token_keys = token_keys
        self.supervisor = Supervisor(
            random=random.SystemRandom().random,
            new_id=lambda: secrets.token_hex(6),
            failed=lambda loop: self.metrics.internal_error(loop),
        )
        self.feed = Feed(database, supervisor=self.supervisor)
        self.metrics = Metrics(
            database, self.feed, MetricsExchange(slot.directory, slot.number, slot.count)
        )
        self.signal_urls = SignalUrls(token_keys.keys, settings.server.base_url())
        self.lifecycle = LifecycleNotifier(
            database, self.plugins, poll=settings.engine.poll, supervisor=self.supervisor
        )
        limits = make_limits(settings)
        self.engine = Engine(
            database,
            registry,
            limits,
            new_id=uuid4,
            wake=self._wake_workers,
            lifecycle_plugins=bool(self.plugins),
            keyring=self.keyring,
            measures=self.metrics,
        )
        self.worker = Worker(
            database,
            registry,
            worker_settings(settings),
            name=f"{socket.gethostname()}:{os.getpid()}",
            new_id=uuid4,
            end=self._end_traversal,
            end_complete=self._end_complete,
            fail_end=self.engine.stacks.fail_traversal,
            keyring=self.keyring,
            exchange=authenticator.exchange,
            run_nested=self.engine.nested.run_operation,
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
        self.observer = Observer(
            database,
            registry,
            limits.convergence,
            repair=self.engine.repairs.start,
            new_id=uuid4,
            chance=random.SystemRandom().random,
            supervisor=self.supervisor,
            measures=self.metrics,
        )
        self.metrics.watch_endpoints(self.observer.back_off)
        self.clock = ClockWatch(
            database,
            lease=settings.engine.lease,
            jumped=self.metrics.clock_jumped,
            supervisor=self.supervisor,
        )
        self.purging = PurgeLoop(
            database,
            ages(settings.retention),
            every=settings.retention.every,
            supervisor=self.supervisor,
        )
        self.archiving = ArchiveLoop(database, supervisor=self.supervisor)
        data_dir = settings.database.data_dir
        self.audit_signing = AuditSigning(
            database,
            signer_of(settings.audit.key_path(data_dir)),
            checkpoint_exporter(settings.audit.checkpoints_path(data_dir)),
            every=settings.audit.sign_every,
            supervisor=self.supervisor,
        )
        self.hook_tokens = HookTokens(database, authenticator, token_keys)
        self.webhook = WebhookChannel(webhook_settings(settings.channels.webhook))
        self.channels: dict[str, Channel] = {"webhook": self.webhook}
        self.broker: Broker | None = None
        if (broker := broker_settings(settings.channels.amqp)) is not None:
            self.broker = Broker(broker, self.supervisor)
            amqp = settings.channels.amqp
            self.channels["amqp"] = AmqpChannel(self.broker, amqp.exchanges)
            self.channels["heat"] = HeatChannel(self.broker, amqp.heat_exchanges)
        self.channels |= installed_channels(self.channels)
        dispatching = dispatcher_settings(settings, slot)
        self.horizon: Callable[[str], float] = lambda name: horizon(dispatching.policy(name))
        attempts = Attempts(
            self.channels,
            dispatching.policy,
            token_for=self.hook_tokens.token_for,
            entitle=self.hook_tokens.entitled,
            public_url=settings.server.base_url(),
            answer=self._answer_from_response,
            random=random.SystemRandom().random,
            observe=self.metrics.tried,
            tracer=self.tracer,
            supervisor=self.supervisor,
        )
        self.dispatcher = Dispatcher(
            database, attempts, settings=dispatching, supervisor=self.supervisor
        )

    async def _end_traversal(self, ended: TraversalToEnd) -> None:
        """End a traversal and create its span."""
        await self.engine.stacks.end_alone(ended)
        await self._export_span(ended)

    async def _end_complete(self, ends: Sequence[TraversalToEnd]) -> Sequence[TraversalToEnd]:
        """End the complete ones of these traversals and create their spans; return the others."""
        left = await self.engine.stacks.end_complete(ends)
        if self.plugins:
            self.lifecycle.wake()
        for ended in ends:
            if ended not in left:
                await self._export_span(ended)
        return left

    async def _export_span(self, ended: TraversalToEnd) -> None:
        if type(self.tracer) is Tracer:
            return  # spans are not exported
        async with self.database.connection() as conn:
            record = await read_traversal_span(conn, ended.stack_id, ended.traversal)
        if record is not None and record.traceparent and record.over:
            span = self.tracer.begin(
                f"traversal {record.action.lower()}", record.traceparent,
                seconds_ago=record.seconds, stack_id=str(ended.stack_id),
                traversal=ended.traversal,
            )  # fmt: skip
            span.end(state=record.state)

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
        process = _process(roles, self.keyring)
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
                ("headgate_cancelled", self.worker.check_cancelled),
                ("headgate_hook", self.timers.wake),
                (OBSERVE, self.observer.wake),
            ):
                await stack.enter_async_context(self.database.listen(channel, wake))
            loops |= {
                "worker": self.worker.run,
                "timers": self.timers.run,
                "lifecycle": self.lifecycle.run,
                "observer": self.observer.run,
            }
        if "dispatch" in roles:
            await self._configure_subscriptions()
            loops["dispatcher"] = self.dispatcher.run
        if "purge" in roles:
            loops |= {
                "archiving": self.archiving.run,
                "purging": self.purging.run,
                "audit_signing": self.audit_signing.run,
            }
        if self.broker is not None and roles & {"api", "dispatch"}:
            loops["amqp"] = self._amqp(self.broker, "dispatch" in roles)
        if "api" in roles:
            loops["feed"] = self.feed.run
        tasks = [
            group.create_task(self._run_guarded(name, run, stop), name=name)
            for name, run in loops.items()
        ]
        if self._server is not None:
            supervising = self._run_guarded("postgres", self._supervised(self._server), stop)
            stack.callback(group.create_task(supervising, name="postgres").cancel)
        return tasks

    async def _run_guarded(self, name: str, run: LoopRun, stop: asyncio.Event) -> None:
        """Run a loop, and restart it after an unexpected error."""

        async def turn() -> None:
            await run(stop)

        await self.supervisor.guard(name).run(turn, stop)

    def _amqp(self, broker: Broker, consumes: bool) -> LoopRun:
        ignored = IgnoredAnswers(self.database, self.hook_tokens.entitled, AmqpChannel.name)
        answers = Answers(
            broker,
            self._answer_from_message,
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
        self.observer.wake()

    def _wake_workers(self) -> None:
        """Wake the loops after a request, an answer or the end of a traversal."""
        self.worker.wake()
        if self.plugins:
            self.lifecycle.wake()

    async def drain(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait for the loops to end, for a limited time; then cancel them."""
        if tasks:
            seconds = self._settings.engine.drain.total_seconds() + 5
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()

    async def ready(self) -> list[str]:
        """The reasons why this process is not ready; empty if it is."""
        try:
            async with self.database.connection() as conn:
                await ping(conn)
        except Unavailable as error:
            return [str(error)]
        return []

    async def _answer_from_response(
        self, hook_id: UUID, decision: ReceiverDecision, automation: Automation, target: str
    ) -> str | None:
        """Apply the answer in the response of a receiver; return why it was refused, or None."""
        body = {"decision": decision.decision, "reason": decision.reason, **decision.more}
        return await self._apply_answer(hook_id, body, automation, AnswerChannel.WEBHOOK, target)

    async def _answer_from_message(
        self, hook_id: UUID, token: str, body: Mapping[str, Json], sender: str
    ) -> IgnoredAnswer | None:
        """Apply an answer over AMQP, which is authorized by the hook token."""
        automation = await self.hook_tokens.holder(hook_id, token)
        if automation is None:
            return IgnoredAnswer("this is not the hook's token", IgnoredReason.INVALID_TOKEN)
        refused = await self._apply_answer(hook_id, body, automation, AnswerChannel.AMQP, sender)
        if refused is None:
            return None
        return IgnoredAnswer(refused, IgnoredReason.REFUSED, automation.id)

    async def _apply_answer(
        self,
        hook_id: UUID,
        body: Mapping[str, Json],
        automation: Automation,
        channel: AnswerChannel,
        address: str,
    ) -> str | None:
        try:
            answer = read_signal(
                body, automation.principal, channel, automation=automation, address=address
            )
            await self.engine.hooks.answer(hook_id, answer, project=None)
        except Unavailable:
            raise
        except HeadgateError as error:
            return str(error)
        return None

    async def enter(self, stack: AsyncExitStack) -> None:
        """Open the channels and types for the time of the process."""
        await stack.enter_async_context(self._types)
        for channel in self.channels.values():
            if isinstance(channel, AbstractAsyncContextManager):
                await stack.enter_async_context(channel)

    async def _configure_subscriptions(self) -> None:
        configured = configured_subscriptions(self._settings)
        for one in configured:
            if one.channel not in self.channels:
                raise Unavailable(
                    f'there is no channel "{one.channel}" here',
                    place="[[subscriptions]] channel",
                    remedy=f"Known: {', '.join(sorted(self.channels))}. AMQP needs"
                    " [channels.amqp] url.",
                )
        async with self.database.connection() as conn:
            await configure(conn, configured)
