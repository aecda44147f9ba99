"""headgate stack ...: create, update, list, show and delete."""

from typing import Annotated, Any

import typer

from hub.cli import bodies, options, outcomes, plans, show
from hub.cli.client import Client, place
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    stop,
    uses_server,
)
from hub.cli.exit_codes import Exit
from hub.cli.files import environment_body, joined, parameters, template_body
from hub.cli.waiting import Outcome, settle

Json = Any
app = typer.Typer(help="Create, update, show, list and delete stacks.", no_args_is_help=True)


@app.command()
@uses_server
def create(
    server: ServerOptions,
    name: options.NewName,
    template: options.Template,
    environment: options.Environments = [],  # noqa: B006 - typer reads it, nobody changes it
    parameter: options.Parameters = [],  # noqa: B006
    parameter_file: options.ParameterFiles = [],  # noqa: B006
    tag: options.Tags = [],  # noqa: B006
    stack_timeout: options.Minutes = None,
    rollback: options.Rollback = None,
    break_at: options.Add = [],  # noqa: B006
    dry_run: options.DryRun = False,
    plan: options.PlanDigest = "",
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Create a stack."""
    patience = outcomes.patience(wait, until_waiting, timeout)

    def body() -> dict[str, Json]:
        made = joined(template_body(template), environment_body(environment))
        made |= {"stack_name": name, "parameters": parameters(parameter, parameter_file)}
        made |= bodies.options(tag, stack_timeout, rollback)
        return made | bodies.hooks((), break_at) | bodies.plan(plan)

    async def preview(client: Client) -> Json:
        return await client.call("POST", place("stacks", "preview"), body=body())

    async def work(client: Client) -> Outcome:
        made = await client.call("POST", place("stacks"), body=body())
        return await settle(client, made["stack"]["id"], "CREATE", patience)

    if dry_run:
        found = ask(server, preview)
        print_result(found, server.as_json, lambda: plans.picture(name, found["stack"]))
        return
    outcomes.end(ask(server, work), server.as_json)


@app.command()
@uses_server
def update(
    server: ServerOptions,
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
    add_hook: options.Add = [],  # noqa: B006
    only: options.Only = [],  # noqa: B006
    except_: options.Except = [],  # noqa: B006
    moved: options.Moved = [],  # noqa: B006
    dry_run: options.DryRun = False,
    plan: options.PlanDigest = "",
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Update a stack, with a new template or with --existing."""
    patience = outcomes.patience(wait, until_waiting, timeout)
    server, method = server, "PATCH" if existing else "PUT"
    if template is None and not existing:
        stop("name a template with -t, or use --existing to keep the stored one", Exit.USAGE)
    parts = bodies.partial(only, except_, moved) | bodies.plan(plan)

    def body() -> dict[str, Json]:
        made = joined(template_body(template) if template else {}, environment_body(environment))
        made |= {
            "parameters": parameters(parameter, parameter_file),
            "clear_parameters": clear_parameter,
        }
        made |= bodies.options(tag, stack_timeout, rollback)
        return made | bodies.hooks(clear_hook, add_hook) | parts

    async def preview(client: Client) -> Json:
        stack = await outcomes.find(client, name)
        path, query = outcomes.path_of(stack, "preview"), {"show_nested": "true"}
        return await client.call(method, path, body=body(), query=query)

    async def change(client: Client, stack: Json) -> None:
        await client.call(method, outcomes.path_of(stack), body=body())

    if dry_run:
        found = ask(server, preview)
        print_result(found, server.as_json, lambda: plans.picture(name, found))
        return
    outcomes.carry_out(server, name, "UPDATE", patience, change, server.as_json)


@app.command(name="list")
@uses_server
def list_(
    server: ServerOptions,
    status: Annotated[
        list[str], typer.Option(help="Status, such as COMPLETE or CREATE_FAILED; repeatable.")
    ] = [],  # noqa: B006
    tag: Annotated[list[str], typer.Option(help="Stacks with this tag; repeatable.")] = [],  # noqa: B006
    deleted: Annotated[bool, typer.Option("--deleted", help="Include deleted stacks.")] = False,
    nested: Annotated[bool, typer.Option("--nested", help="Include nested stacks.")] = False,
) -> None:
    """List stacks, newest first."""
    query = [("show_deleted", str(deleted).lower()), ("show_nested", str(nested).lower())]
    query += [("status", one) for one in status]
    query += [("tags", ",".join(tag))] if tag else []
    path = place("stacks")
    stacks = ask(server, lambda client: client.call("GET", path, query=query))["stacks"]
    columns = {"stack_name": "NAME", "stack_status": "STATUS", "creation_time": "CREATED",
               "updated_time": "UPDATED", "id": "ID"}  # fmt: skip
    columns |= {"parent": "PARENT"} if nested else {}
    print_result(stacks, server.as_json, lambda: show.table(stacks, columns))


@app.command(name="show")
@uses_server
def show_(
    server: ServerOptions,
    name: options.Name,
) -> None:
    """Show a stack with its outputs and resources."""

    async def work(client: Client) -> Json:
        stack = (await client.call("GET", place("stacks", name)))["stack"]
        found = await client.call("GET", outcomes.path_of(stack, "resources"))
        return stack | {"resources": found["resources"]}

    stack = ask(server, work)
    print_result(stack, server.as_json, lambda: outcomes.picture(stack))


@app.command()
@uses_server
def delete(
    server: ServerOptions,
    name: options.Name,
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Delete a stack and its physical resources."""
    patience = outcomes.patience(wait, until_waiting, timeout)

    async def change(client: Client, stack: Json) -> None:
        await client.call("DELETE", outcomes.path_of(stack))

    outcomes.carry_out(server, name, "DELETE", patience, change, server.as_json)
