"""headgate token: create, list and revoke tokens and passwords."""

import sys
from typing import Annotated, Any

import typer

from headgate.connection import url_path
from hub.auth.roles import Role
from hub.cli import options
from hub.cli.confirmation import confirm
from hub.cli.connection.client import ApiClient, select_by_id
from hub.cli.context import ask, print_removal, print_result, print_rows
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.formats import ResultFormat

Json = Any
app = typer.Typer(help="Create, list and revoke tokens.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="User name of the token.")]
Roles = Annotated[
    list[str],
    typer.Option("--role", help=f"{', '.join(Role)}, or a role of your own for answer_by; "
                                "repeatable."),
]  # fmt: skip
ExpiresIn = Annotated[
    str,
    typer.Option(
        "--expires-in", metavar="TIME", help="Lifetime, such as 90d. Default: until revoked."
    ),
]
WithPassword = Annotated[
    bool,
    typer.Option("--password", help="Set a password for HTTP basic authentication; prompts, "
                                    "or reads standard input."),
]  # fmt: skip
Everywhere = Annotated[bool, typer.Option("--everywhere", help="For tokens of every project.")]


def read_password() -> str:
    """Prompt twice on a terminal, else read the first line of standard input."""
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\n")


def print_token(created: Json, result_format: ResultFormat) -> None:
    """Print only the token to standard output, for scripts."""
    if result_format.is_document or created["token"] is None:
        names = ("id", "name", "roles", "expires_at")
        print_result(created, result_format, lambda: output.fields(created, names))
        return
    typer.echo(f"Token of {created['name']} (not shown again):", err=True)
    typer.echo(created["token"])


@app.command()
@with_options
def create(
    server: ServerOptions,
    name: Name,
    role: Roles,
    expires_in: ExpiresIn = "",
    password: WithPassword = False,
    everywhere: Everywhere = False,
) -> None:
    """Create a token, or set a password."""
    body = {"name": name, "roles": role, "expires_in": expires_in, "everywhere": everywhere}
    if password:
        body["password"] = read_password()
    print_token(
        ask(server, lambda client: client.call("POST", url_path("tokens"), body=body)),
        server.format,
    )


@app.command(name="list")
@with_options
def list_(
    server: ServerOptions,
    everywhere: Everywhere = False,
    all_tokens: Annotated[
        bool, typer.Option("--all", help="Include revoked and expired tokens.")
    ] = False,
) -> None:
    """List tokens and passwords."""
    query = {"everywhere": str(everywhere).lower(), "all": str(all_tokens).lower()}
    found = ask(server, lambda client: client.call("GET", url_path("tokens"), query=query))[
        "tokens"
    ]
    columns: tables.Columns = {
        "id": tables.id_column("ID"),
        "name": "NAME",
        "kind": "KIND",
        "mode": "MODE",
        "roles": "ROLES",
        "used_at": tables.past_column("USED"),
        "expires_at": tables.deadline_column("EXPIRES"),
        "revoked_at": tables.past_column("REVOKED"),
    }
    none = "no token" if all_tokens else "no valid token; --all includes revoked and expired ones"
    print_rows(found, server.format, lambda: output.table(found, columns), none)


@app.command()
@with_options
def revoke(
    server: ServerOptions,
    token_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="ID from `headgate token list`, or a unique prefix of it."
        ),
    ],
    everywhere: Everywhere = False,
    yes: options.Yes = False,
) -> None:
    """Revoke a token or password."""
    if token_id.startswith("hgt_"):
        stop("this is the token itself; use its ID from `headgate token list`", ExitCode.USAGE)
    query = {"everywhere": str(everywhere).lower()}

    async def select(client: ApiClient) -> Json:
        path, everyone = url_path("tokens"), query | {"all": "true"}
        found = (await client.call("GET", path, query=everyone))["tokens"]
        return select_by_id(found, token_id, "token", "headgate token list --all")

    found = ask(server, select)
    lost = f"Programs that use the {found['kind']} of {found['name']} are refused at once."
    confirm(f"Revoke the {found['kind']} {found['id']} of {found['name']}?", [lost], yes)
    path = url_path("tokens", found["id"])
    ask(server, lambda client: client.call("DELETE", path, query=query))
    print_removal(found["id"], "revoked", server.format)


@app.command()
@with_options
def whoami(server: ServerOptions) -> None:
    """Show your identity and roles."""
    found = ask(server, lambda client: client.call("GET", url_path("session")))
    names = ("name", "project", "roles", "rights", "everywhere")
    print_result(found, server.format, lambda: output.fields(found, names))
