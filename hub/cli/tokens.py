"""headgate token ...: who gets in, and as what."""

import sys
from typing import Annotated, Any

import typer

from hub.cli import show
from hub.cli.client import place
from hub.cli.context import PROJECT, URL, USER, AsJson, Project, Url, User, Where, ask, stop, tell
from hub.cli.exit_codes import Exit

Json = Any
app = typer.Typer(help="Give out, list and revoke tokens.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Who it is, for the record.")]
Roles = Annotated[
    list[str],
    typer.Option("--role", help="reader, author, approver, operator, admin; or one of your own "
                                "for answer_by; may repeat."),
]  # fmt: skip
ExpiresIn = Annotated[
    str, typer.Option("--expires-in", metavar="TIME", help="90d; until it is revoked if not said.")
]
WithPassword = Annotated[
    bool,
    typer.Option("--password", help="Not a token: a password, for HTTP basic, asked for or read "
                                    "from standard input."),
]  # fmt: skip
Everywhere = Annotated[bool, typer.Option("--everywhere", help="In every project.")]


def read_password() -> str:
    """From the terminal, twice; or the first line of standard input."""
    if sys.stdin.isatty():
        said: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
        return said
    return sys.stdin.readline().rstrip("\n")


def print_given(made: Json, as_json: bool) -> None:
    """The token alone goes to standard output, so that a script can take it."""
    if as_json or made["token"] is None:
        tell(made, as_json, lambda: show.fields(made, ("id", "name", "roles", "expires_at")))
        return
    typer.echo(f"This is the token of {made['name']}; it is not shown again:", err=True)
    typer.echo(made["token"])


@app.command()
def create(
    name: Name,
    role: Roles,
    expires_in: ExpiresIn = "",
    password: WithPassword = False,
    everywhere: Everywhere = False,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Give out a token, or set a password."""
    body = {"name": name, "roles": role, "expires_in": expires_in, "everywhere": everywhere}
    if password:
        body["password"] = read_password()
    where = Where(url, project, user)
    print_given(ask(where, lambda client: client.call("POST", place("tokens"), body=body)), as_json)


@app.command(name="list")
def list_(
    everywhere: Everywhere = False,
    gone: Annotated[bool, typer.Option("--gone", help="Revoked and expired ones, too.")] = False,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """List tokens and passwords."""
    query = {"everywhere": str(everywhere).lower(), "gone": str(gone).lower()}
    where = Where(url, project, user)
    found = ask(where, lambda client: client.call("GET", place("tokens"), query=query))["tokens"]
    columns = {"id": "ID", "name": "NAME", "kind": "KIND", "roles": "ROLES", "used_at": "USED",
               "expires_at": "EXPIRES", "revoked_at": "REVOKED"}  # fmt: skip
    tell(found, as_json, lambda: show.table(found, columns))


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `token list` shows it.")],
    everywhere: Everywhere = False,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
) -> None:
    """Let nobody in by it any more."""
    if token_id.startswith("hgt_"):
        stop("that is the token itself; name its id, as `token list` shows it", Exit.USAGE)
    query = {"everywhere": str(everywhere).lower()}
    path = place("tokens", token_id)
    ask(Where(url, project, user), lambda client: client.call("DELETE", path, query=query))


@app.command()
def whoami(
    url: Url = URL, project: Project = PROJECT, user: User = USER, as_json: AsJson = False
) -> None:
    """Who you are to the server, and what you may do."""
    where = Where(url, project, user)
    found = ask(where, lambda client: client.call("GET", place("session")))
    names = ("name", "project", "roles", "rights", "everywhere")
    tell(found, as_json, lambda: show.fields(found, names))
