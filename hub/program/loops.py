"""The loops and services of a process, created once and started by role."""

import asyncio
import os
import random
import secrets
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from importlib.metadata import version
from uuid import uuid4

from channels.amqp.notification_listener import ProviderNotificationListener
from channels.amqp.provider_notifications import ChangedObject
from channels.stream import Feed
from engine.errors import Unavailable
from engine.hooks.drift_digests import DriftDigests
from engine.lifecycle.gate import StackGate
from engine.lifecycle.plugins import Plugins, load_installed
from engine.loop_guard import LoopRun, Supervisor
from engine.service import Engine, Limits
from engine.service.software.configs import ConfigStore, Software
from engine.store.access.token_keys import CHANGED
from engine.store.database import Database
from engine.store.embedded.server import EmbeddedServer
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance.monitoring import ping
from engine.store.maintenance.processes import Process
from engine.store.observer.completions import CHANNEL as COMPLETE
from engine.store.observer.converge_requests import CHANNEL as CONVERGE
from engine.store.observer.observation_schedule import CHANNEL as OBSERVE
from engine.store.read_database import ReadDatabase
from engine.store.schema.upgrade import own_program
from engine.store.traversals.advance import UNLABELLED
from engine.tracing import Tracer
from engine.types.contract import ResourceType
from engine.types.placement import Placer
from engine.types.signal_urls import SignalUrls
from engine.types.software import ServerUrls
from engine.work.archive import ArchiveLoop
from engine.work.audit_signing import AuditSigning
from engine.work.clock_watch import ClockWatch
from engine.work.failover_check import FailoverCheck
from engine.work.lifecycle_notifier import LifecycleNotifier
from engine.work.nodes.traversal_finisher import TraversalFinisher
from engine.work.nodes.worker import Worker
from engine.work.observer.completion_observer import CompletionObserver
from engine.work.observer.converge_rounds import ConvergeRounds
from engine.work.observer.drift_hooks import OBSERVER
from engine.work.observer.observer import Observer
from engine.work.observer.provider_endpoints import ProviderEndpoints
from engine.work.presence import Presence
from engine.work.purge import PurgeLoop
from engine.work.timers import Timers
from engine.work.usage_roll_up import UsageRollUp
from hub.auth.hook_tokens import HookTokens
from hub.auth.identity import Authenticator
from hub.keys.audit_key import checkpoint_exporter, signer_of
from hub.keys.token_keys import StoredTokenKeys
from hub.metrics import Metrics
from hub.metrics_exchange import MetricsExchange
from hub.program.delivery import Delivery
from hub.program.process_slot import ProcessSlot
from hub.program.resource_type_registry import ProcessTypes, cloud_access
from hub.program.traversal_ends import TraversalEnds
from hub.program.trust_deletion import TrustDeletion
from hub.program.wiring import (
    ages,
    listener_settings,
    make_limits,
    notification_connection,
    request_rates,
    worker_settings,
)
from hub.settings.settings import Settings

#: Interval at which this process reports that it is running.
REPORT_INTERVAL = timedelta(seconds=30)


def make_process(
    roles: frozenset[str], keyring: Keyring, labels: Sequence[str] = UNLABELLED
) -> Process:
    """This process, as it reports itself to others. labels: of its workers."""
    program = own_program(version("headgate"))
    host = socket.gethostname()
    return Process(uuid4(), host, sorted(roles), REPORT_INTERVAL, program, keyring.key_ids, labels)


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
        replica: Database | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.tracer = tracer or Tracer()
        self._settings = settings
        self._slot = slot
        self.database = database
        self.authenticator = authenticator
        self.keyring = keyring
        self.token_keys = token_keys
        self.plugins = load_installed() if plugins is None else plugins
        self._server: EmbeddedServer | None = None
        self._create_types(settings, types, placer)
        self.supervisor = Supervisor(
            random=random.SystemRandom().random,
            new_id=lambda: secrets.token_hex(6),
            failed=lambda loop: self.metrics.record_internal_error(loop),
        )
        self.lists = ReadDatabase(
            database,
            replica,
            lag=settings.database.read_lag,
            record=lambda outcome: self.metrics.record_read(outcome),
        )
        self.feed = Feed(database, supervisor=self.supervisor, backlog=self.lists)
        self.metrics = Metrics(
            database, self.feed, MetricsExchange(slot.directory, slot.number, slot.count)
        )
        self._create_engine(settings, make_limits(settings))
        self._create_maintenance(settings)
        self.hook_tokens = HookTokens(database, authenticator, token_keys)
        self.delivery = Delivery(
            settings,
            database,
            hooks=self.engine.hooks,
            hook_tokens=self.hook_tokens,
            metrics=self.metrics,
            tracer=self.tracer,
            supervisor=self.supervisor,
            slot=slot,
        )

    def _create_types(
        self, settings: Settings, types: Sequence[ResourceType], placer: Placer | None
    ) -> None:
        """The resource types, and what makes the URLs that their resources receive."""
        keys, base_url = self.token_keys.keys, settings.server.base_url()
        keystone = settings.auth.keystone.url if settings.auth.mode == "keystone" else ""
        self.servers = ServerUrls(keys, base_url, keystone)
        self.signal_urls = SignalUrls(keys, base_url)
        keeper = ConfigStore(self.database, Software(self.database, new_id=uuid4))
        self._types = ProcessTypes(
            settings.resource_types,
            keeper,
            self.servers,
            *types,
            gate=StackGate(self.plugins),
            placer=placer,
            catalog=self.authenticator.catalog,
            cloud=self.authenticator.cloud(cloud_access(settings.resource_types.openstack)),
            max_signals=settings.quotas.signals_per_resource,
        )
        keeper.connect(self._types.metadata_services)

    def _create_engine(self, settings: Settings, limits: Limits) -> None:
        """The engine, and the loops of the role `engine`, which execute what it has planned."""
        self.engine = Engine(
            self.database,
            self._types.registry,
            limits,
            new_id=uuid4,
            wake=self._wake_workers,
            lifecycle_plugins=bool(self.plugins),
            keyring=self.keyring,
            metrics=self.metrics,
            lists=self.lists,
            # Any process may send the requests of the observer.
            polls=bool(settings.engine.labels),
            handed_over=self.authenticator.observation_credentials,
            metadata_services=self._types.metadata_services,
        )
        ends = TraversalEnds(self.engine.stacks, self.database, self.tracer, self._wake_plugins)
        self.worker = Worker(
            self.database,
            self._types.registry,
            worker_settings(settings),
            name=self.name,
            new_id=uuid4,
            finisher=TraversalFinisher(
                uuid4, ends.end_alone, ends.end_complete, self.engine.stacks.fail_traversal
            ),
            keyring=self.keyring,
            exchange=self.authenticator.exchange,
            run_nested=self.engine.nested.run_operation,
            signal_urls=self.signal_urls,
            resource_bytes=lambda project: limits.for_project(project).resource_bytes,
            metrics=self.metrics,
            tracer=self.tracer,
        )
        self.timers = Timers(
            self.database,
            poll=settings.engine.poll,
            default_timeout=settings.hooks.default_timeout,
            new_id=uuid4,
            metrics=self.metrics,
            supervisor=self.supervisor,
        )
        self.lifecycle = LifecycleNotifier(
            self.database, self.plugins, poll=settings.engine.poll, supervisor=self.supervisor
        )
        endpoints = ProviderEndpoints(
            self.database, request_rates(settings.observer), random.SystemRandom().random
        )
        self.observer = Observer(
            self.database,
            self._types.registry,
            limits.convergence,
            repair=self.engine.repairs.start,
            approved=self.engine.repairs.start_approved,
            within_quota=self.engine.observations.within_quota,
            lease=settings.engine.lease,
            new_id=uuid4,
            chance=random.SystemRandom().random,
            supervisor=self.supervisor,
            metrics=self.metrics,
            endpoints=endpoints,
            watch_every=settings.hooks.watch_every,
            digests=DriftDigests(self.token_keys.first),
        )
        self.converge_rounds = ConvergeRounds(
            self.database, self.engine.start_round, supervisor=self.supervisor
        )
        self.completion_observer = CompletionObserver(
            self.database,
            self._types.registry,
            chance=random.SystemRandom().random,
            supervisor=self.supervisor,
            metrics=self.metrics,
            endpoints=endpoints,
        )
        self.notifications = self._create_listener(settings)

    def _create_listener(self, settings: Settings) -> ProviderNotificationListener | None:
        """None: no broker of providers is configured."""
        amqp = settings.observer.amqp
        connection = notification_connection(amqp)
        if connection is None:
            return None
        return ProviderNotificationListener(
            connection,
            listener_settings(amqp, self._slot),
            self._report_changes,
            count=self.metrics.record_notification,
            supervisor=self.supervisor,
        )

    def make_reading_engine(self, database: Database, lists: ReadDatabase) -> Engine:
        """An engine that reads another schema of the same database, and changes nothing."""
        return Engine(
            database,
            self._types.registry,
            make_limits(self._settings),
            new_id=uuid4,
            lifecycle_plugins=bool(self.plugins),
            keyring=self.keyring,
            metrics=self.metrics,
            lists=lists,
            polls=bool(self._settings.engine.labels),
            handed_over=self.authenticator.observation_credentials,
            metadata_services=self._types.metadata_services,
        )

    async def _report_changes(self, changes: Sequence[ChangedObject]) -> None:
        """Report changes of objects that resources of any project may have."""
        reported = await self.engine.observations.report(None, changes)
        self.metrics.record_reported_changes("observed", reported.resources)
        self.metrics.record_reported_changes("unknown", reported.unknown)

    def _create_maintenance(self, settings: Settings) -> None:
        """The loops that watch, purge and sign what the others have written."""
        self.clock = ClockWatch(
            self.database,
            lease=settings.engine.lease,
            jumped=self.metrics.record_clock_jump,
            supervisor=self.supervisor,
        )
        self.purging = PurgeLoop(
            self.database,
            ages(settings.retention),
            every=settings.retention.every,
            record=self.metrics.record_purge,
            supervisor=self.supervisor,
        )
        self.failovers = FailoverCheck(
            self.database,
            self.name,
            started=lambda: self.worker.started,
            stop=self.worker.abandon,
            supervisor=self.supervisor,
        )
        self.archiving = ArchiveLoop(self.database, supervisor=self.supervisor)
        self.trusts = TrustDeletion(self.authenticator, supervisor=self.supervisor)
        self.usage = UsageRollUp(self.database, OBSERVER, supervisor=self.supervisor)
        data_dir = settings.database.data_dir
        self.audit_signing = AuditSigning(
            self.database,
            signer_of(settings.audit.key_path(data_dir)),
            checkpoint_exporter(settings.audit.checkpoints_path(data_dir)),
            every=settings.audit.sign_every,
            supervisor=self.supervisor,
        )

    def supervise(self, server: EmbeddedServer) -> None:
        self._server = server

    async def start(
        self,
        group: asyncio.TaskGroup,
        stack: AsyncExitStack,
        process: Process,
        stop: asyncio.Event,
    ) -> list[asyncio.Task[None]]:
        """Start the loops of the roles of a registered process; each ends soon after `stop` is
        set."""
        roles = frozenset(process.roles)
        presence = Presence(
            self.database,
            process,
            self.supervisor,
            set_other_engines=self.worker.set_other_engines,
        )
        await stack.enter_async_context(self.database.listen(CHANGED, self.token_keys.wake))
        loops: dict[str, LoopRun] = {
            "presence": presence.run,
            "lag": self.metrics.watch_loop,
            "clock": self.clock.run,
            "failover": self.failovers.run,
            "token keys": self.token_keys.run,
        }
        if "engine" in roles:
            for channel, wake in (
                ("headgate_work", self.worker.wake_in_turn),
                ("headgate_cancelled", self.worker.check_cancelled),
                ("headgate_hook", self.timers.wake),
            ):
                await stack.enter_async_context(self.database.listen(channel, wake))
            loops |= {
                "worker": self.worker.run,
                "timers": self.timers.run,
                "lifecycle": self.lifecycle.run,
            }
            if "" in process.labels:
                loops |= await self._observer_loops(stack)
        if "dispatch" in roles:
            await self.delivery.configure_subscriptions()
            loops["dispatcher"] = self.delivery.dispatcher.run
        if "purge" in roles:
            loops |= {
                "archiving": self.archiving.run,
                "usage": self.usage.run,
                "purging": self.purging.run,
                "trusts": self.trusts.run,
                "audit_signing": self.audit_signing.run,
            }
        if roles & {"api", "dispatch"} and (amqp := self.delivery.amqp("dispatch" in roles)):
            loops["amqp"] = amqp
        if "api" in roles:
            loops["feed"] = self.feed.run
        tasks = [
            group.create_task(self._run_guarded(name, run, stop), name=name)
            for name, run in loops.items()
        ]
        if self._server is not None:
            supervising = self._run_guarded("postgres", self._supervision(self._server), stop)
            stack.callback(group.create_task(supervising, name="postgres").cancel)
        return tasks

    async def _observer_loops(self, stack: AsyncExitStack) -> "dict[str, LoopRun]":
        """The loops that send requests for resources of any label."""
        for channel, wake in (
            (OBSERVE, self.observer.wake),
            (COMPLETE, self.completion_observer.wake),
            (CONVERGE, self.converge_rounds.wake),
        ):
            await stack.enter_async_context(self.database.listen(channel, wake))
        loops: dict[str, LoopRun] = {
            "observer": self.observer.run,
            "hook watch": self.observer.hook_watch.run,
            "completions": self.completion_observer.run,
            "converge rounds": self.converge_rounds.run,
        }
        if self.notifications is not None:
            loops["notifications"] = self.notifications.run
        return loops

    async def _run_guarded(self, name: str, run: LoopRun, stop: asyncio.Event) -> None:
        """Run a loop, and restart it after an unexpected error."""

        async def turn() -> None:
            await run(stop)

        await self.supervisor.guard(name).run(turn, stop)

    def _supervision(self, server: EmbeddedServer) -> LoopRun:
        async def run(stop: asyncio.Event) -> None:
            await server.supervise()
            await stop.wait()

        return run

    def wake(self) -> None:
        self.worker.wake()
        self.timers.wake()
        self.lifecycle.wake()
        self.observer.wake()
        self.completion_observer.wake()
        self.converge_rounds.wake()

    def _wake_workers(self) -> None:
        """Wake the loops after a request, an answer or the end of a traversal."""
        self.worker.wake()
        self._wake_plugins()

    def _wake_plugins(self) -> None:
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

    async def enter(self, stack: AsyncExitStack) -> None:
        """Open the channels and types for the time of the process."""
        await stack.enter_async_context(self._types)
        await stack.enter_async_context(self.delivery)
