"""A delivery queue: claims due deliveries and attempts them, within a capacity for all and for each
subscription.

Ordered deliveries that follow the first one of their stack are claimed with it and attempted in
turn, so that a stack with many events does not wait for the database after each.

A dispatcher has two queues with their own capacity: an urgent one for hook notifications (and the
ordered deliveries before them), and one for all other deliveries.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from channels.attempt import Attempts, unattempted_result
from channels.result_writer import ResultWriter
from channels.store.claim import Capacity, claim_keys, read_claimed, renew, runs, seconds_to_next
from channels.store.delivery_results import fail_delivery
from channels.store.digests import gather
from channels.store.records import DeliveryResult, DeliveryState, Key, PendingDelivery
from engine.bounded_wait import wait_at_most
from engine.errors import Unavailable
from engine.loop_guard import Fault, Supervisor
from engine.rate_limiter import RateLimiter
from engine.store.database import Database

#: Minimum seconds between two polls, unless the queue is woken.
MIN_PAUSE = 0.02

#: Seconds after which the rest of a run is released: its hooks and signature times become outdated.
RUN_FOR = 1.0

#: Seconds for which the results of a run are collected, to write them together.
COLLECT_FOR = 0.05


@dataclass(frozen=True, slots=True)
class DeliveryQueueSettings:
    """capacity: concurrent attempts; each: of one subscription. poll, lease: seconds.

    The lease is renewed during an attempt, so it may be shorter than an attempt. behind: the number
    of ordered deliveries that are claimed with the first one. rates: attempts per second for one
    subscription, by channel; 0: unlimited.
    """

    urgent: bool
    capacity: int
    each: int
    poll: float
    lease: float
    behind: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    """Deliveries that are attempted in turn, or a digest: together. sending: False once only
    results remain to write."""

    deliveries: Sequence[PendingDelivery]
    digest: bool = False
    sending: bool = True


class DeliveryQueue:
    def __init__(
        self,
        database: Database,
        attempts: Attempts,
        writer: ResultWriter,
        settings: DeliveryQueueSettings,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._attempts = attempts
        self._writer = writer
        self._settings = settings
        self._active: dict[asyncio.Task[None], _Run] = {}
        self._limiters: dict[str, RateLimiter[UUID]] = {
            channel: RateLimiter(rate) for channel, rate in settings.rates.items() if rate > 0
        }
        self._stopping = False
        self._guard = (supervisor or Supervisor()).guard("delivery_queue", max_pause=settings.poll)
        self.wake = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Claim until `stop` is set; then return when all active runs have ended.

        The caller that sets `stop` also sets `wake`, and limits the duration. A delivery whose
        attempt is cancelled is attempted again when its lease expires.
        """
        async with asyncio.TaskGroup() as renewing:
            keeper = renewing.create_task(self._guard.run(self._renew, asyncio.Event()))
            async with asyncio.TaskGroup() as group:

                async def turn() -> None:
                    self.wake.clear()
                    await wait_at_most(self.wake, await self._fill(group))

                await self._guard.run(turn, stop)
                self._stopping = True
            keeper.cancel()

    async def _renew(self) -> None:
        """Renew the claims of active runs, so that no other process claims their deliveries."""
        lease = self._settings.lease
        await asyncio.sleep(lease / 3)
        if keys := [one.key for run in self._active.values() for one in run.deliveries]:
            async with self._database.connection() as conn:
                await renew(conn, keys, lease=lease)

    async def _fill(self, group: asyncio.TaskGroup) -> float:
        """Start attempts up to the capacity; return the seconds until the next poll."""
        while (capacity := self._capacity()).free > 0:
            async with self._database.connection() as conn:
                urgent, lease = self._settings.urgent, self._settings.lease
                keys = await claim_keys(conn, urgent=urgent, capacity=capacity, lease=lease)
                if not keys:
                    seconds = await seconds_to_next(conn, urgent=urgent, capacity=self._capacity())
                    return self._pause(seconds)
            await self._start(group, keys)
        return self._settings.poll

    async def _start(self, group: asyncio.TaskGroup, keys: Sequence[Key]) -> None:
        """Attempt claimed deliveries. One that cannot be read fails alone."""
        claimed = await self._read(keys)
        gathered: dict[UUID, list[Key]] = {}
        for one in claimed:
            if one.in_digest:
                gathered.setdefault(one.key.subscription_id, []).append(one.key)
        for run in map(_Run, runs([one for one in claimed if not one.in_digest])):
            self._begin(group, run)
        for subscription_id, own in gathered.items():
            lease = self._settings.lease
            taken = await gather(self._database, subscription_id, own, lease=lease)
            if digest := await self._read(taken):
                self._begin(group, _Run(digest, digest=len(digest) > 1))

    async def _read(self, keys: Sequence[Key]) -> list[PendingDelivery]:
        """One that cannot be read fails alone."""
        claimed: list[PendingDelivery] = []

        async def read(part: Sequence[Key]) -> None:
            async with self._database.connection() as conn:
                claimed.extend(await read_claimed(conn, part))

        await self._guard.split(keys, read, self._fail, _log_fields)
        return claimed

    def _begin(self, group: asyncio.TaskGroup, run: _Run) -> None:
        now = asyncio.get_running_loop().time()
        for delivery in run.deliveries[:1] if run.digest else run.deliveries:
            if limiter := self._limiters.get(delivery.channel):
                limiter.charge(delivery.key.subscription_id, now)
        self._active[group.create_task(self._process(run))] = run

    async def _fail(self, key: Key, fault: Fault) -> None:
        await fail_delivery(self._database, key, str(fault))

    def _pause(self, seconds: float | None) -> float:
        """Seconds until the next poll. seconds: until the next delivery is due; rate limiters also
        count, because their subscriptions were left out."""
        now = asyncio.get_running_loop().time()
        limited = (limiter.seconds_until_available(now) for limiter in self._limiters.values())
        waits = [one for one in (seconds, *limited) if one is not None]
        return min([max(one, MIN_PAUSE) for one in waits] + [self._settings.poll])

    def _capacity(self) -> Capacity:
        settings = self._settings
        first = [run.deliveries[0] for run in self._active.values() if run.sending]
        busy = Counter(delivery.key.subscription_id for delivery in first)
        now = asyncio.get_running_loop().time()
        for limiter in self._limiters.values():
            for subscription_id, left in limiter.remaining(now).items():
                busy[subscription_id] = max(busy[subscription_id], settings.each - left)
        retrying = sum(1 for delivery in first if delivery.attempts > 1)
        return Capacity(
            # Runs that only wait for their results use no capacity, unless there are many of them.
            free=settings.capacity - max(len(first), len(self._active) - settings.capacity),
            # Half of the capacity is for first attempts, however many endpoints hang.
            retries=max(settings.capacity // 2 - retrying, 0),
            each=settings.each,
            busy=busy,
            behind=settings.behind,
            rate_limited=list(self._limiters),
        )

    async def _process(self, run: _Run) -> None:
        """Attempt the deliveries of a run and wait until their results are written."""
        try:
            await self._guard.attempt(
                self._send_and_write(run), **_log_fields(run.deliveries[0].key)
            )
        except Unavailable:
            pass  # a delivery without a written result is claimed again when its lease expires
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._active.pop(task, None)
            self.wake.set()

    async def _send_and_write(self, run: _Run) -> None:
        await asyncio.gather(*await (self._send_digest(run) if run.digest else self._send(run)))

    async def _send_digest(self, run: _Run) -> list[asyncio.Future[None]]:
        """The pending writes of the results of a digest."""
        sending = self._attempts.try_digest(run.deliveries)
        results = await self._guard.attempt(sending, **_log_fields(run.deliveries[0].key))
        if isinstance(results, Fault):
            for one in run.deliveries:
                await self._fail(one.key, results)
            results = []
        run.sending = False
        self.wake.set()
        return list(map(self._writer.write, results))

    async def _send(self, run: _Run) -> list[asyncio.Future[None]]:
        """The pending writes of a run's results. Results of hook notifications are written at once;
        others are collected for COLLECT_FOR."""
        loop = asyncio.get_running_loop()
        writing: list[asyncio.Future[None]] = []
        collected: list[DeliveryResult] = []

        def write_collected() -> None:
            writing.extend(map(self._writer.write, collected))
            collected.clear()

        timer: asyncio.TimerHandle | None = None
        try:
            async for result in self._attempt_in_turn(run.deliveries):
                collected.append(result)
                if result.hook_id is not None:
                    write_collected()
                elif len(collected) == 1:  # the next attempt may take long
                    timer = loop.call_later(COLLECT_FOR, write_collected)
        finally:
            if timer is not None:
                timer.cancel()
            write_collected()
        run.sending = False
        self.wake.set()
        return writing

    async def _attempt_in_turn(
        self, run: Sequence[PendingDelivery]
    ) -> AsyncIterator[DeliveryResult]:
        """The results of a run. After a failure, RUN_FOR or `stop`, the rest is not attempted."""
        loop = asyncio.get_running_loop()
        until, proceed = loop.time() + RUN_FOR, True
        for place, delivery in enumerate(run):
            if place and (not proceed or self._stopping or loop.time() > until):
                yield unattempted_result(delivery)
                proceed = False
                continue
            result = await self._guard.attempt(
                self._attempts.try_once(delivery), **_log_fields(delivery.key)
            )
            if isinstance(result, Fault):
                await self._fail(delivery.key, result)
                proceed = False
                continue
            proceed = result.state is not DeliveryState.PENDING and not result.gone
            yield result


def _log_fields(key: Key) -> dict[str, str | int]:
    return {"stack_id": str(key.stack_id), "sequence": key.sequence,
            "subscription": str(key.subscription_id)}  # fmt: skip
