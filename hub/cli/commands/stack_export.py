"""headgate stack: export, abandon and adopt, which move a stack to another server."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.connection import url_path
from headgate.errors import RequestError
from hub.cli import options
from hub.cli.commands import stack_change
from hub.cli.commands.stack_change import Outcome, wait_for_action
from hub.cli.confirmation import confirm
from hub.cli.connection.client import ApiClient, call_stack, find_stack, stack_path
from hub.cli.context import ask
from hub.cli.inputs import request_bodies
from hub.cli.inputs.files import InputError, read_text
from hub.cli.inputs.request_bodies import parameters
from hub.cli.messages import note
from hub.cli.options import JsonServerOptions, ServerOptions, WaitOptions, with_options
from hub.cli.printing.formats import format_json

Json = Any
app = typer.Typer()


class ExportFile:
    """A context manager for the destination of an export: a new file with mode 0600, or standard
    output.

    The file is created before the first request, because an abandoned stack cannot be exported
    again. It is removed if nothing was written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._written = False

    def __enter__(self) -> "ExportFile":
        if self._path is not None:
            try:
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except OSError as error:
                raise InputError(
                    f"{self._path}: cannot create the file: {error.strerror}; nothing was changed"
                ) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._path is not None and not self._written:
            self._path.unlink(missing_ok=True)

    def write(self, document: Json) -> None:
        """Write the document to the file. A second call overwrites the first."""
        if self._path is None:
            return
        try:
            with self._path.open("w") as file:
                file.write(format_json(document) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror}") from error
        self._written = True

    def discard(self) -> None:
        """Remove the file at the end: the stack was not abandoned."""
        self._written = False

    def print(self, document: Json, as_json: bool) -> None:
        if self._path is None or as_json:
            typer.echo(format_json(document))
        else:
            typer.echo(f"written to {self._path}; the file contains secrets")


@app.command()
@with_options
def export(
    server: JsonServerOptions,
    name: options.Name,
    output: options.Output = None,
) -> None:
    """Export a stack for adoption by another server. The output contains secrets."""

    async def work(client: ApiClient) -> None:
        with ExportFile(output) as file:
            document = await call_stack(client, name, "GET", "export")
            file.write(document)
            file.print(document, server.as_json)

    ask(server, work)


@app.command()
@with_options
def abandon(
    server: JsonServerOptions,
    name: options.Name,
    output: options.Output = None,
    yes: options.Yes = False,
) -> None:
    """Remove a stack from Headgate, keep its physical resources, and print its export."""
    stack = ask(server, lambda client: find_stack(client, name))
    question = f"Abandon the stack {stack['stack_name']}?"
    confirm(question, ["Its physical resources stay, but Headgate no longer manages them."], yes)
    ask(server, lambda client: abandon_stack(client, stack, output, server.as_json))


async def abandon_stack(client: ApiClient, stack: Json, output: Path | None, as_json: bool) -> None:
    """Abandon a stack. Writes its export first, because the response can be lost."""
    with ExportFile(output) as file:
        document = await client.call("GET", stack_path(stack, "export"), query={"partial": "true"})
        file.write(document)
        try:
            document = await client.call("DELETE", stack_path(stack, "abandon"))
        except RequestError as error:
            if error.status:
                file.discard()
            else:
                note(
                    "the connection failed, and the stack may have been abandoned; keep this export"
                )
                file.print(document, as_json)
            raise
        try:
            file.write(document)
        except InputError:
            typer.echo(format_json(document))
            raise
        file.print(document, as_json)


@app.command()
@with_options
def adopt(
    server: ServerOptions,
    wait: WaitOptions,
    name: options.NewName,
    file: Annotated[
        Path,
        typer.Option("--file", "-f", metavar="FILE", help="The file that export or abandon wrote."),
    ],
    parameter: options.Parameters = [],  # noqa: B006
    parameter_file: options.ParameterFiles = [],  # noqa: B006
    tag: options.NewTags = [],  # noqa: B006
    stack_timeout: options.Minutes = None,
    rollback: options.NewRollback = None,
) -> None:
    """Create a stack from existing physical resources without changing them."""

    async def work(client: ApiClient) -> Outcome:
        from hub.cli.inputs.documents import parse_data

        text = read_text(file)
        parse_data(text, file)  # errors name the file and the line
        body: dict[str, Json] = {"stack_name": name, "adopt_stack_data": text}
        body |= {"parameters": parameters(parameter, parameter_file)}
        body |= request_bodies.stack_options(tag, stack_timeout, rollback)
        created = await client.call("POST", url_path("stacks"), body=body)
        return await wait_for_action(client, created["stack"]["id"], "ADOPT", wait)

    stack_change.finish(ask(server, work), server.format)
