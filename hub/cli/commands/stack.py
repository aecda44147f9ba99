"""headgate stack: create, update, list, show, delete, history, template, decisions, cancel, stop,
check, suspend, resume, pin and unpin."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.errors import one_of
from engine.words import DRIFT, Action, Status
from headgate.connection import url_path
from hub.cli import options
from hub.cli.commands import stack_change
from hub.cli.commands.converge_rounds import check_repaired
from hub.cli.commands.sources import Sources
from hub.cli.commands.stack_change import Outcome, wait_for_action
from hub.cli.confirmation import confirm, existing_resources, format_count, resource_facts
from hub.cli.connection.client import (
    ApiClient,
    call_stack,
    count_waiting_hooks,
    find_stack,
    list_stacks,
    read_pages,
    read_waiting_hooks,
    stack_path,
)
from hub.cli.context import ask, print_result, print_rows, resolved_project
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs import request_bodies
from hub.cli.inputs.files import InputError
from hub.cli.inputs.request_bodies import parameters
from hub.cli.messages import stop
from hub.cli.options import ServerOptions, WaitOptions, newest, with_options
from hub.cli.printing import output, plan_output, tables
from hub.cli.printing.renderables import group

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = Any

#: What --status accepts: the second part of a status, or both.
STATUSES = tuple(Status) + tuple(f"{action}_{status}" for action in Action for status in Status)


def stack_status(text: str) -> str:
    """Check a status. Raises typer's usage error."""
    if text.upper() not in STATUSES:
        near = one_of(text.upper(), STATUSES, "Known")
        raise typer.BadParameter(f'"{text}" is not a status of a stack. {near}')
    return text


app = typer.Typer(help="Create, update, show, list and delete stacks.", no_args_is_help=True)


@app.command()
@with_options
def create(
    server: ServerOptions,
    wait: WaitOptions,
    name: options.NewName,
    template: options.Template,
    environment: options.Environments = [],  # noqa: B006
    parameter: options.Parameters = [],  # noqa: B006
    parameter_file: options.ParameterFiles = [],  # noqa: B006
    tag: options.NewTags = [],  # noqa: B006
    stack_timeout: options.Minutes = None,
    rollback: options.NewRollback = None,
    break_at: options.Add = [],  # noqa: B006
    former_add: options.FormerAdd = [],  # noqa: B006
    strict: options.Strict = False,
    dry_run: options.DryRun = False,
    plan: options.PlanDigest = "",
) -> None:
    """Create a stack."""
    sources = Sources(template, environment)
    parts = request_bodies.plan_digest(plan) | request_bodies.strict(strict)

    def body() -> dict[str, Json]:
        created = sources.body()
        created |= {"stack_name": name, "parameters": parameters(parameter, parameter_file)}
        created |= request_bodies.stack_options(tag, stack_timeout, rollback)
        return created | request_bodies.hook_changes((), break_at + former_add) | parts

    async def work(client: ApiClient) -> Outcome:
        request = client.call("POST", url_path("stacks"), body=body())
        created = await sources.check_response(request)
        return await wait_for_action(client, created["stack"]["id"], "CREATE", wait)

    if dry_run:
        path = url_path("stacks", "preview")
        preview = ask(
            server, lambda client: sources.check_response(client.call("POST", path, body=body()))
        )
        print_result(preview, server.format, lambda: plan_output.render(name, preview["stack"]))
        return
    stack_change.finish(ask(server, work), server.format)


@app.command()
@with_options
def update(
    server: ServerOptions,
    wait: WaitOptions,
    name: options.Name,
    template: options.OtherTemplate = None,
    environment: options.Environments = [],  # noqa: B006
    parameter: options.Parameters = [],  # noqa: B006
    parameter_file: options.ParameterFiles = [],  # noqa: B006
    existing: options.Existing = False,
    clear_parameter: options.ClearParameters = [],  # noqa: B006
    tag: options.Tags = [],  # noqa: B006
    stack_timeout: options.Minutes = None,
    rollback: options.Rollback = None,
    clear_hook: options.Clear = [],  # noqa: B006
    break_at: options.Add = [],  # noqa: B006
    former_clear: options.FormerClear = [],  # noqa: B006
    former_add: options.FormerAdd = [],  # noqa: B006
    only: options.Only = [],  # noqa: B006
    except_: options.Except = [],  # noqa: B006
    moved: options.Moved = [],  # noqa: B006
    converge: Annotated[
        bool,
        typer.Option(
            "--converge", help="Also repair resources that differ from their recorded state."
        ),
    ] = False,
    strict: options.Strict = False,
    dry_run: options.DryRun = False,
    plan: options.PlanDigest = "",
) -> None:
    """Update a stack, with a new template or with --existing."""
    method = "PATCH" if existing else "PUT"
    if template is None and not existing:
        stop("name a template with -t, or use --existing to keep the stored one", ExitCode.USAGE)
    sources = Sources(template, environment)
    parts = request_bodies.partial_update(only, except_, moved) | request_bodies.plan_digest(plan)
    parts |= request_bodies.strict(strict) | ({"converge": True} if converge else {})

    def body() -> dict[str, Json]:
        created = sources.body()
        created |= {
            "parameters": parameters(parameter, parameter_file),
            "clear_parameters": clear_parameter,
        }
        created |= request_bodies.stack_options(tag, stack_timeout, rollback)
        created |= request_bodies.hook_changes(clear_hook + former_clear, break_at + former_add)
        return created | parts

    async def start(client: ApiClient, stack: Json) -> None:
        await sources.check_response(client.call(method, stack_path(stack), body=body()))

    def preview_of(client: ApiClient) -> Awaitable[Json]:
        nested = {"show_nested": "true"}
        call = call_stack(client, name, method, "preview", body=body(), query=nested)
        return sources.check_response(call)

    if dry_run:
        preview = ask(server, preview_of)
        print_result(preview, server.format, lambda: plan_output.render(name, preview))
        return

    async def check(client: ApiClient, outcome: Outcome) -> Outcome:
        return await check_repaired(client, outcome, parts)

    stack_change.run(server, name, "UPDATE", wait, start, check if converge else None)


@app.command(name="list")
@with_options
def list_(
    server: ServerOptions,
    status: Annotated[
        list[str],
        typer.Option(
            parser=stack_status,
            metavar="STATUS",
            help="Only stacks with this status, such as COMPLETE or CREATE_FAILED; repeatable.",
        ),
    ] = [],  # noqa: B006
    tag: Annotated[
        list[str], typer.Option(metavar="TAG", help="Only stacks with this tag; repeatable.")
    ] = [],  # noqa: B006
    deleted: Annotated[bool, typer.Option("--deleted", help="Include deleted stacks.")] = False,
    nested: Annotated[bool, typer.Option("--nested", help="Include nested stacks.")] = False,
    limit: options.Limit = None,
) -> None:
    """List stacks, newest first."""
    query: dict[str, str | list[str]] = {
        "show_deleted": str(deleted).lower(),
        "show_nested": str(nested).lower(),
        "status": status,
    }
    if tag:
        query["tags"] = ",".join(tag)

    async def work(client: ApiClient) -> list[Json]:
        stacks = await list_stacks(client, query, limit)
        counts = await count_waiting_hooks(client)
        return [one | {"hooks_waiting": counts.get(one["id"], 0)} for one in stacks]

    stacks = ask(server, work)
    columns: tables.Columns = {
        "stack_name": "NAME",
        "stack_status": tables.status_column(),
        "creation_time": tables.past_column("CREATED"),
        "updated_time": tables.past_column("UPDATED"),
        "id": tables.id_column(),
    }
    columns = {**columns, "parent": tables.id_column("PARENT")} if nested else columns
    selected = [f"--status {one}" for one in status] + [f"--tag {one}" for one in tag]
    none = f"no stack in the project {resolved_project(server)}"
    none += f" matches {', '.join(selected)}" if selected else ""
    print_rows(stacks, server.format, lambda: output.table(stacks, columns), none)


@app.command(name="show")
@with_options
def show_(
    server: ServerOptions,
    name: options.Name,
) -> None:
    """Show a stack with its outputs and resources."""

    async def work(client: ApiClient) -> tuple[Json, list[Json], list[str]]:
        stack = await find_stack(client, name, outputs=True)
        found = await client.call("GET", stack_path(stack, "resources"))
        hooks = await read_waiting_hooks(client, stack)
        document = stack | {"resources": found["resources"], "hooks_waiting": len(hooks)}
        if server.format.is_document or stack["stack_status"].startswith("DELETE_"):
            return document, hooks, []
        why = await client.call("GET", stack_path(stack, "why"))
        return document, hooks, output.unrepaired_sentences(why)

    stack, hooks, drift = ask(server, work)
    print_result(stack, server.format, lambda: output.render_stack(stack, hooks, drift))


@app.command()
@with_options
def delete(
    server: ServerOptions,
    wait: WaitOptions,
    name: options.Name,
    yes: options.Yes = False,
) -> None:
    """Delete a stack and its physical resources."""
    if not yes:
        stack, resources = ask(server, lambda client: read_lost(client, name))
        question = f"Delete the stack {stack['stack_name']} and its physical resources?"
        confirm(question, delete_facts(stack, resources), yes)
        name = stack["id"]

    async def start(client: ApiClient, stack: Json) -> None:
        await client.call("DELETE", stack_path(stack))

    stack_change.run(server, name, "DELETE", wait, start)


async def read_lost(client: ApiClient, name: str) -> tuple[Json, list[Json]]:
    """A stack with the number of its waiting hooks, and its resources with those of nested
    stacks."""
    stack = await find_stack(client, name)
    query = {"nested_depth": str(MAX_DEPTH)}
    found = await client.call("GET", stack_path(stack, "resources"), query=query)
    hooks = await read_waiting_hooks(client, stack)
    return stack | {"hooks_waiting": len(hooks)}, found["resources"]


def delete_facts(stack: Json, resources: Sequence[Json]) -> list[str]:
    """What a delete removes, a line each. Pure."""
    status, existing = status_fact(stack), existing_resources(resources)
    if not existing:
        return [f"{status} and has no physical resources."]
    count = format_count(len(existing), "resource")
    retained = [one for one in existing if one.get("deletion_policy") == "Retain"]
    lines = [f"{status} and has {count}:", *resource_facts(existing)]
    if retained:
        lines.append(f"Because of `deletion_policy: Retain`, {len(retained)} of them stay:")
        lines += resource_facts(retained)
    return lines


def status_fact(stack: Json) -> str:
    """``Stack web (ID) is CREATE_IN_PROGRESS, waiting for approval (1)``. Pure."""
    status = tables.status_text(stack["stack_status"], stack["hooks_waiting"])
    return f"Stack {stack['stack_name']} ({stack['id']}) is {status}"


@app.command()
@with_options
def history(
    server: ServerOptions,
    name: options.Name,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of actions.")] = 100,
) -> None:
    """List the template versions and actions of a stack, newest first."""

    async def work(client: ApiClient) -> tuple[Json, int]:
        stack = await find_stack(client, name)
        found = await client.call("GET", stack_path(stack, "versions"), query={"limit": str(limit)})
        running = any(one["state"] == "running" for one in found["traversals"])
        if server.format.is_document or not running:
            return found, 0
        hooks = await read_waiting_hooks(client, stack)
        return found, sum(one["point"] != DRIFT for one in hooks)

    history, waiting = ask(server, work)
    print_result(history, server.format, lambda: render_history(history, waiting))


def render_history(history: Json, waiting: int) -> "RenderableType":
    """waiting: hooks of the running action that wait for an answer."""
    versions = [one | {"state": _version_state(one)} for one in history["versions"]]
    version_columns: tables.Columns = {
        "version": "VERSION",
        "state": "STATE",
        "created_at": tables.past_column("CREATED"),
        "requested_by": tables.Column("BY", drop=2),
        "description": tables.Column("DESCRIPTION", drop=1),
    }
    columns: tables.Columns = {
        "number": "NUMBER",
        "action": "ACTION",
        "version": tables.Column("VERSION", drop=2),
        "state": tables.status_column("STATE"),
        "started_at": tables.past_column("STARTED"),
        "ended_at": tables.Column("ENDED", tables.Content.PAST, drop=1),
        "worked_seconds": tables.Column("WORKED", drop=3),
        "requested_by": tables.Column("BY", drop=4),
        "out_of_date": "OUT OF DATE",
        "reason": "REASON",
    }
    rows = [_action_row(one, waiting) for one in history["traversals"]]
    traversals = output.table(rows, columns)
    return group(output.table(versions, version_columns), "", traversals)


def _action_row(action: Json, waiting: int) -> Json:
    """The reason only if the action did not complete, the duration with its unit, and the number of
    waiting hooks if it is running."""
    state = action["state"]
    hooks_waiting = waiting if state == tables.RUNNING else 0
    reason = "" if state == "complete" else action["reason"]
    worked = action["worked_seconds"]
    shown = f"{worked:g} s" if worked < 60 else tables.span(int(worked))
    return {**action, "hooks_waiting": hooks_waiting, "reason": reason, "worked_seconds": shown}


def _version_state(version: Json) -> str:
    return ", ".join(word for word in ("current", "reached") if version[word])


@app.command()
@with_options
def decisions(
    server: ServerOptions,
    name: options.Name,
    limit: options.NewestLimit = None,
) -> None:
    """Show the audit log of a stack: all decisions with principal, time, channel and reason."""

    async def work(client: ApiClient) -> list[Json]:
        path = stack_path(await find_stack(client, name), "decisions")
        return await read_pages(client, path, "decisions", {"limit": "1000"}, marker="after")

    entries = newest(ask(server, work), limit)
    columns: tables.Columns = {
        "number": "NUMBER",
        "at": tables.past_column("WHEN"),
        "by": "WHO",
        "channel": "CHANNEL",
        "what": "WHAT",
        "reason": "REASON",
        "hook_id": tables.id_column("HOOK"),
    }
    rows = [output.entry_row(one) for one in entries]
    none = f"no decision about the stack {name}"
    print_rows(entries, server.format, lambda: output.table(rows, columns), none)


#: Levels of nested stacks whose resources a question counts: more than a server allows.
MAX_DEPTH = 100
#: Statuses that the action `resume` ends; an update ends all others.
RESUMABLE = ("SUSPEND", "RESUME")


async def act(client: ApiClient, stack: Json, action: str) -> None:
    await client.call("POST", stack_path(stack, "actions"), body={action: None})


def start_action(action: str) -> Callable[[ApiClient, Json], Awaitable[None]]:
    return lambda client, stack: act(client, stack, action)


@app.command()
@with_options
def cancel(
    server: ServerOptions,
    wait: WaitOptions,
    name: options.Name,
    rollback: Annotated[
        bool,
        typer.Option("--rollback/--no-rollback", help="Roll back to the last completed version."),
    ] = True,
    yes: options.Yes = False,
) -> None:
    """Cancel an update and roll back to the last completed version.

    With --no-rollback, it does not ask for confirmation: resources stay as they are.
    """
    if rollback:
        if not yes:
            stack, versions = ask(server, lambda client: _read_rolled_back(client, name))
            question = f"Cancel the update of {stack['stack_name']} and roll it back?"
            confirm(question, rollback_facts(stack, versions), yes)
            name = stack["id"]
        stack_change.run(server, name, "ROLLBACK", wait, start_action("cancel_update"))
    if wait.any:
        stop("--wait has no effect with --no-rollback: the update ends at once", ExitCode.USAGE)
    stack_change.run(server, name, "", WaitOptions(), start_action("cancel_without_rollback"))


async def _read_rolled_back(client: ApiClient, name: str) -> tuple[Json, list[Json]]:
    """A stack with the number of its waiting hooks, and its template versions."""
    stack = await find_stack(client, name)
    found = await client.call("GET", stack_path(stack, "versions"), query={"limit": "1"})
    hooks = await read_waiting_hooks(client, stack)
    return stack | {"hooks_waiting": len(hooks)}, found["versions"]


def rollback_facts(stack: Json, versions: Sequence[Json]) -> list[str]:
    """What a rollback undoes, a line each. Pure."""
    earlier = [one["version"] for one in versions if one["reached"] and not one["current"]]
    target = f"version {max(earlier)}" if earlier else "its last completed version"
    return [
        f"{status_fact(stack)}.",
        f"The update fails, and the stack is rolled back to {target}: resources that the update has"
        " created are deleted, and those that it has changed are changed back.",
    ]


@app.command(name="stop")
@with_options
def stop_(server: ServerOptions, name: options.Name) -> None:
    """Stop the current action, so that it can be continued."""
    stack_change.run(server, name, "", WaitOptions(), start_action("stop"))


@app.command()
@with_options
def check(server: ServerOptions, wait: WaitOptions, name: options.Name) -> None:
    """Check that the physical resources of a stack exist and are healthy."""
    stack_change.run(server, name, "CHECK", wait, start_action("check"))


@app.command()
@with_options
def suspend(server: ServerOptions, wait: WaitOptions, name: options.Name) -> None:
    """Suspend a stack, dependents before their dependencies."""
    stack_change.run(server, name, "SUSPEND", wait, start_action("suspend"))


@app.command()
@with_options
def resume(
    server: ServerOptions,
    wait: WaitOptions,
    name: options.Name,
    clear_hook: options.Clear = [],  # noqa: B006
    break_at: options.Add = [],  # noqa: B006
    former_clear: options.FormerClear = [],  # noqa: B006
    former_add: options.FormerAdd = [],  # noqa: B006
) -> None:
    """Resume a suspended stack, or continue a stopped or failed action."""
    hooks = request_bodies.hook_changes(clear_hook + former_clear, break_at + former_add)

    async def work(client: ApiClient) -> Outcome:
        stack = await find_stack(client, name)
        action, _, status = stack["stack_status"].partition("_")
        if action == "DELETE" and status != "COMPLETE":
            raise InputError(
                f"{name}: is {stack['stack_status']}. `headgate stack delete` continues the "
                "deletion; `headgate stack update --existing` creates the missing resources again"
            )
        if action not in RESUMABLE:
            await client.call("PATCH", stack_path(stack), body=hooks)
            return await wait_for_action(client, stack["id"], "UPDATE", wait)
        if hooks:
            raise InputError(
                f"{name}: is {stack['stack_status']}; resume accepts neither "
                "--clear-hook nor --break-at here. `headgate stack update --existing` resumes the "
                "stack and accepts them"
            )
        await act(client, stack, "resume")
        return await wait_for_action(client, stack["id"], "RESUME", wait)

    stack_change.finish(ask(server, work), server.format)


@app.command()
@with_options
def pin(
    server: ServerOptions,
    name: options.Name,
    reason: Annotated[str, typer.Option(help="The reason to keep it.")] = "",
) -> None:
    """Keep a stack and its history from being purged. Name a deleted stack by its ID."""
    _set_pin(server, name, "PUT", {"reason": reason})


@app.command()
@with_options
def unpin(server: ServerOptions, name: options.Name) -> None:
    """Let the retention settings apply to a stack again."""
    _set_pin(server, name, "DELETE", None)


def _set_pin(server: ServerOptions, name: str, method: str, body: Json) -> None:
    async def work(client: ApiClient) -> Json:
        stack = await find_stack(client, name)
        await client.call(method, stack_path(stack, "pin"), body=body)
        hooks = await read_waiting_hooks(client, stack)
        return await find_stack(client, stack["id"]) | {"hooks_waiting": len(hooks)}

    stack = ask(server, work)
    print_result(stack, server.format, lambda: output.render_stack(stack))
