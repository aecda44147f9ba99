"""A lane: claims what is due and tries it, so many at once, and so many per subscription.

There are two, with room of their own: one for the notices of hooks that wait (and for what stands
before them in order), one for everything else.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from structlog.typing import FilteringBoundLogger

from channels.attempt import Attempts
from channels.pace import Paces
from channels.settler import Settler
from channels.store.claim import Room, claim, next_due, renew
from channels.store.records import Due
from channels.waiting import wait_at_most
from engine.errors import Unavailable
from engine.store.database import Database

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds at least between two looks at what is due, when nothing wakes the lane.
SHORTEST_PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """capacity: attempts at once; each: of one subscription. poll, lease: seconds.

    The lease is renewed while an attempt lasts, and so may be shorter than that. rate_of: attempts
    a second for one subscription, by channel; 0: as fast as it goes.
    """

    urgent: bool
    capacity: int
    each: int
    poll: float
    lease: float
    rate_of: Callable[[str], float] = lambda _: 0.0


class Lane:
    def __init__(
        self, database: Database, attempts: Attempts, settler: Settler, settings: LaneSettings
    ) -> None:
        self._database = database
        self._attempts = attempts
        self._settler = settler
        self._settings = settings
        self._under_way: dict[asyncio.Task[None], Due] = {}
        self._paces = Paces(settings.rate_of)
        self.wake = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Claim until told to stop; then return when all that is under way has ended.

        Whoever sets `stop` wakes the lane. Bound it from outside: what is cut off is tried again
        when its lease ends.
        """
        async with asyncio.TaskGroup() as renewing:
            keeper = renewing.create_task(self._renew())
            async with asyncio.TaskGroup() as group:
                while not stop.is_set():
                    self.wake.clear()
                    pause = await self._fill(group)
                    await wait_at_most(self.wake, pause)
            keeper.cancel()

    async def _renew(self) -> None:
        """Runs until cancelled: as long as attempts are under way, nobody else tries them."""
        lease = self._settings.lease
        while True:
            await asyncio.sleep(lease / 3)
            if not self._under_way:
                continue
            try:
                async with self._database.connection() as conn:
                    keys = [due.key for due in self._under_way.values()]
                    await renew(conn, keys, lease=lease)
            except Unavailable as error:
                log.warning("lane.not_renewed", reason=str(error), urgent=self._settings.urgent)

    async def _fill(self, group: asyncio.TaskGroup) -> float:
        """Start attempts while there is room; return how long to wait if nothing wakes us."""
        poll = self._settings.poll
        try:
            while (room := self._room()).free > 0:
                async with self._database.connection() as conn:
                    urgent, lease = self._settings.urgent, self._settings.lease
                    claimed = await claim(conn, urgent=urgent, room=room, lease=lease)
                    if not claimed:
                        due = await next_due(conn, urgent=urgent, room=self._room())
                        return self._pause(due)
                now = asyncio.get_running_loop().time()
                self._paces.spend(((one.key.subscription_id, one.channel) for one in claimed), now)
                for one in claimed:
                    self._under_way[group.create_task(self._carry(one))] = one
        except Unavailable as error:
            log.warning("lane.unavailable", reason=str(error), urgent=self._settings.urgent)
        return poll

    def _pause(self, due: float | None) -> float:
        """due: seconds until something is. Those that are held to a rate are due again by that."""
        more = self._paces.until_more(asyncio.get_running_loop().time())
        waits = [one for one in (due, more) if one is not None]
        return min([max(one, SHORTEST_PAUSE) for one in waits] + [self._settings.poll])

    def _room(self) -> Room:
        settings = self._settings
        busy = Counter(due.key.subscription_id for due in self._under_way.values())
        for name, left in self._paces.left(asyncio.get_running_loop().time()).items():
            busy[name] = max(busy[name], settings.each - left)
        retrying = sum(1 for due in self._under_way.values() if due.attempts > 1)
        return Room(
            free=settings.capacity - len(self._under_way),
            # Half of the lane is kept for first attempts: an endpoint that hangs takes no more.
            retries=max(settings.capacity // 2 - retrying, 0),
            each=settings.each,
            busy=busy,
        )

    async def _carry(self, due: Due) -> None:
        try:
            await self._settler.write(await self._attempts.try_once(due))
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._under_way.pop(task, None)
            self.wake.set()
