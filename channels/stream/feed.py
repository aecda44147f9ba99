"""The event stream of a project for any number of readers of this process.

One LISTEN serves them all. For each project that has readers the newest events are read once and
kept, so many; a reader takes them from there, and from the database when it has fallen behind. So
nothing piles up for a slow reader, and one that takes nothing for too long is cut off: the id of
the last event it has read brings it back.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from channels.envelope import cloud_event
from channels.selection import Selection, Traits, wants
from channels.store.records import Cursor, PublishedEvent, StreamEvent
from channels.store.stream import events_after, floor, next_place, top
from channels.stream import sse
from engine.errors import Conflict, Invalid
from engine.loops import BatchSize, Supervisor, wait_at_most
from engine.store.database import Database

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """Times in seconds. kept: events kept for each project that has readers.

    page: events read at a time. cut_off: how long a reader may take to accept one event.
    """

    heartbeat: float = 15.0
    poll: float = 5.0
    kept: int = 500
    page: int = 200
    cut_off: float = 20.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader wants of a project's events."""

    project: str
    selection: Selection = field(default_factory=Selection)

    @property
    def stacks(self) -> list[UUID] | None:
        """Those of whose events, or of what is inside of them, there may be any; None: of all."""
        said = (self.selection.stack_id, self.selection.root_id)
        return [one for one in said if one is not None] or None

    def has(self, line: "Line") -> bool:
        return line.traits is not None and wants(self.selection, line.traits)


@dataclass(frozen=True, slots=True)
class Line:
    """An event as all its readers get it: written once, however many they are.

    traits: None: it raised an internal error, and no reader gets it.
    """

    cursor: Cursor
    traits: Traits | None
    text: bytes = b""


class _Tail:
    """The newest events of a project: all after `start`, up to `end`."""

    def __init__(self, start: Cursor) -> None:
        self.start = self.end = start
        self.items: deque[Line] = deque()
        self.readers = 0
        self.changed = asyncio.Event()

    def add(self, items: list[Line], keep: int) -> None:
        self.items.extend(items)
        self.end = items[-1].cursor
        while len(self.items) > keep:
            self.start = self.items.popleft().cursor
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, cursor: Cursor) -> list[Line]:
        return [item for item in self.items if item.cursor > cursor]


class Feed:
    """Run `run` in the background, then `start` and `pump` for each reader."""

    def __init__(
        self,
        database: Database,
        settings: FeedSettings | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._settings = settings or FeedSettings()
        self._tails: dict[str, _Tail] = {}
        self._wake = asyncio.Event()
        self._stopped = False
        self._guard = (supervisor or Supervisor()).guard("feed", longest=self._settings.poll)

    @property
    def readers(self) -> int:
        """How many read now; for the metrics."""
        return sum(tail.readers for tail in self._tails.values())

    async def run(self, stop: asyncio.Event) -> None:
        """Keep the tails up to date until told to stop; then the readers' streams end."""

        async def follow() -> None:
            async with self._database.listen("headgate_published", self._wake.set):
                await self._follow(stop)

        try:
            await self._guard.run(follow, stop)
        finally:
            self._stopped = True
            for tail in self._tails.values():
                tail.changed.set()

    async def _follow(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._guard.run(self._refresh_all, stop))
            await stop.wait()
            following.cancel()

    async def _refresh_all(self) -> None:
        self._wake.clear()
        for project, tail in list(self._tails.items()):
            await self._guard.attempt(self._refresh(project, tail), project=project)
        await wait_at_most(self._wake, self._settings.poll)

    async def _refresh(self, project: str, tail: _Tail) -> None:
        more = True
        while more:
            items, more = await self._read(project, tail.end)
            if items:
                tail.add(items, self._settings.kept)

    async def _read(
        self, project: str, cursor: Cursor, stacks: Sequence[UUID] | None = None
    ) -> tuple[list[Line], bool]:
        """Lines after a cursor, and whether there may be more. What cannot be read is empty."""
        size = BatchSize(self._settings.page)
        while True:
            try:
                async with self._database.connection() as conn:
                    read = await events_after(conn, project, cursor, limit=size.now, stacks=stacks)
                return [self._line(one) for one in read], len(read) == size.now
            except Exception as error:
                if size.shrink(error):
                    return await self._passed_over(project, cursor, error)

    async def _passed_over(
        self, project: str, cursor: Cursor, error: Exception
    ) -> tuple[list[Line], bool]:
        async with self._database.connection() as conn:
            place = await next_place(conn, project, cursor)
        self._guard.report(error, project=project, place=str(place))
        return ([Line(place, None)], True) if place is not None else ([], False)

    def _line(self, one: StreamEvent) -> Line:
        try:
            text = sse.event_text(one.cursor, one.told.event.type, document(one.told))
            return Line(one.cursor, _traits(one.told), text)
        except Exception as error:
            self._guard.report(error, event_id=str(one.told.event.id))
            return Line(one.cursor, None)

    async def start(self, project: str, last_event_id: str | None) -> Cursor:
        """Where to begin to read. Raises Invalid, and Conflict (EventsGone) where something that
        the reader has not had is purged."""
        async with self._database.connection() as conn:
            end, lowest = await top(conn), await floor(conn, project)
        if not last_event_id:
            return end
        cursor = sse.parse_event_id(last_event_id)
        if cursor.position > end.position:
            raise Invalid([sse.unknown_id("is ahead of everything that has happened here")])
        if cursor < lowest:
            raise sse.gone(lowest)
        return cursor

    async def events(self, wanted: Wanted, cursor: Cursor) -> AsyncGenerator[Line | None, None]:
        """What is wanted after a cursor, for ever; None when nothing happened for a while."""
        async with self._tail(wanted.project, cursor) as tail:
            loop = asyncio.get_running_loop()
            said = loop.time()
            while not self._stopped:
                changed = tail.changed
                items, cursor = await self._next(wanted, tail, cursor)
                for item in items:
                    yield item
                    said = loop.time()
                quiet = self._settings.heartbeat - (loop.time() - said)
                if quiet <= 0:
                    yield None
                    said = loop.time()
                elif cursor >= tail.end:
                    await wait_at_most(changed, quiet)

    async def _next(self, wanted: Wanted, tail: _Tail, cursor: Cursor) -> tuple[list[Line], Cursor]:
        """What is wanted of the next events, and the place after the last one looked at."""
        end = tail.end
        if cursor >= tail.start:
            found = tail.after(cursor)
            return [item for item in found if wanted.has(item)], max(cursor, end)
        found, more = await self._read(wanted.project, cursor, wanted.stacks)
        async with self._database.connection() as conn:
            if cursor < (lowest := await floor(conn, wanted.project)):
                raise sse.gone(lowest)  # while it was behind
        reached = found[-1].cursor if more else max(cursor, end)
        # Short of a page: everything up to the tail's end was read, and perhaps a little more.
        reached = max(reached, found[-1].cursor) if found else reached
        return [item for item in found if wanted.has(item)], reached

    @asynccontextmanager
    async def _tail(self, project: str, cursor: Cursor) -> AsyncIterator[_Tail]:
        tail = self._tails.get(project)
        if tail is None:
            async with self._database.connection() as conn:
                end = await top(conn)
            tail = self._tails.setdefault(project, _Tail(end))
            self._wake.set()  # what was published since then may have been announced already
        tail.readers += 1
        try:
            yield tail
        finally:
            tail.readers -= 1
            if tail.readers == 0:
                self._tails.pop(project, None)

    async def pump(
        self,
        wanted: Wanted,
        start: Cursor,
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """Write the stream to a reader until the feed stops or the reader is too slow."""
        async with aclosing(self.events(wanted, start)) as items:
            try:
                async for item in items:
                    async with asyncio.timeout(self._settings.cut_off):
                        await write(sse.HEARTBEAT if item is None else item.text)
            except (TimeoutError, Conflict) as error:
                # It comes back, and is told.
                log.info("stream.cut_off", project=wanted.project, reason=str(error))


def _traits(item: PublishedEvent) -> Traits:
    event = item.event
    return Traits(
        project=item.project,
        type=event.type,
        stack_id=event.stack_id,
        stack_name=item.plate.name if item.plate else None,
        root_id=item.plate.root_id if item.plate else None,
        root_name=item.plate.root_name if item.plate else None,
        stack_path=item.plate.path if item.plate else "",
        resource_name=event.resource_name,
        resource_type=event.resource_type,
        point=(event.data or {}).get("point"),
        tags=item.plate.tags if item.plate else (),
    )


def document(item: PublishedEvent) -> dict[str, object]:
    """The event as readers see it: without the token, for they may read and not answer."""
    return cloud_event(
        item.event,
        project=item.project,
        plate=item.plate,
        hook=item.hook,
        told=(),
        signal_url=None,
        token=None,
    )
