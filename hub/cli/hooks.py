"""headgate hook ...: what waits, and how to answer it."""

from typing import Annotated, Any

import typer

from hub.cli import show
from hub.cli.client import Client, Refused
from hub.cli.context import PROJECT, URL, AsJson, Project, Url, Where, ask, tell
from hub.cli.files import Unreadable, dump_yaml

Json = Any
app = typer.Typer(help="List, show and answer hooks.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="Id, the beginning of one, or STACK:RESOURCE[:POINT].")]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]
Digest = Annotated[str, typer.Option(help="Refuse when what you saw has changed since.")]


@app.command(name="list")
def list_(
    state: Annotated[str, typer.Option(help="waiting, answered, expired, superseded.")] = "waiting",
    stack: Annotated[str | None, typer.Option(help="Of this stack.")] = None,
    url: Url = URL,
    project: Project = PROJECT,
    as_json: AsJson = False,
) -> None:
    """The inbox: everything that waits."""
    query = {"state": state} | ({"stack": stack} if stack else {})
    where = Where(url, project)
    hooks = ask(where, lambda client: client.call("GET", "/hooks", query=query))["hooks"]
    columns = {
        "stack": "STACK",
        "resource": "RESOURCE",
        "point": "POINT",
        "state": "STATE",
        "deadline": "DEADLINE",
        "decision": "DECISION",
        "id": "ID",
    }
    tell(hooks, as_json, lambda: show.table([show.hook_row(hook) for hook in hooks], columns))


@app.command(name="show")
def show_(
    which: Which, url: Url = URL, project: Project = PROJECT, as_json: AsJson = False
) -> None:
    """Show a hook with what one needs to decide."""
    hook = ask(Where(url, project), lambda client: find(client, which))
    tell(hook, as_json, lambda: dump_yaml(hook))


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
        return await client.call("POST", f"/hooks/{hook['id']}/signal", body=body)

    hook = ask(where, work)
    names = ("stack_name", "path", "point", "state", "decision", "decided_by", "reason")
    tell(hook, as_json, lambda: show.fields(hook, names))


async def find(client: Client, which: str) -> Json:
    """By id; else among the waiting ones by the beginning of an id or by where it is."""
    if which.count("-") == 4 and ":" not in which:
        return await client.call("GET", f"/hooks/{which}")
    hooks = (await client.call("GET", "/hooks", query={"state": "waiting", "limit": "1000"}))[
        "hooks"
    ]
    found = [hook for hook in hooks if _matches(hook, which)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Refused(404, f'no waiting hook matches "{which}"; see `headgate hook list`')
    names = ", ".join(f"{hook['stack_name']}:{hook['path']}:{hook['point']}" for hook in found[:5])
    raise Unreadable(f'"{which}" matches {len(found)} waiting hooks: {names}; say more')


def _matches(hook: Json, which: str) -> bool:
    if ":" not in which:
        return bool(hook["id"].startswith(which))
    asked = which.split(":")
    return asked == [hook["stack_name"], hook["path"], hook["point"]][: len(asked)]
