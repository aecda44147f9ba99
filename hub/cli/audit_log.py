"""headgate stack decisions: the audit log; --json prints every field."""

from typing import Any

import typer

from hub.cli import options, outcomes, show
from hub.cli.client import Client
from hub.cli.context import (
    ServerOptions,
    ask,
    print_result,
    uses_server,
)
from hub.cli.waiting import pages

Json = Any


@uses_server
def decisions(
    server: ServerOptions,
    name: options.Name,
) -> None:
    """Show the audit log of a stack: who decided what, when, how and why."""

    async def work(client: Client) -> list[Json]:
        path = outcomes.path_of(await outcomes.find(client, name), "decisions")
        return await pages(client, path, "decisions", {"limit": "1000"}, marker="after")

    found = ask(server, work)
    columns = {"number": "NUMBER", "at": "WHEN", "by": "WHO", "door": "DOOR", "what": "WHAT",
               "reason": "REASON", "hook_id": "HOOK"}  # fmt: skip
    print_result(
        found, server.as_json, lambda: show.table([show.entry_row(one) for one in found], columns)
    )


def add_to(app: typer.Typer) -> None:
    app.command()(decisions)
