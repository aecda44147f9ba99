"""headgate template: validate templates, and their JSON Schema for editors."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.connection import url_path
from headgate.errors import RequestError
from hub.cli import options
from hub.cli.commands.sources import Sources, warnings_of
from hub.cli.connection.client import ApiClient
from hub.cli.context import ask, print_result
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs import request_bodies
from hub.cli.inputs.files import InputError
from hub.cli.messages import stop, use_json
from hub.cli.options import JsonServerOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.formats import JSON, TABLE, format_json
from hub.cli.printing.renderables import group
from hub.cli.printing.validation_report import (
    Level,
    OutputFormat,
    ReportedFinding,
    from_error,
    from_local,
    from_warning,
    report,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = Any
COLUMNS = {"name": "PARAMETER", "Type": "TYPE", "Default": "DEFAULT", "Value": "VALUE",
           "Description": "DESCRIPTION"}  # fmt: skip
#: Where the server has the JSON Schema of HOT.
HOT_SCHEMA = "/schemas/hot.json"
app = typer.Typer(help="Validate templates, and check them in editors.", no_args_is_help=True)


@app.command()
@with_options
def validate(
    server: JsonServerOptions,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Template file (HOT or CFN).")
    ] = None,
    template: options.OtherTemplate = None,
    environment: options.Environments = [],  # noqa: B006
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
    strict: options.Strict = False,
    report_format: Annotated[
        OutputFormat,
        typer.Option(
            "--output",
            help="A report of all errors and warnings: JSON, SARIF 2.1.0, or workflow commands of"
            " GitHub Actions.",
        ),
    ] = OutputFormat.TEXT,
) -> None:
    """Validate a template: list all errors, or its parameters if there are none."""
    path = _only_template(file, template)
    use_json(server.as_json or report_format == OutputFormat.JSON)
    if server.as_json and report_format != OutputFormat.TEXT:
        stop("use either --json or --output", ExitCode.USAGE)
    sources = Sources(path, environment)
    query = {"show_nested": str(show_nested).lower()}
    if ignore_errors:
        query["ignore_errors"] = ignore_errors

    async def request(client: ApiClient) -> Json:
        body = sources.body()
        body["parameters"] = request_bodies.parameters(parameter, parameter_file)
        body |= request_bodies.strict(strict)
        return await client.call("POST", url_path("validate"), body=body, query=query)

    if report_format == OutputFormat.TEXT:
        _print_response(server, sources, request)
    else:
        _print_report(server, sources, request, report_format)


def _only_template(file: Path | None, template: Path | None) -> Path:
    """The template, which is an argument or an option. Raises typer's usage error."""
    if (file is None) == (template is None):
        raise typer.BadParameter("name one template: FILE, or -t FILE")
    return file or template or Path()


def _print_response(
    server: JsonServerOptions, sources: Sources, request: Callable[[ApiClient], Awaitable[Json]]
) -> None:
    async def work(client: ApiClient) -> Json:
        try:
            return await sources.check_response(request(client))
        except RequestError as error:
            if not (server.as_json and error.findings):
                raise
            return {"findings": error.findings, "warnings": error.warnings}

    found = ask(server, work)
    print_result(found, JSON if server.as_json else TABLE, lambda: render(found))
    if "findings" in found:
        raise typer.Exit(ExitCode.ERROR)


def _print_report(
    server: JsonServerOptions,
    sources: Sources,
    request: Callable[[ApiClient], Awaitable[Json]],
    report_format: OutputFormat,
) -> None:
    """Print the report to standard output. The exit code is 1 if it has errors."""

    async def work(client: ApiClient) -> list[ReportedFinding]:
        template = str(sources.template)
        try:
            document = await request(client)
        except InputError as error:
            if error.finding is None:
                raise
            return [from_local(error.finding)]
        except RequestError as error:
            if not error.findings:
                raise
            return [
                *(from_error(one, sources.names, template) for one in error.findings),
                *(from_warning(one, sources.names, template) for one in error.warnings),
            ]
        return [from_warning(one, sources.names, template) for one in warnings_of(document)]

    found = ask(server, work)
    if text := report(found, report_format):
        typer.echo(text)
    if any(one.level == Level.ERROR for one in found):
        raise typer.Exit(ExitCode.ERROR)


@app.command()
@with_options
def schema(server: JsonServerOptions) -> None:
    """Print the JSON Schema of HOT templates with the resource types of the server."""
    typer.echo(format_json(ask(server, lambda client: client.read_server(HOT_SCHEMA))))


def render(found: Mapping[str, Json]) -> "RenderableType":
    """The description and parameters of a valid template."""
    rows = list(_rows(found, ""))
    if not rows:
        return f"{tables.plain(found['Description'])}: the template is valid"
    return group(tables.plain(found["Description"]), "", output.table(rows, COLUMNS))


def _rows(found: Mapping[str, Json], path: str) -> Iterator[dict[str, Json]]:
    """Parameters; those of nested templates with the path of their resource."""
    for name, one in found["Parameters"].items():
        yield one | {"name": f"{path}{name}"}
    for name, nested in found.get("NestedParameters", {}).items():
        yield from _rows(nested, f"{path}{name}/")
