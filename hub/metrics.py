"""What this process counts and measures, for Prometheus; docs/reference/metrics.md lists it.

No label takes its values from users: no project, no name, no path. Types are those that are
installed, routes are templates, methods those of HTTP.
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
from channels.stream.feed import Feed
from engine.loops import wait_at_most
from engine.store.backlog import Work, work
from engine.store.database import Database
from engine.work.measures import Measures

log: FilteringBoundLogger = structlog.get_logger()

CONTENT_TYPE = "text/plain"
#: Methods that are told apart; others are ``other``.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
#: Seconds: how old what was read from the database may be; how often the loop is looked at.
FRESH, TICK = 5.0, 1.0
#: How long due work may wait before it counts as stuck.
PATIENCE = timedelta(minutes=1)
#: Upper bounds, in seconds, of what is quick, and of what may take its time.
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

    def __init__(self, database: Database, feed: Feed) -> None:
        self.registry = registry = CollectorRegistry()
        self._backlog = _Backlog(registry, database)
        route, of_type = ("route", "method"), ("type", "operation")
        self._requests = Counter(
            "headgate_requests", "Requests answered", (*route, "status"), registry=registry
        )
        self._request_seconds = Histogram(
            "headgate_request_seconds", "Until the answer", route, registry=registry, buckets=QUICK
        )
        self._nodes = Counter(
            "headgate_nodes", "Nodes that ended", ("operation", "state"), registry=registry
        )
        self._operations = Counter(
            "headgate_operations", "Calls of types", (*of_type, "outcome"), registry=registry
        )
        self._operation_seconds = Histogram(
            "headgate_operation_seconds", "A call of a type", of_type, registry=registry,
            buckets=SLOW,
        )  # fmt: skip
        self._restarts = Counter(
            "headgate_operations_restarted", "Operations called again after their process ended",
            of_type, registry=registry,
        )  # fmt: skip
        # Told for each node: to find a child by its labels takes longer than to count.
        self._operation = cache(self._operations.labels)
        self._operation_time = cache(self._operation_seconds.labels)
        self._node = cache(self._nodes.labels)
        self._claim_seconds = Histogram(
            "headgate_claim_seconds", "From a claim to its operation", registry=registry,
            buckets=QUICK,
        )  # fmt: skip
        self._opened = Counter(
            "headgate_hooks_opened", "Hooks opened", ("point", "mode"), registry=registry
        )
        self._answers = Counter(
            "headgate_answers", "Answers taken", ("door", "decision"), registry=registry
        )
        self._ignored = Counter(
            "headgate_amqp_answers_ignored", "Answers over AMQP that do not count", ("reason",),
            registry=registry,
        )  # fmt: skip
        self._expired = Counter(
            "headgate_hooks_expired", "Hooks that expired without an answer", registry=registry
        )
        self._deliveries = Counter(
            "headgate_deliveries", "Attempts", ("channel", "outcome"), registry=registry
        )
        self._delivery_seconds = Histogram(
            "headgate_delivery_seconds", "An attempt", ("channel",), registry=registry,
            buckets=QUICK,
        )  # fmt: skip
        self._purged = Counter("headgate_purged", "Rows purged", ("kind",), registry=registry)
        self._lag = Histogram(
            "headgate_loop_lag_seconds", "How late the loop was", registry=registry, buckets=QUICK
        )
        self._internal_errors = Counter(
            "headgate_internal_errors", "Internal errors of units of work and loops",
            ("loop",), registry=registry,
        )  # fmt: skip
        self._clock_jumps = Counter(
            "headgate_database_clock_jumps", "Times that the database's clock was set",
            ("direction",), registry=registry,
        )  # fmt: skip
        gauge = {
            "headgate_streams": ("Readers of event streams", lambda: feed.readers),
            "headgate_pool_connections": ("To the database", database.pool.get_size),
            "headgate_pool_in_use": (
                "Connections that are borrowed",
                lambda: database.pool.get_size() - database.pool.get_idle_size(),
            ),
            "headgate_pool_most": ("Connections at most", database.pool.get_max_size),
        }
        for name, (meaning, read) in gauge.items():
            Gauge(name, meaning, registry=registry).set_function(read)
        Gauge("headgate_info", "Always 1", ("version",), registry=registry).labels(
            version("headgate")
        ).set(1)

    async def written(self) -> bytes:
        """Everything, in the text form of Prometheus. The database is asked seldom."""
        await self._backlog.refresh()
        return generate_latest(self.registry)

    async def watch_loop(self, stop: asyncio.Event) -> None:
        """Measure how late the event loop is, again and again."""
        loop = asyncio.get_running_loop()
        while not stop.is_set():
            due = loop.time() + TICK
            await wait_at_most(stop, TICK)
            self._lag.observe(max(0.0, loop.time() - due))

    def requested(self, route: str, method: str, status: int, seconds: float | None) -> None:
        """route: the template. seconds: None: it took as long as somebody listened."""
        said = method if method in METHODS else OTHER
        self._requests.labels(route, said, str(status)).inc()
        if seconds is not None:
            self._request_seconds.labels(route, said).observe(seconds)

    def tried(self, channel: str, state: DeliveryState, seconds: float) -> None:
        self._deliveries.labels(channel, OUTCOME[state]).inc()
        self._delivery_seconds.labels(channel).observe(seconds)

    def internal_error(self, loop: str) -> None:
        self._internal_errors.labels(loop).inc()

    def clock_jumped(self, seconds: float) -> None:
        self._clock_jumps.labels("back" if seconds < 0 else "forward").inc()

    def purged(self, kind: str, count: int) -> None:
        self._purged.labels(kind).inc(count)

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

    def hook_answered(self, door: str, decision: str) -> None:
        self._answers.labels(door, decision).inc()

    def answer_ignored(self, reason: IgnoredReason) -> None:
        self._ignored.labels(reason).inc()

    def hooks_expired(self, count: int) -> None:
        self._expired.inc(count)


@dataclass(frozen=True, slots=True)
class _Seen:
    work: Work
    read_backlog: Backlog


class _Backlog:
    """What waits, from the database: the same whichever process is asked. Read at most once in a
    while, in bounded time; what cannot be read is no number."""

    def __init__(self, registry: CollectorRegistry, database: Database) -> None:
        self._database = database
        self._reading = asyncio.Lock()
        self._read_at: float | None = None

        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"headgate_{name}", meaning, labels, registry=registry)

        self._up = gauge("database_up", "1: the database answers")
        self._hooks = gauge("hooks_waiting", "Hooks that wait")
        self._oldest_hook = gauge("oldest_hook_seconds", "How long the first of them has waited")
        self._stuck = gauge("stuck", "Traversals or hooks that are due and not processed", "what")
        self._unpublished = gauge("commits_unpublished", "Commits whose events are not published")
        self._oldest = gauge("oldest_unpublished_seconds", "The first of them")
        self._pending = gauge("deliveries_pending", "To enabled subscriptions", "channel")
        self._held = gauge("deliveries_held", "To disabled subscriptions", "channel")
        self._oldest_delivery = gauge("oldest_delivery_seconds", "Of all of those", "channel")
        self._disabled = gauge("subscriptions_disabled", "Subscriptions that are disabled")

    async def refresh(self) -> None:
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if self._read_at is not None and now - self._read_at < FRESH:
                return
            seen = await self._look()
            self._read_at = asyncio.get_running_loop().time()
        self._show(seen)

    async def _look(self) -> _Seen | None:
        try:
            async with self._database.connection() as conn:
                return _Seen(await work(conn, PATIENCE), await read_backlog(conn, PATIENCE))
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
        self._unpublished.set(seen.read_backlog.unpublished)
        self._oldest.set(seen.read_backlog.oldest_unpublished or 0)
        self._disabled.set(seen.read_backlog.disabled)
        for what in ("unclaimed", "expired_leases", "unended", "hooks_overdue"):
            self._stuck.labels(what).set(getattr(seen.work, what))
        for channel, pending in seen.read_backlog.pending.items():
            self._pending.labels(channel).set(pending.many - pending.held)
            self._held.labels(channel).set(pending.held)
            self._oldest_delivery.labels(channel).set(pending.oldest)
