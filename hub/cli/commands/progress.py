"""The progress of an action while a command waits for it, on standard error.

On a terminal, a tree that is redrawn in place and removed at the end; elsewhere, a line when
something has changed, but not more often than every few seconds.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from headgate.errors import RequestError
from hub.cli import libraries
from hub.cli.commands.watch import MAX_SHARE, TICK, WatchedStack
from hub.cli.connection.client import ApiClient, find_stack, list_waiting_hooks, stack_path
from hub.cli.messages import report_progress
from hub.cli.printing.consoles import standard_error
from hub.cli.printing.output import answer_hints, label, may_answer
from hub.cli.printing.renderables import group, styled_text
from hub.cli.printing.tables import plain

#: Seconds between lines, and before the first one.
LINE_SECONDS = 5.0
#: Waiting hooks that a line names.
MAX_HOOKS = 3


@asynccontextmanager
async def shown_progress(client: ApiClient, stack_id: str) -> AsyncIterator[None]:
    """Show the progress until the block ends."""
    showing = libraries.asyncio.create_task(
        _draw(client, stack_id) if standard_error().is_terminal else _print_lines(client, stack_id)
    )
    try:
        yield
    finally:
        showing.cancel()
        with suppress(libraries.asyncio.CancelledError):
            await showing


async def _draw(client: ApiClient, stack_id: str) -> None:
    from rich.live import Live

    loop = libraries.asyncio.get_running_loop()
    with Live(console=standard_error(), auto_refresh=False, transient=True) as live:
        while True:
            began = loop.time()
            state = await _read(client, stack_id)
            if state is not None:
                hints = (styled_text(plain(hint), "dim") for hint in progress_hints(state))
                live.update(group(state.render(datetime.now(UTC)), *hints), refresh=True)
            await libraries.asyncio.sleep(max(TICK, (loop.time() - began) / MAX_SHARE))


async def _print_lines(client: ApiClient, stack_id: str) -> None:
    shown = ""
    while True:
        await libraries.asyncio.sleep(LINE_SECONDS)
        state = await _read(client, stack_id)
        if state is not None and (line := progress_line(state)) != shown:
            report_progress(line)
            for hint in progress_hints(state):
                report_progress(hint)
            shown = line


async def _read(client: ApiClient, stack_id: str) -> WatchedStack | None:
    """None: not known now. The command itself reports errors."""
    try:
        stack = await find_stack(client, stack_id)
        graph = await client.call("GET", stack_path(stack, "graph"))
        hooks = await list_waiting_hooks(client, stack_id)
    except RequestError:
        return None
    state = WatchedStack(stack["stack_name"], stack["id"], stack["path"], graph)
    state.set_hooks(hooks)
    return state


def progress_hints(state: WatchedStack) -> list[str]:
    """Who may answer the waiting hooks, and the commands for it, a line each. Pure."""
    hooks = [*state.hooks.values()]
    if len(hooks) != 1:
        return [*answer_hints(hooks, state.stack_id)]
    return [f"Who may answer: {may_answer(hooks[0])}", *answer_hints(hooks, state.stack_id)]


def progress_line(state: WatchedStack) -> str:
    """``web: CREATE_IN_PROGRESS, waiting for approval (1): db at pre-create; 3 of 9 nodes done``.
    Pure."""
    nodes = state.graph["nodes"]
    done = sum(node["state"] == "done" for node in nodes)
    places = [f"{label(place)} at {hook['point']}" for place, hook in state.hooks.items()]
    more = ["..."] if len(places) > MAX_HOOKS else []
    waiting = f": {', '.join(places[:MAX_HOOKS] + more)}" if places else ""
    return f"{state.name}: {state.title}{waiting}; {done} of {len(nodes)} nodes done"
