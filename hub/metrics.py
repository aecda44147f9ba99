"""Prometheus metrics of a process; docs/reference/metrics.md lists them.

Labels have no values from users, such as projects, names and paths: types are installed ones,
routes are templates, methods those of HTTP.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.metadata import version

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from structlog.typing import FilteringBoundLogger

from channels.ignored_answers import IgnoredReason
from channels.store.backlog import Backlog, read_backlog
from channels.store.records import DeliveryState
from channels.stream import Feed
from engine.bounded_wait import wait_at_most
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.maintenance.monitoring import (
    WaitingWork,
    count_observed_states,
    read_waiting_work,
)
from engine.store.maintenance.processes import UnservedLabel, read_unserved_labels
from engine.store.observer.observation_credentials import count_states
from engine.store.observer.provider_endpoints import PausedCounts, count_paused
from engine.store.projects.usage import UsageToday, read_today
from engine.store.replica import ReadOutcome
from engine.words import ObservedState
from engine.work.observer.drift_hooks import OBSERVER
from engine.work.worker_metrics import WorkerMetrics
from hub.metrics_exchange import MetricsExchange

log: FilteringBoundLogger = structlog.get_logger()

CONTENT_TYPE = "text/plain"
#: Methods with their own label; the others are ``other``.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
#: Seconds for which values from the database are cached; seconds between measurements of the loop.
FRESH, TICK = 5.0, 1.0
#: Seconds for which the usage of the day is cached, which reads all changes and hooks of the day.
USAGE_FRESH = 60.0
#: How long due work may wait before it counts as stuck.
PATIENCE = timedelta(minutes=1)
#: Buckets, in seconds, for short and for long durations.
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SLOW = (0.001, 0.01, 0.1, 0.5, 1, 5, 15, 30, 60, 300, 900, 3600)
OUTCOME = {
    DeliveryState.DELIVERED: "delivered",
    DeliveryState.PENDING: "retried",
    DeliveryState.DEAD: "dead",
}
NAN = float("nan")

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(WorkerMetrics):
    """One registry for each program, so that several can live in one process."""

    def __init__(
        self,
        database: Database | None,
        feed: Feed | None,
        exchange: MetricsExchange | None = None,
    ) -> None:
        """database, feed: None: of several cells, which have their own metrics. exchange: with the
        other processes of the same server."""
        self._exchange = exchange or MetricsExchange()
        self.registry = CollectorRegistry()
        self._shared = CollectorRegistry()
        self._backlog = _Backlog(self._shared, database) if database else None

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"headgate_{name}", meaning, labels, registry=self.registry)

        def duration(
            name: str, meaning: str, *labels: str, buckets: Sequence[float] = QUICK
        ) -> Histogram:
            return Histogram(
                f"headgate_{name}_seconds", meaning, labels, registry=self.registry, buckets=buckets
            )

        self._requests = counter("requests", "HTTP requests answered", "route", "method", "status")
        self._request_seconds = duration("request", "Duration of a request", "route", "method")
        self._nodes = counter("nodes", "Nodes that ended", "operation", "state")
        self._operations = counter(
            "operations", "Calls of operations", "type", "operation", "outcome"
        )
        self._operation_seconds = duration(
            "operation", "Duration of a call of an operation", "type", "operation", buckets=SLOW
        )
        self._restarts = counter(
            "operations_restarted", "Operations called again after their process ended",
            "type", "operation",
        )  # fmt: skip
        # Cached, because finding a child by its labels takes longer than counting.
        self._operation = cache(self._operations.labels)
        self._operation_time = cache(self._operation_seconds.labels)
        self._node = cache(self._nodes.labels)
        self._claim_seconds = duration(
            "claim", "Time from the claim of a node to the call of its operation"
        )
        self._opened = counter("hooks_opened", "Hooks opened", "point", "mode")
        self._answers = counter("answers", "Accepted answers to hooks", "channel", "decision")
        self._ignored = counter(
            "amqp_answers_ignored", "Answers over AMQP that do not count", "reason"
        )
        self._expired = counter("hooks_expired", "Hooks that expired without an answer")
        self._deliveries = counter("deliveries", "Delivery attempts", "channel", "outcome")
        self._delivery_seconds = duration("delivery", "Duration of a delivery attempt", "channel")
        self._purged = counter("purged", "Rows deleted by retention", "kind")
        self._observed = counter("observed_resources", "Resources observed", "state")
        self._observation_calls = counter(
            "observation_calls", "Calls of types to observe resources", "outcome"
        )
        self._drift = counter("drift_found", "Resources that became different")
        self._provider_requests = counter("observation_requests", "Requests of observations")
        self._reported = counter("reported_changes", "Reported changes of resources", "outcome")
        self._notifications = counter(
            "provider_notifications", "Notifications of providers", "outcome"
        )
        self._reads = counter("replica_reads", "Reads that a replica may serve", "outcome")
        self._lag = duration("loop_lag", "Delay of the event loop")
        self._internal_errors = counter(
            "internal_errors", "Internal errors of units of work and loops", "loop"
        )
        self._clock_jumps = counter(
            "database_clock_jumps", "Times that the database's clock was set", "direction"
        )
        if feed is not None:
            self._read_when_rendered("streams", "Open event streams", lambda: feed.readers)
        if database is not None:
            self._watch_pool(database)
        Gauge("headgate_info", "Always 1", ("version",), registry=self.registry).labels(
            version("headgate")
        ).set(1)

    def _watch_pool(self, database: Database) -> None:
        pool = database.pool
        for name, meaning, read in (
            ("connections", "Open database connections", pool.get_size),
            ("in_use", "Database connections in use", lambda: database.in_use),
            ("most", "Maximum number of database connections", pool.get_max_size),
        ):
            self._read_when_rendered(f"pool_{name}", meaning, read)

    def _read_when_rendered(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        Gauge(f"headgate_{name}", meaning, registry=self.registry).set_function(read)

    async def render(self) -> bytes:
        """All metrics in the text format of Prometheus, those of the other processes of the server
        included. Values from the database are cached."""
        if self._backlog is not None:
            await self._backlog.refresh()
        of_processes = await self._exchange.merge(self.render_own())
        return generate_latest(self._shared) + of_processes

    def render_own(self) -> bytes:
        """The metrics of this process alone."""
        return generate_latest(self.registry)

    async def watch_loop(self, stop: asyncio.Event) -> None:
        """Measure the delay of the event loop at regular intervals."""
        loop = asyncio.get_running_loop()
        while not stop.is_set():
            due = loop.time() + TICK
            await wait_at_most(stop, TICK)
            self._lag.observe(max(0.0, loop.time() - due))

    def record_request(self, route: str, method: str, status: int, seconds: float | None) -> None:
        """route: the template. seconds: None for streams."""
        label = method if method in METHODS else OTHER
        self._requests.labels(route, label, str(status)).inc()
        if seconds is not None:
            self._request_seconds.labels(route, label).observe(seconds)

    def record_delivery(self, channel: str, state: DeliveryState, seconds: float) -> None:
        self._deliveries.labels(channel, OUTCOME[state]).inc()
        self._delivery_seconds.labels(channel).observe(seconds)

    def record_internal_error(self, loop: str) -> None:
        self._internal_errors.labels(loop).inc()

    def record_read(self, outcome: ReadOutcome) -> None:
        self._reads.labels(outcome).inc()

    def record_clock_jump(self, seconds: float) -> None:
        self._clock_jumps.labels("back" if seconds < 0 else "forward").inc()

    def record_purge(self, kind: str, count: int) -> None:
        self._purged.labels(kind).inc(count)

    def record_observation(self, state: str) -> None:
        self._observed.labels(state).inc()

    def record_observation_call(self, outcome: str, count: int = 1) -> None:
        self._observation_calls.labels(outcome).inc(count)

    def record_drift(self, count: int) -> None:
        self._drift.inc(count)

    def record_provider_requests(self, requests: int) -> None:
        self._provider_requests.inc(requests)

    def record_reported_changes(self, outcome: str, count: int) -> None:
        self._reported.labels(outcome).inc(count)

    def record_notification(self, outcome: str) -> None:
        self._notifications.labels(outcome).inc()

    def record_claim(self, seconds: float) -> None:
        self._claim_seconds.observe(seconds)

    def record_operation(
        self, type_name: str, operation: str, outcome: str, seconds: float
    ) -> None:
        self._operation(type_name, operation, outcome).inc()
        self._operation_time(type_name, operation).observe(seconds)

    def record_restart(self, type_name: str, operation: str) -> None:
        self._restarts.labels(type_name, operation).inc()

    def record_node_end(self, operation: str, state: str) -> None:
        self._node(operation, state).inc()

    def record_hook(self, point: str, mode: str) -> None:
        self._opened.labels(point, mode).inc()

    def record_answer(self, channel: str, decision: str) -> None:
        self._answers.labels(channel, decision).inc()

    def record_ignored_answer(self, reason: IgnoredReason) -> None:
        self._ignored.labels(reason).inc()

    def record_expired_hooks(self, count: int) -> None:
        self._expired.inc(count)


@dataclass(frozen=True, slots=True)
class _Figures:
    work: WaitingWork
    backlog: Backlog
    observed: Mapping[ObservedState, int]
    paused: PausedCounts
    credentials: Mapping[str, int]
    unserved: Sequence[UnservedLabel]
    usage: UsageToday


class _Backlog:
    """Metrics of the waiting work in the database, which are the same in every process. They are
    cached and read with a timeout; NaN if the database is not available."""

    def __init__(self, registry: CollectorRegistry, database: Database) -> None:
        self._database = database
        self._reading = asyncio.Lock()
        self._read_at: float | None = None
        self._usage: tuple[float, UsageToday] | None = None

        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"headgate_{name}", meaning, labels, registry=registry)

        self._up = gauge("database_up", "1 if the database responds, otherwise 0")
        self._hooks = gauge("hooks_waiting", "Waiting hooks")
        self._oldest_hook = gauge("oldest_hook_seconds", "Age of the oldest waiting hook")
        self._stuck = gauge("stuck", "Traversals or hooks that are due and not processed", "what")
        self._unpublished = gauge("commits_unpublished", "Commits with unpublished events")
        self._oldest = gauge(
            "oldest_unpublished_seconds", "Age of the oldest commit with unpublished events"
        )
        self._pending = gauge(
            "deliveries_pending", "Pending deliveries to enabled subscriptions", "channel"
        )
        self._held = gauge(
            "deliveries_held", "Pending deliveries to disabled subscriptions", "channel"
        )
        self._oldest_delivery = gauge(
            "oldest_delivery_seconds", "Age of the oldest pending delivery", "channel"
        )
        self._disabled = gauge("subscriptions_disabled", "Disabled subscriptions")
        self._observed = gauge("resource_states", "Resources by observed state", "state")
        self._failing = gauge(
            "observation_failing_endpoints", "Endpoints that are not observed now"
        )
        self._delayed = gauge(
            "observation_delayed_resources", "Resources that wait for a budget of requests"
        )
        self._credentials = gauge(
            "observation_credentials", "Observation credentials of projects", "state"
        )
        self._unserved = gauge(
            "unserved_nodes", "Due nodes whose label no running process has", "label"
        )
        self._repairs = gauge("usage_repairs", "Repairs of drift that ended today, in UTC")
        self._hook_seconds = gauge(
            "usage_hook_seconds", "Time for which the hooks waited that ended today, in UTC"
        )
        self._resource_hours = gauge("usage_resource_hours", "Hours of resources today, in UTC")

    async def refresh(self) -> None:
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if self._read_at is not None and now - self._read_at < FRESH:
                return
            seen = await self._read_backlog()
            self._read_at = asyncio.get_running_loop().time()
        self._show(seen)

    async def _read_backlog(self) -> _Figures | None:
        try:
            async with self._database.connection() as conn:
                return _Figures(
                    await read_waiting_work(conn, PATIENCE),
                    await read_backlog(conn, PATIENCE),
                    await count_observed_states(conn),
                    await count_paused(conn),
                    await count_states(conn),
                    await read_unserved_labels(conn),
                    await self._read_usage(conn),
                )
        except Exception as error:
            log.warning("metrics.unavailable", reason=str(error))
            return None

    async def _read_usage(self, conn: Connection) -> UsageToday:
        now = asyncio.get_running_loop().time()
        if self._usage is None or now - self._usage[0] >= USAGE_FRESH:
            self._usage = now, await read_today(conn, OBSERVER)
        return self._usage[1]

    def _show(self, seen: _Figures | None) -> None:
        self._up.set(seen is not None)
        for gauge in (
            self._stuck, self._pending, self._held, self._oldest_delivery, self._observed,
            self._unserved, self._credentials,
        ):  # fmt: skip
            gauge.clear()
        if seen is None:
            for gauge in (
                self._hooks, self._oldest_hook, self._unpublished, self._oldest, self._disabled,
                self._failing, self._delayed, self._repairs, self._hook_seconds,
                self._resource_hours,
            ):  # fmt: skip
                gauge.set(NAN)
            return
        self._hooks.set(seen.work.hooks_waiting)
        self._oldest_hook.set(seen.work.oldest_hook or 0)
        self._unpublished.set(seen.backlog.unpublished)
        self._oldest.set(seen.backlog.oldest_unpublished or 0)
        self._disabled.set(seen.backlog.disabled)
        self._failing.set(seen.paused.endpoints)
        self._delayed.set(seen.paused.resources)
        self._repairs.set(seen.usage.repairs)
        self._hook_seconds.set(seen.usage.hook_seconds)
        self._resource_hours.set(seen.usage.resource_hours)
        for what in ("unclaimed", "expired_leases", "unended", "hooks_overdue"):
            self._stuck.labels(what).set(getattr(seen.work, what))
        for one in seen.unserved:
            self._unserved.labels(one.label).set(one.nodes)
        for state, count in seen.credentials.items():
            self._credentials.labels(state).set(count)
        for state, count in seen.observed.items():
            self._observed.labels(state).set(count)
        for channel, pending in seen.backlog.pending.items():
            self._pending.labels(channel).set(pending.count - pending.disabled)
            self._held.labels(channel).set(pending.disabled)
            self._oldest_delivery.labels(channel).set(pending.oldest)
