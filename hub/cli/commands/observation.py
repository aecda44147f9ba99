"""headgate observation."""

from typing import Annotated, Any

import typer

from headgate.connection import url_path
from hub.cli.context import ask, print_result
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing.renderables import styled_text

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
    found = ask(server, lambda client: client.call("POST", url_path("observations"), body=body))
    print_result(found, server.format, lambda: styled_text(summary(found)))


def summary(found: Json) -> str:
    """What is observed, as a sentence. Pure."""
    text = f"Observing {found['resources']} resources of {found['stacks']} stacks."
    if found["unknown"]:
        text += f" {found['unknown']} IDs belong to no resource of the project."
    return text
