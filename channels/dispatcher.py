"""The loops that carry events out: publish, deliver in two lanes, settle.

Any number of dispatchers may work on one database: the store says who does what. Put together and
run by the program; stopped by an event, after which what is under way has a bounded time to end.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from channels.attempt import AnswerHook, Attempts, Tried
from channels.contract import Channel, Delivered, Endpoint, Failed, Letter
from channels.envelope import trial_event
from channels.lane import Lane, LaneSettings
from channels.retry import RetryPolicy, horizon
from channels.settler import Settler
from channels.store import subscriptions
from channels.store.overfull import disable_overfull
from channels.store.publish import publish
from channels.store.records import SubscriptionRecord
from channels.store.unheard import sweep_unheard
from channels.waiting import wait_at_most
from engine.errors import NotFound, Unavailable
from engine.store.database import Database
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
        token_for: Callable[[UUID], str],
        public_url: str,
        answer: AnswerHook,
        random: Callable[[], float],
        tried: Tried = lambda *_: None,
        tracer: Tracer | None = None,
    ) -> None:
        """answer: decides a hook for a receiver. random: gives 0 <= number < 1. tried: for the
        metrics."""
        self._database = database
        self._settings = settings
        self._attempts = Attempts(
            channels,
            settings.policy,
            token_for=token_for,
            public_url=public_url,
            answer=answer,
            random=random,
            tried=tried,
            tracer=tracer or Tracer(),
        )
        self._publish = asyncio.Event()
        self._disabled = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop. Begins anew after whatever goes wrong."""
        while not stop.is_set():
            try:
                await self._work(stop)
            except* Unavailable as errors:
                log.warning("dispatcher.unavailable", reason=str(errors.exceptions[0]))
            except* Exception:
                log.exception("dispatcher.broken")
            else:
                return
            await wait_at_most(stop, self._settings.poll)

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
        letter = Letter(str(event_id), document["type"], document, now)
        endpoint = Endpoint(subscription.id, subscription.target, secrets)
        return await self._attempts.send(subscription.channel, letter, endpoint)

    async def _work(self, stop: asyncio.Event) -> None:
        settings = self._settings
        settler = Settler(self._database, disable_after=settings.disable_after)
        lanes = [
            self._lane(settler, True, settings.urgent_capacity, settings.urgent_each),
            self._lane(settler, False, settings.capacity, settings.each),
        ]

        def wake_lanes() -> None:
            for lane in lanes:
                lane.wake.set()

        async with (
            self._database.listen("headgate_outbox", self._publish.set),
            self._database.listen("headgate_delivery", wake_lanes),
            self._database.listen("headgate_disabled", self._disabled.set),
            asyncio.TaskGroup() as group,
        ):
            settling = group.create_task(settler.run())
            publishing = group.create_task(self._publish_all())
            sweeping = group.create_task(self._sweep())
            bounding = group.create_task(self._bound_backlogs())
            driving = [group.create_task(self._drive(lane, stop)) for lane in lanes]
            await stop.wait()
            publishing.cancel()
            sweeping.cancel()
            bounding.cancel()
            wake_lanes()
            await asyncio.wait(driving)
            settling.cancel()

    def _lane(self, settler: Settler, urgent: bool, capacity: int, each: int) -> Lane:
        ours = self._settings
        settings = LaneSettings(
            urgent, capacity, each, ours.poll, ours.lease, ours.behind, ours.rates
        )
        return Lane(self._database, self._attempts, settler, settings)

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

    async def _publish_all(self) -> None:
        """Publish whenever somebody has written to the outbox."""

        def horizon_of(channel: str) -> float:
            return horizon(self._settings.policy(channel))

        while True:
            self._publish.clear()
            try:
                done = await publish(
                    self._database, horizon=horizon_of, limit=self._settings.publish_rows
                )
            except Unavailable as error:
                log.warning("publish.unavailable", reason=str(error))
                done = None
            if done is None or done.rows < self._settings.publish_rows:
                await wait_at_most(self._publish, self._settings.poll)

    async def _bound_backlogs(self) -> None:
        """What nobody takes is not piled up for ever."""
        while self._settings.backlog:
            try:
                await disable_overfull(self._database, self._settings.backlog)
            except Unavailable as error:
                log.warning("backlog.unavailable", reason=str(error))
            await asyncio.sleep(self._settings.poll)

    async def _sweep(self) -> None:
        """Look for hooks nobody will hear of, now and whenever a subscription is disabled."""
        while True:
            self._disabled.clear()
            try:
                if await sweep_unheard(self._database):
                    continue
            except Unavailable as error:
                log.warning("sweep.unavailable", reason=str(error))
                await asyncio.sleep(self._settings.poll)
                continue
            await self._disabled.wait()
