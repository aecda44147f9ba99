"""Changes of a stack: start an action, wait for it, print the stack, and exit with its result."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, NoReturn

import typer

from engine.back_off import BackOff
from engine.words import DRIFT
from headgate.connection import url_path
from headgate.errors import RequestError
from hub.cli import libraries
from hub.cli.connection.client import (
    ApiClient,
    find_stack,
    list_waiting_hooks,
    read_waiting_hooks,
    stack_path,
)
from hub.cli.context import ask, print_result
from hub.cli.exit_codes import ExitCode, of_status
from hub.cli.messages import complain, stop
from hub.cli.options import ServerOptions, WaitOptions
from hub.cli.printing import output
from hub.cli.printing.formats import ResultFormat

Json = Any
#: Seconds between reads of the status: short at first, because small stacks end soon.
POLLS = BackOff(0.05, 1.0)
#: Actions that end any other action as failed.
OVERRIDING = ("DELETE", "ROLLBACK")
#: Actions that a newer one of any of these kinds continues.
CONTINUED = ("CREATE", "UPDATE", "ADOPT")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The current stack, and the exit code of the command. message: for standard error. hooks:
    waiting ones, if the command has waited for them."""

    stack: Json
    code: ExitCode
    message: str = ""
    hooks: Sequence[Json] = ()


def run(
    server: ServerOptions,
    name: str,
    action: str,
    wait: WaitOptions,
    start: Callable[[ApiClient, Json], Awaitable[None]],
    check: Callable[[ApiClient, Outcome], Awaitable[Outcome]] | None = None,
) -> NoReturn:
    """Find a stack, start an action with `start`, wait for it, and end the command. check: what it
    returns counts, if the command waits."""

    async def work(client: ApiClient) -> Outcome:
        stack = await find_stack(client, name)
        await start(client, stack)
        outcome = await wait_for_action(client, stack["id"], action, wait)
        return await check(client, outcome) if check and wait.any else outcome

    finish(ask(server, work), server.format)


def finish(outcome: Outcome, result_format: ResultFormat) -> NoReturn:
    """Print the stack and exit."""
    print_result(
        outcome.stack, result_format, lambda: output.render_stack(outcome.stack, outcome.hooks)
    )
    exit_with(outcome)


def exit_with(outcome: Outcome) -> NoReturn:
    if outcome.message:
        complain(outcome.message, outcome.code)
    raise typer.Exit(outcome.code)


async def wait_for_action(
    client: ApiClient, stack_id: str, action: str, wait: WaitOptions
) -> Outcome:
    """The stack now, or when the action ends, or when the timeout expires."""
    if action:
        client.continuation = continuing_action({"id": stack_id}, action)
    if not wait.any:
        stack, _ = await _read_result(client, stack_id, action)
        return Outcome(stack, ExitCode.COMPLETE)
    async with client.waiting():
        outcome = await _wait(client, stack_id, action, wait)
        if outcome is not None:
            stack, hooks = await _read_result(client, stack_id, action)
            return replace(outcome, stack=stack, hooks=hooks)
    with reading_after_timeout(client):
        stack, hooks = await _read_result(client, stack_id, action)
    message = f"--timeout has expired; {continuing_action(stack, action)}"
    return Outcome(stack, ExitCode.TIMED_OUT, message, hooks)


@contextmanager
def reading_after_timeout(client: ApiClient) -> Iterator[None]:
    """If the server does not respond, end the command as one whose --timeout has expired."""
    from hub.cli.connection.outage import is_transient, reason_of

    try:
        yield
    except RequestError as error:
        if not is_transient(error):
            raise
        text = f"--timeout has expired: {reason_of(error)}. {client.addition_to(error)}"
        stop(text, ExitCode.TIMED_OUT)


async def _wait(client: ApiClient, stack_id: str, action: str, wait: WaitOptions) -> Outcome | None:
    """None: the timeout has expired."""
    from hub.cli.commands.progress import shown_progress

    try:
        async with libraries.asyncio.timeout(wait.timeout), shown_progress(client, stack_id):
            return await _poll(client, stack_id, action, wait)
    except TimeoutError:
        return None


async def _poll(client: ApiClient, stack_id: str, action: str, wait: WaitOptions) -> Outcome:
    polls = 0
    while True:
        stack = await _read_stack(client, stack_id, action, outputs=False)
        client.continuation = continuing_action(stack, action)
        outcome = end_of_action(stack, action)
        if outcome is not None:
            client.continuation = ended_action(stack, action)
            return outcome
        if wait.until_waiting and await _only_hooks_left(client, stack):
            return Outcome(stack, ExitCode.WAITING)
        polls += 1
        await libraries.asyncio.sleep(POLLS.ceiling(polls))


async def _read_result(client: ApiClient, stack_id: str, action: str) -> tuple[Json, list[Json]]:
    """The stack, with the number of its waiting hooks, and these hooks."""
    stack = await _read_stack(client, stack_id, action)
    hooks = await read_waiting_hooks(client, stack)
    return stack | {"hooks_waiting": len(hooks)}, hooks


async def _read_stack(client: ApiClient, stack_id: str, action: str, outputs: bool = True) -> Json:
    query = {} if outputs else {"resolve_outputs": "false"}
    try:
        return (await client.call("GET", url_path("stacks", stack_id), query=query))["stack"]
    except RequestError as error:
        if error.status == 404 and action == "DELETE":  # the deleted stack is already purged
            return {"id": stack_id, "stack_status": "DELETE_COMPLETE"}
        raise


def continuing_action(stack: Mapping[str, Json], action: str) -> str:
    """What the server does if the command ends while it waits for an action. Pure."""
    name = quote(stack.get("stack_name") or stack["id"])
    return (
        f"the {action.lower()} continues on the server. `headgate watch {name}`"
        f" follows it, `headgate stack stop {name}` stops it"
    )


def ended_action(stack: Mapping[str, Json], action: str) -> str:
    """What to say if the command ends before it has printed the result. Pure."""
    name = quote(stack.get("stack_name") or stack["id"])
    return f"the {action.lower()} has ended. `headgate stack show {name}` shows its result"


def end_of_action(stack: Mapping[str, Json], action: str) -> Outcome | None:
    """The outcome of an action by the status of its stack; None: it has not ended. Pure."""
    status = str(stack["stack_status"])
    code = of_status(status)
    current = status.partition("_")[0]
    if current == "ROLLBACK" and code is None:
        return None  # the automatic rollback is a part of the action
    if current != action and (current in OVERRIDING or action not in CONTINUED):
        what = (
            "the stack was rolled back"
            if current == "ROLLBACK"
            else "another action superseded this one"
        )
        return Outcome(stack, ExitCode.FAILED, f"{what}: {status}")
    return None if code is None else Outcome(stack, code)


async def _only_hooks_left(client: ApiClient, stack: Json) -> bool:
    graph = await client.call("GET", stack_path(stack, "graph"), query={"nested": "true"})
    nodes = nodes_of_tree(graph)
    if not only_hooks_left(nodes, nodes):
        return False
    return only_hooks_left(nodes, await list_waiting_hooks(client, stack["id"]))


def only_hooks_left(nodes: Sequence[Json], hooks: Sequence[Json]) -> bool:
    """Whether no node can run, and there is a waiting hook for each parked node. Hooks about drift
    are of no node. Pure."""
    hooks = [one for one in hooks if one.get("point") != DRIFT]
    states = [node["state"] for node in nodes]
    busy = any(state in ("ready", "running") for state in states)
    parked = states.count("parked")
    return not busy and 0 < parked <= len(hooks)


def nodes_of_tree(graph: Mapping[str, Json]) -> list[Json]:
    """The nodes of a stack and its nested stacks, without those that wait for a nested stack."""
    nested = graph.get("stacks") or []
    known = {one["stack_id"] for one in nested}
    nodes = [*graph["nodes"], *(node for one in nested for node in one["nodes"])]
    return [
        node for node in nodes if not (node.get("nested_stack_id") in known and _is_parked(node))
    ]


def _is_parked(node: Mapping[str, Json]) -> bool:
    """Whether a node is parked in its operation."""
    return bool((node["state"], node["phase"]) == ("parked", "execute"))
