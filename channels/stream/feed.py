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
from channels.store.records import Cursor, StreamEvent, ToldEvent
from channels.store.stream import events_after, floor, top
from channels.stream import sse
from channels.waiting import wait_at_most
from engine.errors import Conflict, Invalid, Unavailable
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
        return wants(self.selection, line.traits)


@dataclass(frozen=True, slots=True)
class Line:
    """An event as all its readers get it: written once, however many they are."""

    cursor: Cursor
    traits: Traits
    text: bytes


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

    def __init__(self, database: Database, settings: FeedSettings | None = None) -> None:
        self._database = database
        self._settings = settings or FeedSettings()
        self._tails: dict[str, _Tail] = {}
        self._wake = asyncio.Event()
        self._stopped = False

    @property
    def readers(self) -> int:
        """How many read now; for the metrics."""
        return sum(tail.readers for tail in self._tails.values())

    async def run(self, stop: asyncio.Event) -> None:
        """Keep the tails up to date until told to stop; then the readers' streams end."""
        try:
            while not stop.is_set():
                try:
                    async with self._database.listen("headgate_published", self._wake.set):
                        await self._follow(stop)
                except* Unavailable as errors:
                    log.warning("feed.unavailable", reason=str(errors.exceptions[0]))
                except* Exception:
                    log.exception("feed.broken")
                await wait_at_most(stop, self._settings.poll)
        finally:
            self._stopped = True
            for tail in self._tails.values():
                tail.changed.set()

    async def _follow(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._refresh_all())
            await stop.wait()
            following.cancel()

    async def _refresh_all(self) -> None:
        while True:
            self._wake.clear()
            try:
                for project, tail in list(self._tails.items()):
                    await self._refresh(project, tail)
            except Unavailable as error:
                log.warning("feed.unavailable", reason=str(error))
            await wait_at_most(self._wake, self._settings.poll)

    async def _refresh(self, project: str, tail: _Tail) -> None:
        page = self._settings.page
        while True:
            async with self._database.connection() as conn:
                items = _lines(await events_after(conn, project, tail.end, limit=page))
            if items:
                tail.add(items, self._settings.kept)
            if len(items) < page:
                return

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
        async with self._database.connection() as conn:
            page = self._settings.page
            read = await events_after(
                conn, wanted.project, cursor, limit=page, stacks=wanted.stacks
            )
            if cursor < (lowest := await floor(conn, wanted.project)):
                raise sse.gone(lowest)  # while it was behind
            found = _lines(read)
        reached = found[-1].cursor if len(found) == page else max(cursor, end)
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


def _lines(items: Sequence[StreamEvent]) -> list[Line]:
    return [
        Line(
            one.cursor,
            _traits(one.told),
            sse.event_text(one.cursor, one.told.event.type, document(one.told)),
        )
        for one in items
    ]


def _traits(item: ToldEvent) -> Traits:
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


def document(item: ToldEvent) -> dict[str, object]:
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
