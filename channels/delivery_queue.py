"""A lane: claims what is due and tries it, so many at once, and so many per subscription.

Where order is kept, what stands behind the first of a stack comes along, and is tried when that has
arrived: a stack with many events does not wait for the database after each.

There are two, with room of their own: one for the notices of hooks that wait (and for what stands
before them in order), one for everything else.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from channels.attempt import Attempts, untried
from channels.result_writer import Settler
from channels.store.claim import Room, claim_keys, next_due, read_claimed, renew, runs
from channels.store.delivery_results import fail_delivery
from channels.store.records import DeliveryState, Due, Key, Settlement
from engine.errors import Unavailable
from engine.loops import Fault, Supervisor, wait_at_most
from engine.rate_limiter import RateLimiter
from engine.store.database import Database

#: Seconds at least between two looks at what is due, when nothing wakes the lane.
SHORTEST_PAUSE = 0.02

#: Seconds after which a run goes back: what it knows of its hooks grows old, and so do signatures.
RUN_FOR = 1.0

#: Seconds for which what came of a run's attempts is gathered, to be written together.
GATHERED_FOR = 0.05


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """capacity: attempts at once; each: of one subscription. poll, lease: seconds.

    The lease is renewed while an attempt lasts, and so may be shorter than that. behind: how many
    deliveries come with one that is first in order. rates: attempts a second for one subscription,
    by channel; 0: as fast as it goes.
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
    """What is tried one after the other. sending: false once all that is left is to write it."""

    dues: Sequence[Due]
    sending: bool = True


class Lane:
    def __init__(
        self,
        database: Database,
        attempts: Attempts,
        settler: Settler,
        settings: LaneSettings,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._attempts = attempts
        self._settler = settler
        self._settings = settings
        self._under_way: dict[asyncio.Task[None], _Run] = {}
        self._limiters: dict[str, RateLimiter[UUID]] = {
            channel: RateLimiter(rate) for channel, rate in settings.rates.items() if rate > 0
        }
        self._stopping = False
        self._guard = (supervisor or Supervisor()).guard("lane", longest=settings.poll)
        self.wake = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Claim until told to stop; then return when all that is under way has ended.

        Whoever sets `stop` wakes the lane. Bound it from outside: what is cut off is tried again
        when its lease ends.
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
        """Renew the claims of running attempts, so that no other process claims them."""
        lease = self._settings.lease
        await asyncio.sleep(lease / 3)
        if keys := [due.key for run in self._under_way.values() for due in run.dues]:
            async with self._database.connection() as conn:
                await renew(conn, keys, lease=lease)

    async def _fill(self, group: asyncio.TaskGroup) -> float:
        """Start attempts while there is room; return how long to wait if nothing wakes us."""
        while (room := self._room()).free > 0:
            async with self._database.connection() as conn:
                urgent, lease = self._settings.urgent, self._settings.lease
                keys = await claim_keys(conn, urgent=urgent, room=room, lease=lease)
                if not keys:
                    due = await next_due(conn, urgent=urgent, room=self._room())
                    return self._pause(due)
            await self._start(group, keys)
        return self._settings.poll

    async def _start(self, group: asyncio.TaskGroup, keys: Sequence[Key]) -> None:
        """Try what was claimed. A delivery that cannot be read fails alone."""
        claimed: list[Due] = []

        async def read(part: Sequence[Key]) -> None:
            async with self._database.connection() as conn:
                claimed.extend(await read_claimed(conn, part))

        await self._guard.split(keys, read, self._fail, _named)
        now = asyncio.get_running_loop().time()
        for due in claimed:
            if limiter := self._limiters.get(due.channel):
                limiter.charge(due.key.subscription_id, now)
        for run in map(_Run, runs(claimed)):
            self._under_way[group.create_task(self._carry(run))] = run

    async def _fail(self, key: Key, fault: Fault) -> None:
        await fail_delivery(self._database, key, str(fault))

    def _pause(self, due: float | None) -> float:
        """due: seconds until something is. Those that are held to a rate are due again by that."""
        now = asyncio.get_running_loop().time()
        limited = (limiter.until_more(now) for limiter in self._limiters.values())
        waits = [one for one in (due, *limited) if one is not None]
        return min([max(one, SHORTEST_PAUSE) for one in waits] + [self._settings.poll])

    def _room(self) -> Room:
        settings = self._settings
        first = [run.dues[0] for run in self._under_way.values() if run.sending]
        busy = Counter(due.key.subscription_id for due in first)
        now = asyncio.get_running_loop().time()
        for limiter in self._limiters.values():
            for subscription_id, left in limiter.left(now).items():
                busy[subscription_id] = max(busy[subscription_id], settings.each - left)
        retrying = sum(1 for due in first if due.attempts > 1)
        return Room(
            # What waits to be written takes no place, until that piles up.
            free=settings.capacity - max(len(first), len(self._under_way) - settings.capacity),
            # Half of the lane is kept for first attempts: an endpoint that hangs takes no more.
            retries=max(settings.capacity // 2 - retrying, 0),
            each=settings.each,
            busy=busy,
            behind=settings.behind,
            paced=list(self._limiters),
        )

    async def _carry(self, run: _Run) -> None:
        """Try one after the other as long as they arrive; the rest goes back untried."""
        try:
            await self._guard.attempt(self._carried(run), **_named(run.dues[0].key))
        except Unavailable:
            pass  # what was not written comes again when its lease is over
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._under_way.pop(task, None)
            self.wake.set()

    async def _carried(self, run: _Run) -> None:
        await asyncio.gather(*await self._settled(run))

    async def _settled(self, run: _Run) -> list[asyncio.Future[None]]:
        """What is being written of a run: gathered for a moment, but for notices of hooks."""
        loop = asyncio.get_running_loop()
        writing: list[asyncio.Future[None]] = []
        gathered: list[Settlement] = []

        def hand_in() -> None:
            writing.extend(map(self._settler.write, gathered))
            gathered.clear()

        timer: asyncio.TimerHandle | None = None
        try:
            async for said in self._tried(run.dues):
                gathered.append(said)
                if said.hook_id is not None:
                    hand_in()
                elif len(gathered) == 1:  # the next attempt may take long
                    timer = loop.call_later(GATHERED_FOR, hand_in)
        finally:
            if timer is not None:
                timer.cancel()
            hand_in()
        run.sending = False
        self.wake.set()
        return writing

    async def _tried(self, run: Sequence[Due]) -> AsyncIterator[Settlement]:
        loop = asyncio.get_running_loop()
        until, goes_on = loop.time() + RUN_FOR, True
        for place, due in enumerate(run):
            if place and (not goes_on or self._stopping or loop.time() > until):
                yield untried(due)
                goes_on = False
                continue
            said = await self._guard.attempt(self._attempts.try_once(due), **_named(due.key))
            if isinstance(said, Fault):
                await self._fail(due.key, said)
                goes_on = False
                continue
            goes_on = said.state is not DeliveryState.PENDING and not said.gone
            yield said


def _named(key: Key) -> dict[str, str | int]:
    return {"stack_id": str(key.stack_id), "sequence": key.sequence,
            "subscription": str(key.subscription_id)}  # fmt: skip
