"""Prometheus metrics of a process; docs/reference/metrics.md lists them.

Labels have no values from users, such as projects, names and paths: types are installed ones,
routes are templates, methods those of HTTP.
"""

import asyncio
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
from engine.loops import wait_at_most
from engine.store.database import Database
from engine.store.monitoring import WaitingWork, read_waiting_work
from engine.work.endpoint_back_off import EndpointBackOff
from engine.work.worker_metrics import Measures
from hub.metrics_exchange import MetricsExchange

log: FilteringBoundLogger = structlog.get_logger()

CONTENT_TYPE = "text/plain"
#: Methods with their own label; the others are ``other``.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
#: Seconds for which values from the database are cached; seconds between measurements of the loop.
FRESH, TICK = 5.0, 1.0
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


class Metrics(Measures):
    """One registry for each program, so that several can live in one process."""

    def __init__(
        self, database: Database, feed: Feed, exchange: MetricsExchange | None = None
    ) -> None:
        """exchange: with the other processes of the same server."""
        self._exchange = exchange or MetricsExchange()
        self.registry = registry = CollectorRegistry()
        self._shared = CollectorRegistry()
        self._backlog = _Backlog(self._shared, database)
        route, of_type = ("route", "method"), ("type", "operation")
        self._requests = Counter(
            "headgate_requests", "HTTP requests answered", (*route, "status"), registry=registry
        )
        self._request_seconds = Histogram(
            "headgate_request_seconds", "Duration of a request", route, registry=registry,
            buckets=QUICK,
        )  # fmt: skip
        self._nodes = Counter(
            "headgate_nodes", "Nodes that ended", ("operation", "state"), registry=registry
        )
        self._operations = Counter(
            "headgate_operations", "Calls of operations", (*of_type, "outcome"), registry=registry
        )
        self._operation_seconds = Histogram(
            "headgate_operation_seconds", "Duration of a call of an operation", of_type,
            registry=registry, buckets=SLOW,
        )  # fmt: skip
        self._restarts = Counter(
            "headgate_operations_restarted", "Operations called again after their process ended",
            of_type, registry=registry,
        )  # fmt: skip
        # Cached, because finding a child by its labels takes longer than counting.
        self._operation = cache(self._operations.labels)
        self._operation_time = cache(self._operation_seconds.labels)
        self._node = cache(self._nodes.labels)
        self._claim_seconds = Histogram(
            "headgate_claim_seconds", "Time from the claim of a node to the call of its operation",
            registry=registry, buckets=QUICK,
        )  # fmt: skip
        self._opened = Counter(
            "headgate_hooks_opened", "Hooks opened", ("point", "mode"), registry=registry
        )
        self._answers = Counter(
            "headgate_answers", "Accepted answers to hooks", ("channel", "decision"),
            registry=registry,
        )  # fmt: skip
        self._ignored = Counter(
            "headgate_amqp_answers_ignored", "Answers over AMQP that do not count", ("reason",),
            registry=registry,
        )  # fmt: skip
        self._expired = Counter(
            "headgate_hooks_expired", "Hooks that expired without an answer", registry=registry
        )
        self._deliveries = Counter(
            "headgate_deliveries", "Delivery attempts", ("channel", "outcome"), registry=registry
        )
        self._delivery_seconds = Histogram(
            "headgate_delivery_seconds", "Duration of a delivery attempt", ("channel",),
            registry=registry, buckets=QUICK,
        )  # fmt: skip
        self._purged = Counter(
            "headgate_purged", "Rows deleted by retention", ("kind",), registry=registry
        )
        self._observed = Counter(
            "headgate_observed_resources", "Resources observed", ("state",), registry=registry
        )
        self._observation_calls = Counter(
            "headgate_observation_calls", "Calls of types to observe resources", ("outcome",),
            registry=registry,
        )  # fmt: skip
        self._lag = Histogram(
            "headgate_loop_lag_seconds", "Delay of the event loop", registry=registry,
            buckets=QUICK,
        )  # fmt: skip
        self._internal_errors = Counter(
            "headgate_internal_errors", "Internal errors of units of work and loops",
            ("loop",), registry=registry,
        )  # fmt: skip
        self._clock_jumps = Counter(
            "headgate_database_clock_jumps", "Times that the database's clock was set",
            ("direction",), registry=registry,
        )  # fmt: skip
        gauge = {
            "headgate_streams": ("Open event streams", lambda: feed.readers),
            "headgate_pool_connections": ("Open database connections", database.pool.get_size),
            "headgate_pool_in_use": (
                "Database connections in use",
                lambda: database.in_use,
            ),
            "headgate_pool_most": (
                "Maximum number of database connections",
                database.pool.get_max_size,
            ),
        }
        for name, (meaning, read) in gauge.items():
            Gauge(name, meaning, registry=registry).set_function(read)
        Gauge("headgate_info", "Always 1", ("version",), registry=registry).labels(
            version("headgate")
        ).set(1)

    async def render(self) -> bytes:
        """All metrics in the text format of Prometheus, those of the other processes of the server
        included. Values from the database are cached."""
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

    def requested(self, route: str, method: str, status: int, seconds: float | None) -> None:
        """route: the template. seconds: None for streams."""
        label = method if method in METHODS else OTHER
        self._requests.labels(route, label, str(status)).inc()
        if seconds is not None:
            self._request_seconds.labels(route, label).observe(seconds)

    def tried(self, channel: str, state: DeliveryState, seconds: float) -> None:
        self._deliveries.labels(channel, OUTCOME[state]).inc()
        self._delivery_seconds.labels(channel).observe(seconds)

    def internal_error(self, loop: str) -> None:
        self._internal_errors.labels(loop).inc()

    def clock_jumped(self, seconds: float) -> None:
        self._clock_jumps.labels("back" if seconds < 0 else "forward").inc()

    def purged(self, kind: str, count: int) -> None:
        self._purged.labels(kind).inc(count)

    def watch_endpoints(self, back_off: EndpointBackOff) -> None:
        """Report how many endpoints are not observed because they have failed."""
        Gauge(
            "headgate_observation_failing_endpoints", "Endpoints that are not observed now",
            registry=self.registry,
        ).set_function(lambda: len(back_off))  # fmt: skip

    def observed(self, state: str) -> None:
        self._observed.labels(state).inc()

    def observation_called(self, outcome: str) -> None:
        self._observation_calls.labels(outcome).inc()

    def claimed(self, seconds: float) -> None:
        self._claim_seconds.observe(seconds)

    def operated(self, type_name: str, operation: str, outcome: str, seconds: float) -> None:
        self._operation(type_name, operation, outcome).inc()
        self._operation_time(type_name, operation).observe(seconds)

    def restarted(self, type_name: str, operation: str) -> None:
        self._restarts.labels(type_name, operation).inc()

    def node_ended(self, operation: str, state: str) -> None:
        self._node(operation, state).inc()

    def hook_opened(self, point: str, mode: str) -> None:
        self._opened.labels(point, mode).inc()

    def hook_answered(self, channel: str, decision: str) -> None:
        self._answers.labels(channel, decision).inc()

    def answer_ignored(self, reason: IgnoredReason) -> None:
        self._ignored.labels(reason).inc()

    def hooks_expired(self, count: int) -> None:
        self._expired.inc(count)


@dataclass(frozen=True, slots=True)
class _Seen:
    work: WaitingWork
    backlog: Backlog


class _Backlog:
    """Metrics of the waiting work in the database, which are the same in every process. They are
    cached and read with a timeout; NaN if the database is not available."""

    def __init__(self, registry: CollectorRegistry, database: Database) -> None:
        self._database = database
        self._reading = asyncio.Lock()
        self._read_at: float | None = None

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

    async def refresh(self) -> None:
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if self._read_at is not None and now - self._read_at < FRESH:
                return
            seen = await self._read_backlog()
            self._read_at = asyncio.get_running_loop().time()
        self._show(seen)

    async def _read_backlog(self) -> _Seen | None:
        try:
            async with self._database.connection() as conn:
                return _Seen(
                    await read_waiting_work(conn, PATIENCE), await read_backlog(conn, PATIENCE)
                )
        except Exception as error:
            log.warning("metrics.unavailable", reason=str(error))
            return None

    def _show(self, seen: _Seen | None) -> None:
        self._up.set(seen is not None)
        for gauge in (self._stuck, self._pending, self._held, self._oldest_delivery):
            gauge.clear()
        if seen is None:
            for gauge in (
                self._hooks, self._oldest_hook, self._unpublished, self._oldest, self._disabled
            ):  # fmt: skip
                gauge.set(NAN)
            return
        self._hooks.set(seen.work.hooks_waiting)
        self._oldest_hook.set(seen.work.oldest_hook or 0)
        self._unpublished.set(seen.backlog.unpublished)
        self._oldest.set(seen.backlog.oldest_unpublished or 0)
        self._disabled.set(seen.backlog.disabled)
        for what in ("unclaimed", "expired_leases", "unended", "hooks_overdue"):
            self._stuck.labels(what).set(getattr(seen.work, what))
        for channel, pending in seen.backlog.pending.items():
            self._pending.labels(channel).set(pending.count - pending.disabled)
            self._held.labels(channel).set(pending.disabled)
            self._oldest_delivery.labels(channel).set(pending.oldest)
