"""The event streams of projects, for any number of readers of this process.

One LISTEN serves all readers. For each project with readers, a limited number of the newest events
is kept in memory. A reader gets its events from there, or from the database if it is behind, so
nothing is buffered for slow readers. A reader that accepts nothing for too long is disconnected and
can resume after the ID of its last event. Events are sent as server-sent events.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from channels.envelope import cloud_event
from channels.selection import Selection, Traits, matches
from channels.store.records import Cursor, PublishedEvent, StreamEvent
from channels.store.stream import (
    current_cursor,
    events_after,
    floor,
    next_position,
    read_start,
    stack_events_after,
    top,
)
from engine.bounded_wait import wait_at_most
from engine.errors import Conflict, Finding, Invalid
from engine.loop_guard import BatchSize, Supervisor
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.read_database import ReadDatabase
from engine.words import Json

CONTENT_TYPE = "text/event-stream"

#: A comment, which keeps the connection open and which clients ignore.
#: Followed by the ID of the place.
HEARTBEAT = b": heartbeat\n"

_MAX_BIGINT = 2**63 - 1


def event_id(cursor: Cursor) -> str:
    return f"{cursor.position}-{cursor.sequence}"


def parse_event_id(text: str) -> Cursor:
    """Parse a Last-Event-ID. Raises Invalid if it is not an ID of this stream."""
    position, dash, sequence = text.partition("-")
    if dash and all(part.isascii() and part.isdigit() for part in (position, sequence)):
        cursor = Cursor(int(position[:20]), int(sequence[:20]))
        if max(cursor.position, cursor.sequence) <= _MAX_BIGINT:
            return cursor
    raise Invalid([unknown_id("is not an ID of this stream")])


def unknown_id(reason: str) -> Finding:
    remedy = "Send the ID of the last event you read, or none to read new events only."
    return Finding("Last-Event-ID", reason, remedy, "InvalidEventId")


def events_gone(lowest: Cursor) -> Conflict:
    return Conflict(
        "the events after this one have been deleted, so you have missed some",
        place="Last-Event-ID",
        remedy="Read the current state of the stacks, then reconnect without an ID; the retained"
        f" events begin after {event_id(lowest)}.",
        code="EventsGone",
    )


def place_text(cursor: Cursor) -> bytes:
    """The ID of a place of the stream, without an event, after which a client can resume."""
    return b"id: %b\n\n" % event_id(cursor).encode()


def event_text(cursor: Cursor, kind: str, document: Mapping[str, Json]) -> bytes:
    """One event. The document fits on one line, because JSON escapes line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        event_id(cursor).encode(),
        kind.encode(),
        orjson.dumps(document),
    )


log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """Times in seconds. kept: events in memory for each project with readers.

    page: events for each query. cut_off: the time in which a reader must accept an event.
    """

    heartbeat: float = 15.0
    poll: float = 5.0
    kept: int = 500
    page: int = 200
    cut_off: float = 20.0


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """The events of a project that a reader selects."""

    project: str
    selection: Selection = field(default_factory=Selection)

    @property
    def stacks(self) -> list[UUID] | None:
        """The stacks and root stacks to which the events are limited; None: all."""
        limits = (self.selection.stack_id, self.selection.root_id)
        return [one for one in limits if one is not None] or None

    def matches(self, line: "StreamLine") -> bool:
        return line.traits is not None and matches(self.selection, line.traits)


@dataclass(frozen=True, slots=True)
class StreamLine:
    """The text of an event, shared by all readers.

    traits: None: an internal error was raised, and no reader gets the event.
    """

    cursor: Cursor
    traits: Traits | None
    text: bytes = b""


class _Tail:
    """The newest events of a project, after `start` up to `end`."""

    def __init__(self, start: Cursor) -> None:
        self.start = self.end = start
        self.items: deque[StreamLine] = deque()
        self.readers = 0
        self.changed = asyncio.Event()

    def add(self, items: list[StreamLine], keep: int) -> None:
        self.items.extend(items)
        self.end = items[-1].cursor
        while len(self.items) > keep:
            self.start = self.items.popleft().cursor
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, cursor: Cursor) -> list[StreamLine]:
        return [item for item in self.items if item.cursor > cursor]


def _ignore(_: Cursor) -> None:
    """No caller wants to know it."""


class Feed:
    """Run `run` in the background; call `start` and `pump` for each reader."""

    def __init__(
        self,
        database: Database,
        settings: FeedSettings | None = None,
        supervisor: Supervisor | None = None,
        backlog: ReadDatabase | None = None,
    ) -> None:
        """backlog: serves events to readers that are behind; None: the database does."""
        self._database = database
        self._backlog = backlog or ReadDatabase(database)
        self._settings = settings or FeedSettings()
        self._tails: dict[str, _Tail] = {}
        self._wake = asyncio.Event()
        self._stopped = False
        self._guard = (supervisor or Supervisor()).guard("stream", max_pause=self._settings.poll)

    @property
    def readers(self) -> int:
        """The number of connected readers, for the metrics."""
        return sum(tail.readers for tail in self._tails.values())

    async def run(self, stop: asyncio.Event) -> None:
        """Read new events until `stop` is set; then the streams of all readers end."""

        async def follow() -> None:
            async with self._database.listen("headgate_published", self._wake.set):
                await self._follow(stop)

        try:
            await self._guard.run(follow, stop)
        finally:
            self.stop()

    def stop(self) -> None:
        """End the streams of all readers."""
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

    async def _read(self, project: str, cursor: Cursor) -> tuple[list[StreamLine], bool]:
        """The lines after a cursor, and whether there may be more. An unreadable event has no
        traits."""

        async def read(limit: int) -> list[StreamEvent]:
            async with self._database.connection() as conn:
                return await events_after(conn, project, cursor, limit=limit)

        return await self._lines(project, cursor, read)

    async def _read_backlog(
        self, project: str, cursor: Cursor, stacks: Sequence[UUID] | None
    ) -> tuple[list[StreamLine], bool, Cursor | None]:
        """Like `_read`, for a reader that is behind; and the place up to which all events were
        read, if events are left out at the end. Raises Conflict (EventsGone)."""
        last: Cursor | None = None

        async def read(limit: int) -> list[StreamEvent]:
            nonlocal last
            found, last = await self._backlog.read(
                lambda conn: _retained_after(conn, project, cursor, limit, stacks)
            )
            return found

        lines, more = await self._lines(project, cursor, read)
        if any(one.traits is None for one in lines):  # possibly skipped: see _skip
            async with self._database.connection() as conn:
                await _check_retained(conn, project, cursor)
            return lines, more, None
        reached = lines[-1].cursor if lines else cursor
        return lines, more, last if last is not None and not more and last > reached else None

    async def _lines(
        self, project: str, cursor: Cursor, read: Callable[[int], Awaitable[list[StreamEvent]]]
    ) -> tuple[list[StreamLine], bool]:
        size = BatchSize(self._settings.page)
        while True:
            try:
                found = await read(size.now)
                return [self._line(one) for one in found], len(found) == size.now
            except Conflict:
                raise
            except Exception as error:
                if size.shrink(error):
                    return await self._skip(project, cursor, error)

    async def _skip(
        self, project: str, cursor: Cursor, error: Exception
    ) -> tuple[list[StreamLine], bool]:
        async with self._database.connection() as conn:
            position = await next_position(conn, project, cursor)
        self._guard.report(error, project=project, position=str(position))
        return ([StreamLine(position, None)], True) if position is not None else ([], False)

    def _line(self, event: StreamEvent) -> StreamLine:
        try:
            text = event_text(event.cursor, event.published.event.type, document(event.published))
            return StreamLine(event.cursor, _traits(event.published), text)
        except Exception as error:
            self._guard.report(error, event_id=str(event.published.event.id))
            return StreamLine(event.cursor, None)

    async def start(self, project: str, last_event_id: str | None) -> Cursor:
        """The cursor at which to start. Raises Invalid for a wrong ID, and Conflict (EventsGone) if
        events after it were purged."""
        async with self._database.connection() as conn:
            end, start = await read_start(conn, project)
        if not last_event_id:
            return start
        cursor = parse_event_id(last_event_id)
        if cursor.position > end.position:
            raise Invalid([unknown_id("is later than the last event")])
        return await self.resume(project, cursor)

    async def resume(self, project: str, cursor: Cursor) -> Cursor:
        """The same place of the stream in this database; `cursor` can be of one from which the
        project has moved. Raises Conflict (EventsGone)."""
        async with self._database.connection() as conn:
            cursor = await current_cursor(conn, project, cursor)
            await _check_retained(conn, project, cursor)
        return cursor

    async def events(
        self, events: StreamFilter, cursor: Cursor, passed: Callable[[Cursor], None] = _ignore
    ) -> AsyncGenerator[StreamLine | None, None]:
        """The selected events after a cursor, without end; None as a heartbeat. passed: called with
        the place of each event that is read, also if it is not selected; events that are left out
        can be passed together."""
        async with self._tail(events.project, cursor) as tail:
            loop = asyncio.get_running_loop()
            last = loop.time()
            while not self._stopped:
                changed = tail.changed
                items, cursor, left_out = await self._next(events, tail, cursor)
                for item in items:
                    passed(item.cursor)
                    if events.matches(item):
                        yield item
                        last = loop.time()
                if left_out is not None:
                    passed(left_out)
                quiet = self._settings.heartbeat - (loop.time() - last)
                if quiet <= 0:
                    yield None
                    last = loop.time()
                elif cursor >= tail.end:
                    await wait_at_most(changed, quiet)

    async def _next(
        self, events: StreamFilter, tail: _Tail, cursor: Cursor
    ) -> tuple[list[StreamLine], Cursor, Cursor | None]:
        """The next events, and the cursor after the last one read. Events that are not selected
        can be missing; the place after those at the end, which is one of the project: the cursor
        can be one after which the project continues in another cell."""
        end = tail.end
        if cursor >= tail.start:
            return tail.after(cursor), max(cursor, end), None
        found, more, left_out = await self._read_backlog(events.project, cursor, events.stacks)
        reached = found[-1].cursor if more else max(cursor, end)
        # Less than a page: all events up to the end of the tail were read, and possibly later ones.
        reached = max(reached, found[-1].cursor) if found else reached
        return found, reached, left_out

    @asynccontextmanager
    async def _tail(self, project: str, cursor: Cursor) -> AsyncIterator[_Tail]:
        tail = self._tails.get(project)
        if tail is None:
            async with self._database.connection() as conn:
                end = await top(conn)
            tail = self._tails.setdefault(project, _Tail(end))
            self._wake.set()  # events since then may have been announced already
        tail.readers += 1
        try:
            yield tail
        finally:
            tail.readers -= 1
            if tail.readers == 0:
                self._tails.pop(project, None)

    async def pump(
        self,
        events: StreamFilter,
        start: Cursor,
        write: Callable[[bytes], Awaitable[None]],
        passed: Callable[[Cursor], None] = _ignore,
    ) -> None:
        """Write the stream to a reader until the feed stops or the reader is too slow. passed: as
        for `events`."""
        place = start

        def note(at: Cursor) -> None:
            nonlocal place
            place = at
            passed(at)

        async with aclosing(self.events(events, start, note)) as items:
            try:
                async for item in items:
                    text = HEARTBEAT + place_text(place) if item is None else item.text
                    async with asyncio.timeout(self._settings.cut_off):
                        await write(text)
            except (TimeoutError, Conflict) as error:
                # The client reconnects, and gets the error then.
                log.info("stream.disconnected", project=events.project, reason=str(error))


async def _retained_after(
    conn: Connection, project: str, cursor: Cursor, limit: int, stacks: Sequence[UUID] | None
) -> tuple[list[StreamEvent], Cursor | None]:
    """The events, and the place after the last one of the project if `stacks` limits them. Raises
    Conflict (EventsGone) if events were purged while the reader was behind.

    Both statements run on one server: two servers show a purge at different times.
    """
    last: Cursor | None = None
    if stacks is None:
        found = await events_after(conn, project, cursor, limit=limit)
    else:
        found, last = await stack_events_after(conn, project, cursor, limit=limit, stacks=stacks)
    await _check_retained(conn, project, cursor)
    return found, last


async def _check_retained(conn: Connection, project: str, cursor: Cursor) -> None:
    if cursor < (lowest := await floor(conn, project)):
        raise events_gone(lowest)


def _traits(item: PublishedEvent) -> Traits:
    event = item.event
    return Traits(
        project=item.project,
        type=event.type,
        stack_id=event.stack_id,
        stack_name=item.stack_header.name if item.stack_header else None,
        root_id=item.stack_header.root_id if item.stack_header else None,
        root_name=item.stack_header.root_name if item.stack_header else None,
        stack_path=item.stack_header.path if item.stack_header else "",
        resource_name=event.resource_name,
        resource_type=event.resource_type,
        point=(event.data or {}).get("point"),
        tags=item.stack_header.tags if item.stack_header else (),
    )


def document(item: PublishedEvent) -> dict[str, object]:
    """The event for readers: without a token, because reading does not include answering."""
    return cloud_event(
        item.event,
        project=item.project,
        stack_header=item.stack_header,
        hook=item.hook,
        notified=(),
        signal_url=None,
        token=None,
    )
