"""headgate observation-credential: the credential that a project hands over for observations and
repairs."""

import sys
from typing import Annotated, Any

import typer

from headgate.connection import url_path
from hub.cli import options
from hub.cli.confirmation import UNCHANGED, confirm
from hub.cli.connection.client import ApiClient
from hub.cli.context import ask, print_removal, print_result
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs.files import InputError
from hub.cli.messages import stop
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output
from hub.cli.printing.formats import ResultFormat

Json = Any
app = typer.Typer(
    help="Hand over, show and delete the credential for observations of OpenStack.",
    no_args_is_help=True,
)
PATH = url_path("observation-credential")
FIELDS = (
    "application_credential_id", "name", "user_name", "roles", "access_rules", "state",
    "used_by_observer", "repairs", "created_by", "created_at", "expires_at", "used_at",
    "failed_at", "reason",
)  # fmt: skip


def read_secret() -> str:
    """Prompt on a terminal, else read the first line of standard input."""
    if sys.stdin.isatty():
        text = typer.prompt("Secret of the application credential", hide_input=True, err=True)
    else:
        text = sys.stdin.readline()
    secret = str(text).strip()
    if not secret:
        stop("the secret is empty; nothing was changed", ExitCode.USAGE)
    return secret


def print_credential(found: Json, result_format: ResultFormat) -> None:
    print_result(found, result_format, lambda: output.fields(found, FIELDS))


@app.command(name="set")
@with_options
def set_(
    server: ServerOptions,
    credential_id: Annotated[
        str, typer.Argument(metavar="ID", help="ID of the application credential.")
    ],
    for_repairs: Annotated[
        bool, typer.Option("--for-repairs", help="Repairs of drift may act with it, too.")
    ] = False,
) -> None:
    """Hand over an application credential of Keystone; prompts for its secret, or reads standard
    input."""
    body = {
        "application_credential_id": credential_id,
        "application_credential_secret": read_secret(),
        "repairs": for_repairs,
    }
    found = ask(server, lambda client: client.call("PUT", PATH, body=body))
    print_credential(found, server.format)


@app.command()
@with_options
def show(server: ServerOptions) -> None:
    """Show the credential, its last use and its last failure, but not its secret."""
    found = ask(server, lambda client: client.call("GET", PATH))
    print_credential(found, server.format)


@app.command()
@with_options
def delete(server: ServerOptions, yes: options.Yes = False) -> None:
    """Delete the credential from the server. It stays valid in Keystone."""
    found = ask(server, lambda client: client.call("GET", PATH))
    lost = ["Resources of OpenStack in this project are no longer observed."]
    if found["repairs"]:
        lost.append("Their drift is no longer repaired.")
    question = f"Delete the observation credential {found['application_credential_id']}?"
    confirm(question, lost, yes)

    async def remove(client: ApiClient) -> None:
        if wrong := replaced_since(found, await client.call("GET", PATH)):
            raise InputError(wrong)
        await client.call("DELETE", PATH)

    ask(server, remove)
    print_removal(found["application_credential_id"], "deleted", server.format)


def replaced_since(confirmed: Json, now: Json) -> str:
    """Why a credential is not deleted although its delete was confirmed; empty: it is. Pure."""
    after = now["application_credential_id"]
    if after == confirmed["application_credential_id"]:
        return ""
    return f"{UNCHANGED}: the credential of the project is {after} now. Run the command again."
