"""headgate watch: a stack as it changes, from the event stream and the graph."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import orjson
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text
from rich.tree import Tree

from hub.cli import show
from hub.cli.client import Client, Refused, StreamedEvent
from hub.cli.context import out
from hub.cli.exit_codes import Exit, of_status

Json = Any
#: Seconds between two attempts to take the stream up again; how many in a row.
AGAIN, TIMES = 1.0, 30


async def watch(client: Client, name: str, as_json: bool) -> Exit:
    """Show the stack until its action ends; return the exit code of that end."""
    stack = (await client.call("GET", f"/stacks/{name}"))["stack"]
    plain = as_json or not out.is_terminal
    with Live(console=out, auto_refresh=False, transient=False) if not plain else _Quiet() as live:
        stream = events(client, stack["id"])
        async with aclosing(stream):
            pending = asyncio.ensure_future(anext(stream, None))
            try:
                while True:
                    stack, graph, hooks = await _look(client, stack)
                    if not plain:
                        live.update(picture(stack, graph, hooks, datetime.now(UTC)), refresh=True)
                    ended = of_status(stack["stack_status"])
                    done, _ = await asyncio.wait({pending}, timeout=0.5 if ended is None else 0.2)
                    if done:
                        event = pending.result()
                        if event is None:
                            return ended or Exit.ERROR
                        if plain:
                            _line(event.document, as_json)
                        pending = asyncio.ensure_future(anext(stream, None))
                    elif ended is not None:
                        return ended
            finally:
                pending.cancel()
                await asyncio.wait({pending})


class _Quiet:
    """Stands in for a live picture where there is no terminal."""

    def __enter__(self) -> "_Quiet":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, _: RenderableType, *, refresh: bool) -> None:
        return None


async def events(client: Client, stack_id: str | None) -> AsyncGenerator[StreamedEvent, None]:
    """The stream, taken up again from the last id when it breaks."""
    last, failures = "", 0
    while True:
        try:
            async for event in client.events(stack=stack_id, last=last):
                last, failures = event.id, 0
                yield event
        except Refused as error:
            failures += 1
            if error.status or failures > TIMES:
                raise
        await asyncio.sleep(AGAIN)


async def _look(client: Client, stack: Json) -> tuple[Json, Json, Json]:
    path = f"/stacks/{stack['stack_name']}/{stack['id']}"
    now = (await client.call("GET", path, query={"resolve_outputs": "false"}))["stack"]
    graph = await client.call("GET", f"{path}/graph")
    query = {"state": "waiting", "stack": stack["id"]}
    hooks = (await client.call("GET", "/hooks", query=query))["hooks"]
    return now, graph, hooks


def _line(document: Mapping[str, Json], as_json: bool) -> None:
    text = orjson.dumps(document).decode() if as_json else show.event_line(document)
    typer.echo(text)
    sys.stdout.flush()


def picture(stack: Json, graph: Json, hooks: Json, now: datetime) -> RenderableType:
    """A tree with a state for each node, a countdown for each hook, and a bar."""
    nodes = graph["nodes"]
    by_name = {hook["path"]: hook for hook in hooks}
    title = Text.assemble((stack["stack_name"], "bold"), "  ", show.styled(stack["stack_status"]))
    tree = Tree(title)
    for node in nodes:
        if node["direction"] == "cleanup" and node["state"] in ("waiting", "dropped"):
            continue
        tree.add(_node(node, by_name.get(node["resource_name"]), now))
    done = sum(node["state"] == "done" for node in nodes)
    bar = ProgressBar(total=max(1, len(nodes)), completed=done or (not nodes), width=40)
    return Group(tree, bar, Text(f"{done} of {len(nodes)} nodes done", "dim"))


def _node(node: Json, hook: Json | None, now: datetime) -> Text:
    mark = Text(show.MARK.get(node["state"], "?") + " ", show.STYLE.get(node["state"], ""))
    said = Text.assemble(mark, node["resource_name"], (f"  {node['operation']}", "dim"))
    if hook is not None and node["state"] == "parked":
        left = datetime.fromisoformat(hook["deadline"]) - now
        said.append(f"  waits at {hook['point']}, {_left(left.total_seconds())} left", "yellow")
    elif node["reason"]:
        said.append(f"  {node['reason']}", "dim")
    return said


def _left(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
