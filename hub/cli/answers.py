"""headgate hook continue, step, run, patch, progress, reject: answers to hooks."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hub.cli import hooks
from hub.cli.client import Client, place
from hub.cli.context import (
    ServerOptions,
    ask,
    seconds,
    stop,
    uses_server,
)
from hub.cli.exit_codes import Exit
from hub.cli.file_references import Unreadable
from hub.cli.files import data_of, yaml_values

Json = Any
Reason = Annotated[str, typer.Option(help="The reason; recorded in the audit log.")]
Digest = Annotated[
    str, typer.Option(help="The digest you reviewed; refuse if the hook has changed since.")
]
Data = Annotated[
    list[str],
    typer.Option(
        metavar="KEY=VALUE", help="Data that the hook rule requires; VALUE is YAML; repeatable."
    ),
]
DataFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file with all the data that the hook rule requires, in JSON or YAML.",
    ),
]


@uses_server
def continue_(
    server: ServerOptions,
    which: hooks.Which,
    reason: Reason = "",
    digest: Digest = "",
    data: Data = [],  # noqa: B006 - typer reads it, nobody changes it
    data_file: DataFile = None,
) -> None:
    """Approve: continue the operation."""
    more = read_answer_data(data, data_file)
    _answer(which, "continue", reason, digest, more, server, server.as_json)


@uses_server
def step(
    server: ServerOptions,
    which: hooks.Which,
    into: Annotated[
        bool, typer.Option("--into", help="Also stop in the nested stack, if the resource has one.")
    ] = False,
    out: Annotated[
        bool, typer.Option("--out", help="Run the nested stack to its end; stop in its parent.")
    ] = False,
    reason: Reason = "",
    digest: Digest = "",
    data: Data = [],  # noqa: B006
    data_file: DataFile = None,
) -> None:
    """Continue, and stop before the next operation."""
    if into and out:
        stop("use either --into or --out", Exit.USAGE)
    how = {"how": "into" if into else "out"} if into or out else {}
    more = read_answer_data(data, data_file) | how
    _answer(which, "step", reason, digest, more, server, server.as_json)


@uses_server
def run(
    server: ServerOptions,
    which: hooks.Which,
    reason: Reason = "",
    digest: Digest = "",
    data: Data = [],  # noqa: B006
    data_file: DataFile = None,
) -> None:
    """Continue, and skip further breakpoints that you may answer."""
    more = read_answer_data(data, data_file)
    _answer(which, "run", reason, digest, more, server, server.as_json)


@uses_server
def patch(
    server: ServerOptions,
    which: hooks.Which,
    set_: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="A property; VALUE is YAML; repeatable."),
    ],
    reason: Reason = "",
    digest: Digest = "",
    data: Data = [],  # noqa: B006
    data_file: DataFile = None,
) -> None:
    """Continue with changed properties, if the hook rule allows it."""
    more = read_answer_data(data, data_file) | {"properties": _read(set_, "--set")}
    _answer(which, "patch", reason, digest, more, server, server.as_json)


@uses_server
def progress(
    server: ServerOptions,
    which: hooks.Which,
    extend: Annotated[
        str, typer.Option(metavar="TIME", help="How much longer the hook waits, such as 30m.")
    ] = "",
    reason: Reason = "",
    digest: Digest = "",
) -> None:
    """Report progress and extend the deadline."""
    if extend:
        seconds(extend)
    more = {"extend": extend} if extend else {}
    _answer(which, "progress", reason, digest, more, server, server.as_json)


@uses_server
def reject(
    server: ServerOptions,
    which: hooks.Which,
    reason: Reason = "",
    digest: Digest = "",
) -> None:
    """Reject: fail the operation."""
    _answer(which, "reject", reason, digest, {}, server, server.as_json)


def read_answer_data(pairs: list[str], file: Path | None) -> dict[str, Json]:
    """``data`` as --data or --data-file says it; empty where neither does. Ends the command when it
    cannot be read."""
    if pairs and file is not None:
        stop("use either --data or --data-file", Exit.USAGE)
    if file is not None:
        try:
            return {"data": data_of(file)}
        except Unreadable as error:
            stop(str(error), Exit.ERROR)
    return {"data": _read(pairs, "--data")} if pairs else {}


def _read(pairs: list[str], option: str) -> dict[str, Json]:
    try:
        return yaml_values(pairs, option)
    except Unreadable as error:
        stop(str(error), Exit.ERROR)


def _answer(
    which: str,
    decision: str,
    reason: str,
    digest: str,
    more: dict[str, Json],
    server: ServerOptions,
    as_json: bool,
) -> None:
    async def work(client: Client) -> Json:
        hook = await hooks.find(client, which)
        body = {"decision": decision, "reason": reason, "digest": digest, **more}
        return await client.call("POST", place("hooks", hook["id"], "signal"), body=body)

    hooks.print_outcome(ask(server, work), as_json)


def add_to(app: typer.Typer) -> None:
    app.command(name="continue")(continue_)
    for command in (step, run, patch, progress, reject):
        app.command()(command)
