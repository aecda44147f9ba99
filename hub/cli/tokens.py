"""headgate token ...: tokens and passwords."""

import sys
from typing import Annotated, Any

import typer

from hub.auth.roles import Role
from hub.cli import show
from hub.cli.client import place
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    stop,
    uses_server,
    uses_server_without_json,
)
from hub.cli.exit_codes import Exit

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
Everywhere = Annotated[bool, typer.Option("--everywhere", help="Valid in every project.")]


def read_password() -> str:
    """From the terminal, twice; or the first line of standard input."""
    if sys.stdin.isatty():
        said: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
        return said
    return sys.stdin.readline().rstrip("\n")


def print_given(made: Json, as_json: bool) -> None:
    """The token alone goes to standard output, so that a script can take it."""
    if as_json or made["token"] is None:
        print_result(
            made, as_json, lambda: show.fields(made, ("id", "name", "roles", "expires_at"))
        )
        return
    typer.echo(f"Token of {made['name']} (not shown again):", err=True)
    typer.echo(made["token"])


@app.command()
@uses_server
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
    print_given(
        ask(server, lambda client: client.call("POST", place("tokens"), body=body)), server.as_json
    )


@app.command(name="list")
@uses_server
def list_(
    server: ServerOptions,
    everywhere: Everywhere = False,
    gone: Annotated[
        bool, typer.Option("--gone", help="Include revoked and expired tokens.")
    ] = False,
) -> None:
    """List tokens and passwords."""
    query = {"everywhere": str(everywhere).lower(), "gone": str(gone).lower()}
    found = ask(server, lambda client: client.call("GET", place("tokens"), query=query))["tokens"]
    columns = {"id": "ID", "name": "NAME", "kind": "KIND", "mode": "MODE", "roles": "ROLES",
               "used_at": "USED", "expires_at": "EXPIRES", "revoked_at": "REVOKED"}  # fmt: skip
    print_result(found, server.as_json, lambda: show.table(found, columns))


@app.command()
@uses_server_without_json
def revoke(
    server: ServerOptions,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="ID from `headgate token list`.")],
    everywhere: Everywhere = False,
) -> None:
    """Revoke a token or password."""
    if token_id.startswith("hgt_"):
        stop("this is the token itself; use its ID from `headgate token list`", Exit.USAGE)
    query = {"everywhere": str(everywhere).lower()}
    path = place("tokens", token_id)
    ask(server, lambda client: client.call("DELETE", path, query=query))


@app.command()
@uses_server
def whoami(
    server: ServerOptions,
) -> None:
    """Show your identity and roles."""
    found = ask(server, lambda client: client.call("GET", place("session")))
    names = ("name", "project", "roles", "rights", "everywhere")
    print_result(found, server.as_json, lambda: show.fields(found, names))
