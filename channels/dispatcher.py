"""The loops that deliver events: the outbox publisher, two delivery queues and the result writer.

Any number of dispatchers can use one database, which coordinates them. hub/program/delivery.py
creates the dispatcher, and hub/program/loops.py runs it. After a stop,
active attempts have a limited time to end.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from channels.attempt import Attempts
from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.delivery_queue import DeliveryQueue, DeliveryQueueSettings
from channels.envelope import subscription_test_event
from channels.result_writer import ResultWriter
from channels.retry import RetryPolicy, horizon
from channels.store import secret_rotation
from channels.store.backlog import disable_over_limit
from channels.store.publish import Horizon, PublishResult, publish, skip_next
from channels.store.records import Origin, SubscriptionRecord
from channels.store.undeliverable import find_undeliverable, mark_undeliverable
from engine.bounded_wait import wait_at_most
from engine.loop_guard import BatchSize, Fault, Guard, Supervisor
from engine.missing_objects import no_subscription
from engine.store.database import Database
from engine.store.hooks.deadlines import HookKey

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds between two publications. Events that are committed meanwhile are published together.
GATHER = 0.01


class OutboxPublisher:
    """rows: outbox rows published in one transaction at most. poll: seconds.

    An event that follows a quiet time is published at once, the events of a busy system in batches.
    A commit that cannot be published is skipped: streams contain its events, subscriptions do not.
    """

    def __init__(
        self,
        database: Database,
        *,
        horizon: Horizon,
        rows: int,
        poll: float,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._horizon = horizon
        self._size = BatchSize(rows)
        self._poll = poll
        self._guard = (supervisor or Supervisor()).guard("publish", max_pause=poll)
        self._subscribed = False  # at the last publication
        self.wake = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Until cancelled, or `stop` and `wake` are set."""
        await self._guard.run(self._turn, stop)

    async def _turn(self) -> None:
        self.wake.clear()
        rows = self._size.now
        try:
            done = await self._publish(rows)
        except Exception as error:
            if self._size.shrink(error):
                self._guard.report(error, **await skip_next(self._database))
            return
        self._size.grow()
        if done is not None and done.rows:
            self._subscribed = done.subscribed
        if done is None or done.rows < rows:
            await _gather()
            await wait_at_most(self.wake, self._poll)

    async def _publish(self, rows: int) -> PublishResult | None:
        return await publish(
            self._database,
            horizon=self._horizon,
            limit=rows,
            report=self._guard.report,
            quick=not self._subscribed,
        )


async def _gather() -> None:
    await asyncio.sleep(GATHER)


@dataclass(frozen=True, slots=True)
class DispatcherSettings:
    """Times in seconds. retry: the policy of channels without an entry in `retries`.

    capacity, each: concurrent attempts, in all and for one subscription. behind: the number of
    ordered deliveries that are claimed with the first one. rates: by channel, attempts per second
    for one subscription from this dispatcher; missing or 0: unlimited.

    poll: the longest delay if a database notification is lost. drain: how long active attempts may
    take after a stop. lease: how long after the end of a dispatcher its claimed deliveries are
    claimed again. disable_after: consecutive dead deliveries that disable a subscription. backlog:
    pending deliveries that disable a subscription, checked every `poll`; 0: unlimited.
    """

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    retries: Mapping[str, RetryPolicy] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    capacity: int = 64
    each: int = 20
    behind: int = 24
    urgent_capacity: int = 128
    urgent_each: int = 8
    publish_rows: int = 500
    poll: float = 5.0
    drain: float = 10.0
    lease: float = 10.0
    disable_after: int = 20
    backlog: int = 0

    def policy(self, channel: str) -> RetryPolicy:
        return self.retries.get(channel, self.retry)


class Dispatcher:
    def __init__(
        self,
        database: Database,
        attempts: Attempts,
        *,
        settings: DispatcherSettings,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._attempts = attempts
        self._supervisor = supervisor or Supervisor()
        self._disabled = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; restarts after errors."""

        async def work() -> None:
            await self._work(stop)

        await self._guard("dispatcher").run(work, stop)

    def _guard(self, name: str) -> Guard:
        return self._supervisor.guard(name, max_pause=self._settings.poll)

    async def test_fire(
        self, subscription: SubscriptionRecord, event_id: UUID
    ) -> Delivered | Failed:
        """Send a test event in one attempt. Raises NotFound if the subscription does not exist."""
        async with self._database.connection() as conn:
            found = await secret_rotation.secrets_now(conn, subscription.id)
        if found is None:
            raise no_subscription(subscription.id)
        secrets, now = found
        document = subscription_test_event(
            event_id=event_id,
            time=now,
            project=subscription.project,
            subscription_id=subscription.id,
            channel=subscription.channel,
            target=subscription.target,
        )
        message = EventMessage(str(event_id), document["type"], document, now)
        endpoint = Endpoint(
            subscription.id,
            subscription.target,
            secrets,
            subscription.origin == Origin.CONFIGURATION,
        )
        return await self._attempts.send(subscription.channel, message, endpoint)

    async def _work(self, stop: asyncio.Event) -> None:
        settings, supervisor = self._settings, self._supervisor
        writer = ResultWriter(
            self._database, disable_after=settings.disable_after, supervisor=supervisor
        )
        publisher = OutboxPublisher(
            self._database,
            horizon=lambda channel: horizon(settings.policy(channel)),
            rows=settings.publish_rows,
            poll=settings.poll,
            supervisor=supervisor,
        )
        queues = [
            self._queue(writer, True, settings.urgent_capacity, settings.urgent_each),
            self._queue(writer, False, settings.capacity, settings.each),
        ]

        def wake_queues() -> None:
            for queue in queues:
                queue.wake.set()

        async with (
            self._database.listen("headgate_outbox", publisher.wake.set),
            self._database.listen("headgate_delivery", wake_queues),
            self._database.listen("headgate_disabled", self._disabled.set),
            asyncio.TaskGroup() as group,
        ):
            writing = group.create_task(writer.run())
            others = [
                group.create_task(one)
                for one in (
                    publisher.run(stop),
                    self._guard("undeliverable").run(self._mark_undeliverable, stop),
                    self._guard("backlog").run(self._bound_backlogs, stop),
                )
            ]
            draining = [group.create_task(self._run_queue(queue, stop)) for queue in queues]
            await stop.wait()
            for task in others:
                task.cancel()
            wake_queues()
            await asyncio.wait(draining)
            writing.cancel()

    def _queue(self, writer: ResultWriter, urgent: bool, capacity: int, each: int) -> DeliveryQueue:
        ours = self._settings
        settings = DeliveryQueueSettings(
            urgent, capacity, each, ours.poll, ours.lease, ours.behind, ours.rates
        )
        return DeliveryQueue(self._database, self._attempts, writer, settings, self._supervisor)

    async def _run_queue(self, queue: DeliveryQueue, stop: asyncio.Event) -> None:
        """Run a queue; after a stop, cancel it when `drain` is over."""
        task = asyncio.create_task(queue.run(stop))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((task,), timeout=self._settings.drain)
        finally:
            for one in (task, stopping):
                one.cancel()
            await asyncio.wait((task, stopping))
        if not task.cancelled():
            task.result()
        else:
            log.warning("dispatcher.drain_exceeded", drain=self._settings.drain)

    async def _bound_backlogs(self) -> None:
        """Disable subscriptions with too many pending deliveries."""
        if self._settings.backlog:
            await disable_over_limit(self._database, self._settings.backlog)
        await asyncio.sleep(self._settings.poll)

    async def _mark_undeliverable(self) -> None:
        """Find undeliverable hooks, at the start and whenever a subscription is disabled."""
        self._disabled.clear()
        found = await find_undeliverable(self._database)

        async def mark(hooks: Sequence[HookKey]) -> None:
            await mark_undeliverable(self._database, hooks)

        await self._guard("undeliverable").split(
            found, mark, self._leave_undeliverable, _log_fields
        )
        if not found:
            await self._disabled.wait()

    async def _leave_undeliverable(self, key: HookKey, _: Fault) -> None:
        await mark_undeliverable(self._database, [key], record=False)


def _log_fields(key: HookKey) -> dict[str, str]:
    return {"stack_id": str(key[0]), "hook": str(key[1])}
