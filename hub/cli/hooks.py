"""headgate hook ...: what waits, and how to answer it."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.text import Text

from hub.cli import show
from hub.cli.client import Client, Refused, place
from hub.cli.context import PROJECT, URL, AsJson, Project, Url, Where, ask, tell
from hub.cli.files import Unreadable, dump_yaml
from hub.cli.waiting import pages, waiting_hooks

Json = Any
app = typer.Typer(help="List, show and answer hooks.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="Id, the beginning of one, or STACK:RESOURCE[:POINT].")]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]
Digest = Annotated[str, typer.Option(help="Refuse when what you saw has changed since.")]


@app.command(name="list")
def list_(
    state: Annotated[
        str, typer.Option(help="waiting, answered, expired, superseded, or all.")
    ] = "waiting",
    stack: Annotated[str | None, typer.Option(help="Of this stack.")] = None,
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """The inbox: everything that waits for an answer."""
    query = {"limit": "1000"} | ({} if state == "all" else {"state": state})
    query |= {"stack": stack} if stack else {}
    where = Where(url, project)
    hooks = ask(where, lambda client: pages(client, place("hooks"), "hooks", query))
    columns = {
        "stack": "STACK",
        "resource": "RESOURCE",
        "point": "POINT",
        "state": "STATE",
        "deadline": "DEADLINE",
        "decision": "DECISION",
        "by": "BY",
        "id": "ID",
    }
    tell(hooks, as_json, lambda: show.table([show.hook_row(hook) for hook in hooks], columns))


@app.command(name="show")
def show_(
    which: Which, url: Url = URL, project: Project = PROJECT, as_json: AsJson = False
) -> None:
    """Show a hook with what one needs to decide."""
    hook = ask(Where(url, project), lambda client: find(client, which))
    tell(hook, as_json, lambda: Text(show.plain(dump_yaml(hook))))


@app.command(name="continue")
def continue_(
    which: Which,
    reason: Reason = "",
    digest: Digest = "",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Let it go on."""
    _answer(which, "continue", reason, digest, Where(url, project), as_json)


@app.command()
def reject(
    which: Which,
    reason: Reason = "",
    digest: Digest = "",
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Make its operation fail."""
    _answer(which, "reject", reason, digest, Where(url, project), as_json)


def _answer(
    which: str, decision: str, reason: str, digest: str, where: Where, as_json: bool
) -> None:
    async def work(client: Client) -> Json:
        hook = await find(client, which)
        body = {"decision": decision, "reason": reason, "digest": digest}
        return await client.call("POST", place("hooks", hook["id"], "signal"), body=body)

    hook = ask(where, work)
    names = ("stack_name", "path", "point", "state", "decision", "decided_by", "reason")
    tell(hook, as_json, lambda: show.fields(hook, names))


async def find(client: Client, which: str) -> Json:
    """By id; else among the waiting ones by the beginning of an id or by where it is."""
    if _is_id(which):
        return await client.call("GET", place("hooks", which))
    return chosen(await waiting_hooks(client), which)


def _is_id(which: str) -> bool:
    try:
        return str(UUID(which)) == which.lower()
    except ValueError:
        return False


def chosen(hooks: Sequence[Json], which: str) -> Json:
    """The one hook that is meant. Raises Refused and Unreadable. Pure."""
    found = [hook for hook in hooks if matches(hook, which)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Refused(404, f'no waiting hook matches "{which}"; see `headgate hook list`')
    names = ", ".join(f"{hook['stack_name']}:{hook['path']}:{hook['point']}" for hook in found[:5])
    raise Unreadable(f'"{which}" matches {len(found)} waiting hooks: {names}; say more')


def matches(hook: Json, which: str) -> bool:
    """STACK:RESOURCE, STACK:RESOURCE:POINT, or the beginning of the id."""
    if ":" not in which:
        return bool(which) and bool(hook["id"].startswith(which.lower()))
    stack, _, rest = which.partition(":")
    return stack == hook["stack_name"] and rest in (
        hook["path"],
        f"{hook['path']}:{hook['point']}",
    )
