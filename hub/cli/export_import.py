"""headgate stack export, abandon, adopt: move a stack to another server."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hub.cli import bodies, options, outcomes
from hub.cli.client import Client, Refused, place
from hub.cli.context import (
    ServerOptions,
    ask,
    complain,
    stop,
    uses_server,
)
from hub.cli.exit_codes import Exit
from hub.cli.file_references import Unreadable, read_text
from hub.cli.files import dump, parameters
from hub.cli.waiting import Outcome, settle

Json = Any


class Parcel:
    """Where an exported stack goes: standard output, or a new file for its owner alone.

    The file is created before the first request, because an abandoned stack cannot be exported
    again. An empty one is removed again.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept = False

    def __enter__(self) -> "Parcel":
        if self._path is not None:
            try:
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except OSError as error:
                raise Unreadable(
                    f"{self._path}: cannot create the file: {error.strerror}; nothing was changed"
                ) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._path is not None and not self._kept:
            self._path.unlink(missing_ok=True)

    def keep(self, document: Json) -> None:
        """May be called again, with what is newer."""
        if self._path is None:
            return
        try:
            with self._path.open("w") as file:
                file.write(dump(document) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Unreadable(f"{self._path}: cannot be written: {error.strerror}") from error
        self._kept = True

    def drop(self) -> None:
        """What was kept is of no use: nothing happened."""
        self._kept = False

    def hand_over(self, document: Json, as_json: bool) -> None:
        if self._path is None or as_json:
            typer.echo(dump(document))
        else:
            typer.echo(f"written to {self._path}; the file contains secrets")


@uses_server
def export(
    server: ServerOptions,
    name: options.Name,
    output: options.Output = None,
) -> None:
    """Export a stack for adoption by another server. The output contains secrets."""

    async def work(client: Client) -> None:
        with Parcel(output) as parcel:
            stack = await outcomes.find(client, name)
            document = await client.call("GET", outcomes.path_of(stack, "export"))
            parcel.keep(document)
            parcel.hand_over(document, server.as_json)

    ask(server, work)


@uses_server
def abandon(
    server: ServerOptions,
    name: options.Name,
    output: options.Output = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Remove a stack from Headgate, keep its physical resources, and print its export."""
    stack = ask(server, lambda client: outcomes.find(client, name))
    if not yes and not _confirmed(stack["stack_name"]):
        stop("nothing was changed; use --yes to skip the question", Exit.ERROR)
    ask(server, lambda client: let_go(client, stack, output, server.as_json))


def _confirmed(name: str) -> bool:
    question = f"Abandon the stack {name}? Its physical resources stay but are no longer managed."
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # nobody is there to answer
        typer.echo(err=True)
        return False


async def let_go(client: Client, stack: Json, output: Path | None, as_json: bool) -> None:
    """The export is kept first: what is abandoned cannot be asked for again."""
    with Parcel(output) as parcel:
        document = await client.call(
            "GET", outcomes.path_of(stack, "export"), query={"partial": "true"}
        )
        parcel.keep(document)
        try:
            document = await client.call("DELETE", outcomes.path_of(stack, "abandon"))
        except Refused as error:
            if error.status:
                parcel.drop()
            else:
                complain(
                    "the connection failed, and the stack may have been abandoned; keep this export"
                )
                parcel.hand_over(document, as_json)
            raise
        try:
            parcel.keep(document)
        except Unreadable:
            typer.echo(dump(document))
            raise
        parcel.hand_over(document, as_json)


@uses_server
def adopt(
    server: ServerOptions,
    name: options.NewName,
    file: Annotated[
        Path,
        typer.Option("--file", "-f", metavar="FILE", help="The file that export or abandon wrote."),
    ],
    parameter: options.Parameters = [],  # noqa: B006 - typer reads it, nobody changes it
    parameter_file: options.ParameterFiles = [],  # noqa: B006
    tag: options.Tags = [],  # noqa: B006
    stack_timeout: options.Minutes = None,
    rollback: options.Rollback = None,
    wait: options.Wait = False,
    until_waiting: options.UntilWaiting = False,
    timeout: options.Timeout = "1h",
) -> None:
    """Create a stack from existing physical resources without changing them."""
    patience = outcomes.patience(wait, until_waiting, timeout)

    async def work(client: Client) -> Outcome:
        body: dict[str, Json] = {"stack_name": name, "adopt_stack_data": read_text(file)}
        body |= {"parameters": parameters(parameter, parameter_file)}
        body |= bodies.options(tag, stack_timeout, rollback)
        made = await client.call("POST", place("stacks"), body=body)
        return await settle(client, made["stack"]["id"], "ADOPT", patience)

    outcomes.end(ask(server, work), server.as_json)


def add_to(app: typer.Typer) -> None:
    for command in (export, abandon, adopt):
        app.command()(command)
