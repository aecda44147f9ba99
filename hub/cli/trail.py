"""headgate stack decisions: the audit trail, of which all of it is there with --json."""

from typing import Any

import typer

from hub.cli import options, outcomes, show
from hub.cli.client import Client
from hub.cli.context import PROJECT, URL, USER, AsJson, Project, Url, User, Where, ask, tell
from hub.cli.waiting import pages

Json = Any


def decisions(
    name: options.Name,
    url: Url = URL,
    project: Project = PROJECT,
    user: User = USER,
    as_json: AsJson = False,
) -> None:
    """Who decided what about a stack, through which door and why, in order."""

    async def work(client: Client) -> list[Json]:
        path = outcomes.path_of(await outcomes.find(client, name), "decisions")
        return await pages(client, path, "decisions", {"limit": "1000"}, marker="after")

    found = ask(Where(url, project, user), work)
    columns = {"number": "NUMBER", "at": "WHEN", "by": "WHO", "door": "DOOR", "what": "WHAT",
               "reason": "REASON", "hook_id": "HOOK"}  # fmt: skip
    tell(found, as_json, lambda: show.table([show.entry_row(one) for one in found], columns))


def add_to(app: typer.Typer) -> None:
    app.command()(decisions)
