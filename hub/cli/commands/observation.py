"""headgate observation."""

from http import HTTPStatus
from typing import Annotated, Any

import typer

from headgate.connection import url_path
from headgate.errors import RequestError
from hub.cli.confirmation import format_count
from hub.cli.connection.client import ApiClient
from hub.cli.context import ask, error_text, print_result, request_error
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing.consoles import standard_error
from hub.cli.printing.renderables import wrapped_text

Json = Any
app = typer.Typer(help="Report changes of physical resources.", no_args_is_help=True)


@app.callback()
def observation() -> None: ...


@app.command()
@with_options
def report(
    server: ServerOptions,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Physical IDs of the resources.")
    ],
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="The type of all of them.")
    ] = None,
) -> None:
    """Report that physical resources may have changed. Headgate observes them at once."""
    changes = [{"physical_resource_id": one, "type": type_} for one in ids]
    body = {"observations": changes}

    async def work(client: ApiClient) -> tuple[Json, RequestError | None]:
        found = await client.call("POST", url_path("observations"), body=body)
        return found, await _unknown_type(client, type_) if type_ and found["unknown"] else None

    found, error = ask(server, work)
    print_result(found, server.format, lambda: wrapped_text(summary(found)))
    if error is not None:
        text = error_text(error, terminal=standard_error().is_terminal)
        stop(text, ExitCode.ERROR, request_error(error))


async def _unknown_type(client: ApiClient, name: str) -> RequestError | None:
    """The error about a type that the server does not have; None: it has it, or that is not known.
    The report is accepted already."""
    try:
        await client.call("GET", url_path("resource_types", name))
    except RequestError as error:
        return error if error.status == HTTPStatus.NOT_FOUND else None
    return None


def summary(found: Json) -> str:
    """What is observed, as a sentence. Pure."""
    resources = format_count(found["resources"], "resource")
    text = f"Observing {resources} of {format_count(found['stacks'], 'stack')}."
    if unknown := found["unknown"]:
        belong = "belongs" if unknown == 1 else "belong"
        text += f" {format_count(unknown, 'ID')} {belong} to no resource of the project."
    return text
