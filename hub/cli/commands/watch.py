"""headgate watch: shows the progress of a stack, from the event stream and the graph."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, Any

import orjson
import typer

from engine.words import DRIFT
from headgate.connection import StreamedEvent, StreamedEvents
from headgate.errors import RequestError
from hub.cli import libraries
from hub.cli.connection.client import ApiClient, find_stack, list_waiting_hooks, stack_path
from hub.cli.connection.outage import Outage
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import note
from hub.cli.printing import output, tables
from hub.cli.printing.consoles import standard_output
from hub.cli.printing.renderables import assemble_text, group, styled_text

if TYPE_CHECKING:
    from asyncio import Future

    from rich.console import RenderableType
    from rich.text import Text

Json = Any
ENDS = {"completed": ExitCode.COMPLETE, "failed": ExitCode.FAILED, "stopped": ExitCode.STOPPED}
#: Final states of a traversal. A superseded one is not final for the stack.
OF_TRAVERSAL = {
    "complete": ExitCode.COMPLETE,
    "failed": ExitCode.FAILED,
    "stopped": ExitCode.STOPPED,
}
#: Maximum number of nodes shown.
MAX_NODES = 40
#: Of the progress bar, in characters.
WIDTH = 40
#: States in the order in which nodes are shown if there are too many.
URGENCY = ("parked", "failed", "stopped", "running", "ready", "waiting", "done", "dropped")
IDLE_CLEANUP = ("waiting", "dropped")


@dataclass(slots=True)
class WatchedStack:
    """name, stack_id, path: of the stack; the path of a root stack is "". graph: as last read.
    hooks: those at which nodes wait, by their path from the stack; "" is the stack itself.

    status, code: of the last event of the stack. changed: whether the graph must be read again.
    note: a message below the tree.
    """

    name: str
    stack_id: str
    path: str
    graph: Mapping[str, Json]
    hooks: dict[str, Json] = field(default_factory=dict)
    status: str = ""
    code: ExitCode | None = None
    changed: bool = False
    note: str = ""

    @property
    def traversal(self) -> int:
        return int(self.graph["traversal"]["number"])

    @property
    def exit_code(self) -> ExitCode | None:
        """The result of the action, by an event or by the graph; None: it has not ended."""
        if self.code is not None:
            return self.code
        return OF_TRAVERSAL.get(self.graph["traversal"]["state"])

    @property
    def title(self) -> str:
        """The status of the stack, such as ``CREATE_IN_PROGRESS, waiting for approval (1)``."""
        return tables.status_text(self._status(), len(self.hooks))

    def _status(self) -> str:
        traversal = self.graph["traversal"]
        if self.code is not None:
            return self.status
        ended = traversal["state"] in OF_TRAVERSAL
        return f"{traversal['action']}_{traversal['state'].upper() if ended else 'IN_PROGRESS'}"

    def apply(self, event: Mapping[str, Json]) -> None:
        """Apply an event of the stack or of one of its nested stacks."""
        family, moment = event["type"].split(".")[1], event["type"].rpartition(".")[2]
        data = event["data"]
        if family == "stack" and data["stack"]["id"] == self.stack_id:
            self._apply_stack_event(data, moment)
        if family == "hook":
            self._apply_hook_event(
                data["hook"], event.get("subject") or event.get("stackpath") or ""
            )
        self.changed = True

    def _apply_stack_event(self, data: Mapping[str, Json], moment: str) -> None:
        if data["traversal"] < self.traversal:
            return  # of an earlier action
        self.status = f"{data['stack']['action']}_{data['stack']['status']}"
        self.code = ENDS.get(moment)

    def _apply_hook_event(self, hook: Json, path: str) -> None:
        """The deadline of a hook that still waits can change."""
        place = self.place(path)
        if hook["point"] == DRIFT:
            return
        if hook["state"] == "waiting":
            self.hooks[place] = hook
        elif self.hooks.get(place, {}).get("id") == hook["id"]:
            del self.hooks[place]

    def set_hooks(self, hooks: Sequence[Json]) -> None:
        """hooks: all that wait. Those about drift are of no node."""
        at_nodes = [one for one in hooks if one["point"] != DRIFT]
        self.hooks = {self.place(one["path"]): one for one in at_nodes}

    def place(self, path: str) -> str:
        """A path from the root stack, relative to this stack."""
        return "" if path == self.path else path.removeprefix(f"{self.path}/")

    def render(self, now: datetime) -> "RenderableType":
        """A tree with the state of each node, a countdown for each hook, and a progress bar."""
        from rich.tree import Tree

        nodes = self.graph["nodes"]
        tree = Tree(
            assemble_text((tables.plain(self.name), "bold"), "  ", tables.style(self.title))
        )
        shown = _urgent(nodes)
        for node in shown[:MAX_NODES]:
            branch = tree.add(_node(node, self.hooks.get(node["resource_name"] or ""), now))
            for place, hook in self._nested_hooks(node):
                waiting = _waiting_text(tables.plain(place), hook, now)
                branch.add(assemble_text((output.MARK["parked"] + " ", "yellow"), waiting))
        if len(shown) > MAX_NODES:
            tree.add(styled_text(f"and {len(shown) - MAX_NODES} more", "dim"))
        done = sum(node["state"] == "done" for node in nodes)
        progress = bar(done, len(nodes)).append(f"  {done} of {len(nodes)} nodes done", "dim")
        return group(tree, progress, *([styled_text(self.note, "red")] if self.note else []))

    def _nested_hooks(self, node: Mapping[str, Json]) -> list[tuple[str, Json]]:
        """The waiting hooks in the nested stack of a node."""
        below = f"{node['resource_name']}/"
        return [(place, hook) for place, hook in self.hooks.items() if place.startswith(below)]


def bar(done: int, count: int) -> "Text":
    full = WIDTH * done // count if count else WIDTH
    return assemble_text(("━" * full, "green"), ("━" * (WIDTH - full), "dim"))


def _urgent(nodes: Sequence[Json]) -> list[Json]:
    """The nodes to show, by urgency if there are too many; without idle cleanup nodes."""
    relevant = [
        node
        for node in nodes
        if not (node["direction"] == "cleanup" and node["state"] in IDLE_CLEANUP)
    ]
    if len(relevant) <= MAX_NODES:
        return relevant
    return sorted(relevant, key=lambda node: URGENCY.index(node["state"]))


def _node(node: Json, hook: Json | None, now: datetime) -> "Text":
    state = node["state"]
    text = assemble_text(
        (output.MARK.get(state, "?") + " ", tables.STYLE.get(state, "")),
        output.label(node["resource_name"]),
        (f"  {node['operation']}", "dim"),
    )
    if hook is not None and state == "parked":
        text.append_text(_waiting_text("", hook, now))
    elif state in ("running", "parked"):
        text.append(f"  {output.node_state(node, now)}", "cyan")
    if node["reason"]:
        text.append(f"  {tables.plain(node['reason'])}", "dim")
    return text


def _waiting_text(place: str, hook: Json, now: datetime) -> "Text":
    count = output.approvals(hook)
    approved = f", {count} approved" if count else ""
    waits = f"waits at {hook['point']}{approved}"
    if hook["deadline"] is not None:
        waits += f", {tables.time_left(hook['deadline'], now)}"
    return assemble_text(place, (f"  {waits}", "yellow"))


#: Seconds between updates of the view; the maximum share of the time for reading the graph.
TICK, MAX_SHARE = 0.25, 0.25
#: Seconds between two connections to the stream, if the server ends it regularly.
RECONNECT_SECONDS = 1.0


@dataclass(slots=True)
class _Position:
    """The ID of the last event read, and the time without a connection."""

    outage: Outage
    last: str = ""


async def watch(client: ApiClient, name: str, as_json: bool) -> ExitCode:
    """Show the stack until its action ends; return the exit code."""
    stack = await find_stack(client, name)
    client.continuation = (
        "the action continues on the server. `headgate watch"
        f" {quote(stack['stack_name'])}` follows it again"
    )
    view: _LineView | _LiveView = (
        _LiveView() if standard_output().is_terminal and not as_json else _LineView(as_json)
    )
    with view.display():
        position = _Position(Outage(view.report))
        while True:
            try:
                code = await _once(client, stack, position, view)
            except RequestError as error:
                await position.outage.endure(error)
                continue
            if code is not None:
                return code
            await libraries.asyncio.sleep(RECONNECT_SECONDS)


async def _once(
    client: ApiClient, stack: Json, position: _Position, view: "_LineView | _LiveView"
) -> ExitCode | None:
    """Follow one connection to the stream. None: it ended before the action."""
    async with client.stream(query={"stack": stack["id"]}, last=position.last) as events:
        # Read the graph after the stream is connected, so that no change is missed.
        graph = await _graph(client, stack)
        state = WatchedStack(stack["stack_name"], stack["id"], stack["path"], graph)
        state.set_hooks(await list_waiting_hooks(client, stack["id"]))
        position.outage.end()
        view.begin(state)
        if state.exit_code is None:
            await _follow(client, stack, events, state, position, view)
        if state.exit_code is not None:
            if state.changed:
                state.graph = await _graph(client, stack)
            view.end(state)
        return state.exit_code


async def _follow(
    client: ApiClient,
    stack: Json,
    events: StreamedEvents,
    state: WatchedStack,
    position: _Position,
    view: "_LineView | _LiveView",
) -> None:
    pending = libraries.asyncio.ensure_future(anext(events, None))
    fresh = libraries.asyncio.get_running_loop().time()
    try:
        while state.exit_code is None:
            done, _ = await libraries.asyncio.wait({pending}, timeout=view.tick)
            if done:
                event = pending.result()
                if event is None:
                    return
                pending = libraries.asyncio.ensure_future(anext(events, None))
                state.apply(event.document)
                view.event(event.document)
            if view.tick is not None:
                fresh = await _refresh(client, stack, state, fresh)
                view.draw(state)
    finally:
        pending.cancel()
        await libraries.asyncio.wait({pending})
        if not _has_event(pending):
            position.last = events.last


def _has_event(pending: "Future[StreamedEvent | None]") -> bool:
    """Whether an event has been read that is not shown yet."""
    return not (pending.cancelled() or pending.exception()) and pending.result() is not None


async def _refresh(client: ApiClient, stack: Json, state: WatchedStack, due: float) -> float:
    """Read the graph again if it changed and is due; return when it is due next."""
    loop = libraries.asyncio.get_running_loop()
    began = loop.time()
    if not state.changed or began < due:
        return due
    state.changed = False
    state.graph = await _graph(client, stack)
    now = loop.time()
    return now + max(TICK, (now - began) / MAX_SHARE)


async def _graph(client: ApiClient, stack: Json) -> Json:
    return await client.call("GET", stack_path(stack, "graph"))


class _LineView:
    """A line for each event, for files and pipes."""

    tick: float | None = None

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def display(self) -> AbstractContextManager[object]:
        return nullcontext()

    def begin(self, state: WatchedStack) -> None:
        if not self._as_json:
            first = f"{state.name}: {state.title}"
            waits = [
                f"{output.label(place)} waits at {hook['point']}"
                + (f" until {hook['deadline']}" if hook["deadline"] else "")
                for place, hook in state.hooks.items()
            ]
            print_line(tables.plain("; ".join([first, *waits])))

    def event(self, document: Json) -> None:
        print_event(document, self._as_json)

    def draw(self, state: WatchedStack) -> None:
        """Lines do not change."""

    def end(self, state: WatchedStack) -> None:
        """The last event is already printed."""

    def report(self, text: str) -> None:
        note(text)


class _LiveView:
    """A tree that is updated in place, for terminals."""

    tick: float | None = TICK

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(console=standard_output(), auto_refresh=False, transient=False)
        self._shown: WatchedStack | None = None

    def display(self) -> AbstractContextManager[object]:
        return self._live

    def begin(self, state: WatchedStack) -> None:
        self._shown = state
        self.draw(state)

    def event(self, document: Json) -> None:
        """The tree shows the change."""

    def draw(self, state: WatchedStack) -> None:
        self._live.update(state.render(datetime.now(UTC)), refresh=True)

    def end(self, state: WatchedStack) -> None:
        self.draw(state)

    def report(self, text: str) -> None:
        """Below the tree, until it is read again."""
        if self._shown is not None:
            self._shown.note = text
            self.draw(self._shown)


async def follow(client: ApiClient, name: str, as_json: bool) -> None:
    """Print new events of a stack until interrupted."""
    stack = await find_stack(client, name)
    client.continuation = (
        f"the server keeps all events. `headgate events {quote(stack['stack_name'])}` lists them"
    )
    position = _Position(Outage())
    while True:
        try:
            async with client.stream(query={"stack": stack["id"]}, last=position.last) as events:
                position.outage.end()
                try:
                    async for event in events:
                        print_event(event.document, as_json)
                finally:
                    position.last = events.last
        except RequestError as error:
            await position.outage.endure(error)
        else:
            await libraries.asyncio.sleep(RECONNECT_SECONDS)


def print_event(document: Json, as_json: bool) -> None:
    print_line(orjson.dumps(document).decode() if as_json else output.event_line(document))


def print_line(text: str) -> None:
    typer.echo(text)
    sys.stdout.flush()
