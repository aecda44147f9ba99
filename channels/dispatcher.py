"""The loops that carry events out: publish, deliver in two lanes, settle.

Any number of dispatchers may work on one database: the store says who does what. Put together and
run by the program; stopped by an event, after which what is under way has a bounded time to end.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from channels.attempt import AnswerHook, Attempts, TokenFor, Tried
from channels.contract import Channel, Delivered, Endpoint, EventMessage, Failed
from channels.delivery_queue import Lane, LaneSettings
from channels.envelope import trial_event
from channels.ignored_answers import Entitle
from channels.outbox import OutboxPublisher
from channels.result_writer import Settler
from channels.retry import RetryPolicy, horizon
from channels.store import subscriptions
from channels.store.backlog_limit import disable_over_limit
from channels.store.records import Origin, SubscriptionRecord
from channels.store.undeliverable import find_undeliverable, mark_undeliverable
from engine.errors import NotFound
from engine.loops import Fault, Guard, Supervisor
from engine.store.database import Database
from engine.store.hook_deadlines import HookKey
from engine.tracing import Tracer

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DispatcherSettings:
    """Times in seconds. retry: of channels that have no policy of their own in `retries`.

    capacity, each: attempts at once, in all and for one subscription. behind: how many deliveries
    are claimed with one that is first in order. rates: by channel, attempts a second for one
    subscription from this dispatcher; not said, or 0: as fast as it goes.

    poll: how long a lost notification may cost. drain: how long what is under way may take when we
    stop. lease: how long after a dispatcher's death what it was trying is tried again.
    disable_after: deliveries given up in a row until a subscription is disabled. backlog: how many
    may pile up until it is; 0: any number; looked at every `poll`.
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
        channels: Mapping[str, Channel],
        *,
        settings: DispatcherSettings,
        token_for: TokenFor,
        entitle: Entitle,
        public_url: str,
        answer: AnswerHook,
        random: Callable[[], float],
        tried: Tried = lambda *_: None,
        tracer: Tracer | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        """entitle: looks up the rights of a subscription's owner. answer: decides a hook for a
        receiver. random: gives 0 <= number < 1. tried: for the metrics."""
        self._database = database
        self._settings = settings
        self._attempts = Attempts(
            channels,
            settings.policy,
            token_for=token_for,
            entitle=entitle,
            public_url=public_url,
            answer=answer,
            random=random,
            tried=tried,
            tracer=tracer or Tracer(),
            supervisor=supervisor,
        )
        self._supervisor = supervisor or Supervisor()
        self._disabled = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop. Begins anew after whatever goes wrong."""

        async def work() -> None:
            await self._work(stop)

        await self._guard("dispatcher").run(work, stop)

    def _guard(self, name: str) -> Guard:
        return self._supervisor.guard(name, longest=self._settings.poll)

    async def test_fire(
        self, subscription: SubscriptionRecord, event_id: UUID
    ) -> Delivered | Failed:
        """Send an event that means nothing, once. Raises NotFound when the subscription is gone."""
        async with self._database.connection() as conn:
            found = await subscriptions.secrets_now(conn, subscription.id)
        if found is None:
            raise NotFound("the subscription is gone", code="SubscriptionNotFound")
        secrets, now = found
        document = trial_event(
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
        settler = Settler(
            self._database, disable_after=settings.disable_after, supervisor=supervisor
        )
        publisher = OutboxPublisher(
            self._database,
            horizon=lambda channel: horizon(settings.policy(channel)),
            rows=settings.publish_rows,
            poll=settings.poll,
            supervisor=supervisor,
        )
        lanes = [
            self._lane(settler, True, settings.urgent_capacity, settings.urgent_each),
            self._lane(settler, False, settings.capacity, settings.each),
        ]

        def wake_lanes() -> None:
            for lane in lanes:
                lane.wake.set()

        async with (
            self._database.listen("headgate_outbox", publisher.wake.set),
            self._database.listen("headgate_delivery", wake_lanes),
            self._database.listen("headgate_disabled", self._disabled.set),
            asyncio.TaskGroup() as group,
        ):
            settling = group.create_task(settler.run())
            others = [
                group.create_task(one)
                for one in (
                    publisher.run(stop),
                    self._guard("sweep").run(self._sweep, stop),
                    self._guard("backlog").run(self._bound_backlogs, stop),
                )
            ]
            driving = [group.create_task(self._drive(lane, stop)) for lane in lanes]
            await stop.wait()
            for task in others:
                task.cancel()
            wake_lanes()
            await asyncio.wait(driving)
            settling.cancel()

    def _lane(self, settler: Settler, urgent: bool, capacity: int, each: int) -> Lane:
        ours = self._settings
        settings = LaneSettings(
            urgent, capacity, each, ours.poll, ours.lease, ours.behind, ours.rates
        )
        return Lane(self._database, self._attempts, settler, settings, self._supervisor)

    async def _drive(self, lane: Lane, stop: asyncio.Event) -> None:
        """Run a lane, and cut it off when it takes too long to end."""
        task = asyncio.create_task(lane.run(stop))
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
            log.warning("dispatcher.cut_off", drain=self._settings.drain)

    async def _bound_backlogs(self) -> None:
        """What nobody takes is not piled up for ever."""
        if self._settings.backlog:
            await disable_over_limit(self._database, self._settings.backlog)
        await asyncio.sleep(self._settings.poll)

    async def _sweep(self) -> None:
        """Look for hooks nobody will hear of, now and whenever a subscription is disabled."""
        self._disabled.clear()
        found = await find_undeliverable(self._database)

        async def mark(hooks: Sequence[HookKey]) -> None:
            await mark_undeliverable(self._database, hooks)

        await self._guard("sweep").split(found, mark, self._leave_undeliverable, _named)
        if not found:
            await self._disabled.wait()

    async def _leave_undeliverable(self, key: HookKey, _: Fault) -> None:
        await mark_undeliverable(self._database, [key], record=False)


def _named(key: HookKey) -> dict[str, str]:
    return {"stack_id": str(key[0]), "hook": str(key[1])}
