"""headgate stack cancel, stop, check, suspend, resume: actions on whole stacks."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from hub.cli import bodies, options, outcomes
from hub.cli.client import Client
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    stop,
    uses_server,
)
from hub.cli.exit_codes import Exit
from hub.cli.file_references import Unreadable
from hub.cli.waiting import Outcome, Patience, settle

Json = Any
#: Actions after which a stack is resumed by the action, not by an update.
AT_REST = ("SUSPEND", "RESUME")


async def act(client: Client, stack: Json, action: str) -> None:
    await client.call("POST", outcomes.path_of(stack, "actions"), body={action: None})


def acting(action: str) -> Callable[[Client, Json], Awaitable[None]]:
    return lambda client, stack: act(client, stack, action)


@uses_server
def cancel(
    server: ServerOptions,
    name: options.Name,
    rollback: Annotated[
        bool,
        typer.Option("--rollback/--no-rollback", help="Roll back to the last completed version."),
    ] = True,
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Cancel an update and roll back to the last completed version."""
    patience = outcomes.patience(wait, until_waiting, timeout)
    if rollback:
        back = acting("cancel_update")
        outcomes.carry_out(server, name, "ROLLBACK", patience, back, server.as_json)
    if patience.any:
        stop("--wait has no effect with --no-rollback: the update ends at once", Exit.USAGE)
    _at_once(server, name, "cancel_without_rollback", server.as_json)


@uses_server
def stop_(
    server: ServerOptions,
    name: options.Name,
) -> None:
    """Stop the current action; `headgate stack resume` continues it."""
    _at_once(server, name, "stop", server.as_json)


def _at_once(server: ServerOptions, name: str, action: str, as_json: bool) -> None:
    """Actions that end another action are complete once accepted, whatever the stack's status."""
    nothing = Patience(end=False, until_waiting=False, seconds=0)
    outcomes.carry_out(server, name, "", nothing, acting(action), as_json)


@uses_server
def check(
    server: ServerOptions,
    name: options.Name,
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Check that the physical resources of a stack exist and are healthy."""
    patience = outcomes.patience(wait, until_waiting, timeout)
    outcomes.carry_out(server, name, "CHECK", patience, acting("check"), server.as_json)


@uses_server
def suspend(
    server: ServerOptions,
    name: options.Name,
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Suspend a stack, dependents before their dependencies."""
    patience = outcomes.patience(wait, until_waiting, timeout)
    outcomes.carry_out(server, name, "SUSPEND", patience, acting("suspend"), server.as_json)


@uses_server
def resume(
    server: ServerOptions,
    name: options.Name,
    clear_hook: options.Clear = [],  # noqa: B006 - typer reads it, nobody changes it
    add_hook: options.Add = [],  # noqa: B006
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Resume a suspended stack, or continue a stopped or failed action."""
    patience = outcomes.patience(wait, until_waiting, timeout)
    hooks = bodies.hooks(clear_hook, add_hook)

    async def work(client: Client) -> Outcome:
        stack = await outcomes.find(client, name)
        action, _, status = stack["stack_status"].partition("_")
        if action == "DELETE" and status != "COMPLETE":
            raise Unreadable(
                f"{name}: is {stack['stack_status']}. `headgate stack delete` continues the "
                "deletion; `headgate stack update --existing` creates the missing resources again"
            )
        if action not in AT_REST:
            await client.call("PATCH", outcomes.path_of(stack), body=hooks)
            return await settle(client, stack["id"], "UPDATE", patience)
        if hooks:
            raise Unreadable(
                f"{name}: is {stack['stack_status']}; resume accepts neither "
                "--clear-hook nor --add-hook here. `headgate stack update --existing` resumes the "
                "stack and accepts them"
            )
        await act(client, stack, "resume")
        return await settle(client, stack["id"], "RESUME", patience)

    outcomes.end(ask(server, work), server.as_json)


@uses_server
def pin(
    server: ServerOptions,
    name: options.Name,
    reason: Annotated[str, typer.Option(help="The reason to keep it.")] = "",
) -> None:
    """Keep a stack and its history from being purged. Name a deleted stack by its ID."""
    _pinned(server, name, "PUT", {"reason": reason}, server.as_json)


@uses_server
def unpin(
    server: ServerOptions,
    name: options.Name,
) -> None:
    """Let the retention settings apply to a stack again."""
    _pinned(server, name, "DELETE", None, server.as_json)


def _pinned(server: ServerOptions, name: str, method: str, body: Json, as_json: bool) -> None:
    async def work(client: Client) -> Json:
        stack = await outcomes.find(client, name)
        await client.call(method, outcomes.path_of(stack, "pin"), body=body)
        return await outcomes.find(client, stack["id"])

    stack = ask(server, work)
    print_result(stack, as_json, lambda: outcomes.picture(stack))


def add_to(app: typer.Typer) -> None:
    for command in (cancel, check, suspend, resume, pin, unpin):
        app.command()(command)
    app.command(name="stop")(stop_)
