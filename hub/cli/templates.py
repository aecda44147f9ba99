"""headgate template ...: validate templates."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from hub.cli import options, show
from hub.cli.client import Client, Refused, place
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    uses_server,
)
from hub.cli.exit_codes import Exit
from hub.cli.files import environment_body, joined, parameters, template_body

Json = Any
COLUMNS = {"name": "PARAMETER", "Type": "TYPE", "Default": "DEFAULT", "Value": "VALUE",
           "Description": "DESCRIPTION"}  # fmt: skip
app = typer.Typer(help="Validate templates.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """One command so far, which is named all the same."""


@app.command()
@uses_server
def validate(
    server: ServerOptions,
    template: options.Template,
    environment: options.Environments = [],  # noqa: B006 - typer reads it, nobody changes it
    parameter: options.Parameters = [],  # noqa: B006
    parameter_file: options.ParameterFiles = [],  # noqa: B006
    show_nested: Annotated[
        bool, typer.Option("--show-nested", help="Include the parameters of nested templates.")
    ] = False,
    ignore_errors: Annotated[
        str,
        typer.Option(
            metavar="CODES", help="Error codes to ignore, separated by commas, such as 99001."
        ),
    ] = "",
) -> None:
    """Validate a template: list all errors, or its parameters."""
    query = {"show_nested": str(show_nested).lower()}
    if ignore_errors:
        query["ignore_errors"] = ignore_errors

    async def work(client: Client) -> Json:
        body = joined(template_body(template), environment_body(environment))
        body["parameters"] = parameters(parameter, parameter_file)
        try:
            return await client.call("POST", place("validate"), body=body, query=query)
        except Refused as error:
            if not (server.as_json and error.findings):
                raise
            return {"findings": error.findings}

    found = ask(server, work)
    print_result(found, server.as_json, lambda: picture(found))
    if "findings" in found:
        raise typer.Exit(Exit.ERROR)


def picture(found: Mapping[str, Json]) -> RenderableType:
    """A template for people."""
    rows = list(_rows(found, ""))
    if not rows:
        return f"{show.plain(found['Description'])}: the template is valid"
    return Group(show.plain(found["Description"]), "", show.table(rows, COLUMNS))


def _rows(found: Mapping[str, Json], path: str) -> Iterator[dict[str, Json]]:
    """Parameters; those of nested templates behind the path of their resource."""
    for name, one in found["Parameters"].items():
        yield one | {"name": f"{path}{name}"}
    for name, nested in found.get("NestedParameters", {}).items():
        yield from _rows(nested, f"{path}{name}/")
