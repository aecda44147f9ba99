"""headgate watch: a stack as it changes, from the event stream and the graph."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
import typer
from rich.live import Live

from hub.cli import show
from hub.cli.client import Client, Refused, StreamedEvent, place
from hub.cli.context import complain, out
from hub.cli.exit_codes import Exit
from hub.cli.outcomes import find
from hub.cli.waiting import waiting_hooks
from hub.cli.watch_view import Board

Json = Any
#: Seconds between two attempts to take the stream up again; how many in a row.
AGAIN, TIMES = 1.0, 30
#: Seconds between two pictures; the graph is read for at most this part of the time.
TICK, SHARE = 0.25, 0.25
LOST = "connection lost; reconnecting"


@dataclass(slots=True)
class _Place:
    """How far the stream has been read, over all its interruptions."""

    last: str = ""
    failures: int = 0


async def watch(client: Client, name: str, as_json: bool) -> Exit:
    """Show the stack until its action ends; return the exit code of that end."""
    stack = await find(client, name)
    screen: _Lines | _Picture = _Picture() if out.is_terminal and not as_json else _Lines(as_json)
    with screen.shown():
        reached = _Place()
        while True:
            try:
                code = await _once(client, stack, reached, screen)
                if code is not None:
                    return code
            except Refused as error:
                if error.status or reached.failures >= TIMES:
                    raise
                screen.lost(reached.failures == 0)
                reached.failures += 1
            await asyncio.sleep(AGAIN)


async def _once(
    client: Client, stack: Json, reached: _Place, screen: "_Lines | _Picture"
) -> Exit | None:
    """One connection to the stream. None: it ended, and the action has not."""
    async with client.stream(stack=stack["id"], last=reached.last) as events:
        # Read while the stream stands: what changes from here on is told by an event.
        graph = await _graph(client, stack)
        board = Board(stack["stack_name"], stack["id"], stack["path"], graph)
        hooks = await waiting_hooks(client, stack["id"])
        board.hooks = {board.place(hook["path"]): hook for hook in hooks}
        reached.failures = 0
        screen.begin(board)
        if board.ended is None:
            await _follow(client, stack, events, board, reached, screen)
        if board.ended is not None:
            if board.changed:
                board.graph = await _graph(client, stack)
            screen.end(board)
        return board.ended


async def _follow(
    client: Client,
    stack: Json,
    events: AsyncGenerator[StreamedEvent, None],
    board: Board,
    reached: _Place,
    screen: "_Lines | _Picture",
) -> None:
    pending = asyncio.ensure_future(anext(events, None))
    fresh = asyncio.get_running_loop().time()
    try:
        while board.ended is None:
            done, _ = await asyncio.wait({pending}, timeout=screen.tick)
            if done:
                event = pending.result()
                if event is None:
                    return
                pending = asyncio.ensure_future(anext(events, None))
                reached.last = event.id
                board.take(event.document)
                screen.event(event.document)
            if screen.tick is not None:
                fresh = await _refresh(client, stack, board, fresh)
                screen.draw(board)
    finally:
        pending.cancel()
        await asyncio.wait({pending})


async def _refresh(client: Client, stack: Json, board: Board, due: float) -> float:
    """Read the graph again if it changed and is due; return when it is due next."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    if not board.changed or began < due:
        return due
    board.changed = False
    board.graph = await _graph(client, stack)
    now = loop.time()
    return now + max(TICK, (now - began) / SHARE)


async def _graph(client: Client, stack: Json) -> Json:
    return await client.call("GET", place("stacks", stack["stack_name"], stack["id"], "graph"))


class _Lines:
    """A line for each event: for files, pipes and programs."""

    tick: float | None = None

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def shown(self) -> AbstractContextManager[object]:
        return nullcontext()

    def begin(self, board: Board) -> None:
        if not self._as_json:
            said = f"{board.name}: {board.title}"
            waits = [f"{show.named(place)} waits at {hook['point']} until {hook['deadline']}"
                     for place, hook in board.hooks.items()]  # fmt: skip
            print_line(show.plain("; ".join([said, *waits])))

    def event(self, document: Json) -> None:
        print_event(document, self._as_json)

    def draw(self, board: Board) -> None:
        """Nothing: lines stay as they were said."""

    def end(self, board: Board) -> None:
        """The last line was the closing event."""

    def lost(self, first: bool) -> None:
        if first:
            complain(LOST)


class _Picture:
    """One picture that changes: for people."""

    tick: float | None = TICK

    def __init__(self) -> None:
        self._live = Live(console=out, auto_refresh=False, transient=False)
        self._board: Board | None = None

    def shown(self) -> AbstractContextManager[object]:
        return self._live

    def begin(self, board: Board) -> None:
        self._board = board
        self.draw(board)

    def event(self, document: Json) -> None:
        """Nothing: the picture shows it."""

    def draw(self, board: Board) -> None:
        self._live.update(board.picture(datetime.now(UTC)), refresh=True)

    def end(self, board: Board) -> None:
        self.draw(board)

    def lost(self, first: bool) -> None:
        if self._board is not None:
            self._board.note = LOST
            self.draw(self._board)


async def follow(client: Client, name: str, as_json: bool) -> None:
    """Print what happens to a stack from now on, until interrupted."""
    stack = await find(client, name)
    reached = _Place()
    while True:
        try:
            async with client.stream(stack=stack["id"], last=reached.last) as events:
                reached.failures = 0
                async for event in events:
                    reached.last = event.id
                    print_event(event.document, as_json)
        except Refused as error:
            if error.status or reached.failures >= TIMES:
                raise
            reached.failures += 1
        await asyncio.sleep(AGAIN)


def print_event(document: Json, as_json: bool) -> None:
    print_line(orjson.dumps(document).decode() if as_json else show.event_line(document))


def print_line(text: str) -> None:
    typer.echo(text)
    sys.stdout.flush()
