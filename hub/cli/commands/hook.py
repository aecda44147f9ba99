"""headgate hook: list, show, answer and hand over hooks."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from engine.errors import nearest
from engine.words import Decision
from headgate.connection import PAGE_SIZE, url_path
from headgate.errors import RequestError
from hub.cli import options
from hub.cli.completion import complete_hooks, complete_stacks
from hub.cli.confirmation import confirm, format_count
from hub.cli.connection.client import (
    ApiClient,
    find_id,
    is_prefix,
    list_waiting_hooks,
    read_pages,
    select_stack,
)
from hub.cli.context import ask, print_result, print_rows, resolved_project
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs.files import InputError
from hub.cli.inputs.request_bodies import yaml_values
from hub.cli.messages import stop, warn
from hub.cli.options import OptionGroup, ServerOptions, duration, with_options
from hub.cli.printing import hook_output, output, tables
from hub.cli.printing.consoles import standard_error

Json = Any
app = typer.Typer(help="List, show and answer hooks.", no_args_is_help=True)
Which = Annotated[
    str,
    typer.Argument(
        metavar="HOOK",
        help="ID, unique prefix of an ID, STACK:RESOURCE[:POINT], or STACK:POINT.",
        autocompletion=complete_hooks,
    ),
]
#: What --state accepts.
STATES = ("waiting", "answered", "expired", "superseded", "all")
FIELDS = ("stack", "resource", "point", "state", "approvals", "may_answer", "deadline", "decision",
          "by", "reason", "id")  # fmt: skip
HISTORY_COLUMNS: tables.Columns = {
    "at": tables.past_column("WHEN"),
    "by": "WHO",
    "channel": "CHANNEL",
    "what": "WHAT",
    "reason": "REASON",
}


AnyWhich = Annotated[
    str | None,
    typer.Argument(
        metavar="[HOOK]",
        help="ID, unique prefix of an ID, STACK:RESOURCE[:POINT], or STACK:POINT. Instead, --stack,"
        " --at and --point select several hooks.",
        autocompletion=complete_hooks,
    ),
]


@dataclass(frozen=True, slots=True)
class SelectionOptions(OptionGroup):
    """The options that select several waiting hooks."""

    stack: Annotated[
        str | None,
        typer.Option(
            metavar="STACK",
            help="All waiting hooks of this stack and its nested stacks: name, ID, or unique prefix"
            " of its ID.",
            autocompletion=complete_stacks,
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="All waiting hooks at this path, such as 'mon_*'."),
    ] = None
    point: Annotated[
        str | None,
        typer.Option(metavar="GLOB", help="All waiting hooks at this point, such as 'pre-*'."),
    ] = None
    yes: options.Yes = False

    @property
    def filters(self) -> dict[str, str]:
        """The query parameters of the API; empty: one hook is named."""
        values = {"stack": self.stack, "path": self.at, "point": self.point}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class AnswerOptions(OptionGroup):
    """The options of all answers."""

    reason: Annotated[str, typer.Option(help="The reason; recorded in the audit log.")] = ""
    digest: Annotated[
        str,
        typer.Option(
            metavar="HASH",
            help="Refuse the answer if the hook has changed: if `headgate hook show` no longer"
            " prints this digest.",
        ),
    ] = ""


@dataclass(frozen=True, slots=True)
class ApprovalOptions(AnswerOptions):
    """The options of answers that continue the operation."""

    data: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE", help="Data that the hook rule requires; VALUE is YAML; repeatable."
        ),
    ] = field(default_factory=list)
    data_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with all data that the hook rule requires, in JSON or YAML.",
        ),
    ] = None


def hook_state(text: str) -> str:
    """Raises typer's usage error."""
    if text not in STATES:
        remedy = nearest(text, STATES) or f"Use {', '.join(STATES[:-1])} or {STATES[-1]}."
        raise typer.BadParameter(f'"{text}" is not a state of a hook. {remedy}')
    return text


@app.command(name="list")
@with_options
def list_(
    server: ServerOptions,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            parser=hook_state,
            help="Only hooks in this state: waiting, answered, expired, superseded or all. "
            "Default: waiting; with --dry: all.",
            show_default=False,
        ),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(
            metavar="STACK",
            help="Only hooks of this stack and its nested stacks: name, ID, or unique prefix of its"
            " ID.",
            autocompletion=complete_stacks,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Only hooks at this path, such as web/db or 'web/*'."),
    ] = None,
    point: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Only hooks at this point, such as 'pre-*'.")
    ] = None,
    older: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=duration,
            help="Only hooks that have waited longer than this, such as 30m.",
        ),
    ] = None,
    mine: Annotated[
        bool, typer.Option("--mine", help="Only hooks that you may answer and have not answered.")
    ] = False,
    dry: Annotated[
        bool | None,
        typer.Option("--dry/--no-dry", help="Only hooks of dry-run rules, or none of them."),
    ] = None,
    all_projects: Annotated[
        bool,
        typer.Option(
            "--all-projects", help="Hooks of all projects, if you have a role in every project."
        ),
    ] = False,
    limit: options.Limit = None,
) -> None:
    """List hooks; by default those that wait for an answer.

    To answer a hook of another project, use --project: `headgate hook continue ID --project NAME`.
    """
    if all_projects and stack is not None:
        stop("use either --stack or --all-projects, because a stack has one project",
             ExitCode.USAGE)  # fmt: skip
    # Hooks of dry-run rules never wait.
    state = state or ("all" if dry else "waiting")
    filters = {
        "state": None if state == "all" else state,
        "stack": stack,
        "path": at,
        "point": point,
        "older": older,
        "mine": "true" if mine else None,
        "dry": None if dry is None else str(dry).lower(),
    }
    read = _read_hooks_of_all if all_projects else _read_hooks
    hooks = ask(server, lambda client: read(client, filters, limit))
    rows = [output.hook_row(hook) for hook in hooks]
    columns = output.WAITING_HOOK_COLUMNS if state == "waiting" else output.HOOK_COLUMNS
    if all_projects:
        columns = {"project": "PROJECT", **columns}
        rows = [{**row, "project": hook["project"]} for row, hook in zip(rows, hooks, strict=True)]
    selected = any((stack, at, point, older, mine, dry is not None))
    none = _none(server, state, selected=selected, all_projects=all_projects)
    print_rows(hooks, server.format, lambda: output.table(rows, columns), none)


def _none(server: ServerOptions, state: str, *, selected: bool, all_projects: bool) -> str:
    """What an empty list means. selected: whether options other than the state select hooks."""
    which = "no hook" if state == "all" else f"no {state} hook"
    if selected:
        text = f"{which} matches these options"
    elif all_projects:
        text = f"{which} in any project"
    else:
        text = f"{which} in the project {resolved_project(server)}"
    return text if state == "all" else f"{text}; --state all lists hooks in every state"


@app.command(name="show")
@with_options
def show_(server: ServerOptions, which: Which) -> None:
    """Show a hook with the details needed to decide."""
    hook = ask(server, lambda client: find(client, which))
    print_result(hook, server.format, lambda: hook_output.render(hook))


@app.command()
@with_options
def history(server: ServerOptions, which: Which) -> None:
    """Show the answers to a hook in order."""
    decisions = _call(server, which, "GET", "decisions")["decisions"]
    rows = [output.entry_row(one) for one in decisions]
    none = "no answer to this hook yet"
    print_rows(decisions, server.format, lambda: output.table(rows, HISTORY_COLUMNS), none)


@app.command()
@with_options
def hand_over(
    server: ServerOptions,
    which: Which,
    to: Annotated[str, typer.Argument(metavar="TO", help="user:NAME or role:NAME.")],
    note: Annotated[
        str, typer.Option(help="A note for the new approver; recorded in the audit log.")
    ] = "",
) -> None:
    """Hand a hook over: let another user or role answer it, too."""
    _print_hook(server, _call(server, which, "POST", "hand-over", {"to": to, "note": note}))


@app.command(name="continue")
@with_options
def continue_(
    server: ServerOptions,
    answer: ApprovalOptions,
    selection: SelectionOptions,
    which: AnyWhich = None,
) -> None:
    """Approve: continue the operation. At a drift hook: the same as repair."""
    _approve(server, (which, selection), "continue", answer, {})


@app.command()
@with_options
def repair(
    server: ServerOptions,
    answer: AnswerOptions,
    selection: SelectionOptions,
    which: AnyWhich = None,
) -> None:
    """At a drift hook: repair the resource and those that depend on it."""
    _answer(server, (which, selection), "repair", answer, {})


@app.command()
@with_options
def ignore(
    server: ServerOptions,
    answer: AnswerOptions,
    selection: SelectionOptions,
    for_: Annotated[
        str,
        typer.Option("--for", metavar="TIME", callback=duration, help="For how long, such as 2h."),
    ],
    which: AnyWhich = None,
) -> None:
    """At a drift hook: leave all drift of the resource for a time. Then it is asked again."""
    _answer(server, (which, selection), "ignore", answer, {"data": {"for": for_}})


@app.command()
@with_options
def adopt(
    server: ServerOptions,
    answer: AnswerOptions,
    selection: SelectionOptions,
    which: AnyWhich = None,
) -> None:
    """At a drift hook: make the observed values the desired ones. Changes nothing else."""
    _answer(server, (which, selection), "adopt", answer, {})


@app.command()
@with_options
def step(
    server: ServerOptions,
    answer: ApprovalOptions,
    selection: SelectionOptions,
    which: AnyWhich = None,
    into: Annotated[
        bool, typer.Option("--into", help="Also stop in the nested stack, if the resource has one.")
    ] = False,
    out: Annotated[
        bool, typer.Option("--out", help="Run the nested stack to its end; stop in its parent.")
    ] = False,
) -> None:
    """Continue, and stop before the next operation."""
    if into and out:
        stop("use either --into or --out", ExitCode.USAGE)
    how = {"how": "into" if into else "out"} if into or out else {}
    _approve(server, (which, selection), "step", answer, how)


@app.command()
@with_options
def run(
    server: ServerOptions,
    answer: ApprovalOptions,
    selection: SelectionOptions,
    which: AnyWhich = None,
) -> None:
    """Continue, and skip further breakpoints that you may answer."""
    _approve(server, (which, selection), "run", answer, {})


@app.command()
@with_options
def patch(
    server: ServerOptions,
    answer: ApprovalOptions,
    selection: SelectionOptions,
    set_: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="A property; VALUE is YAML; repeatable."),
    ],
    which: AnyWhich = None,
) -> None:
    """Continue with changed properties, if the hook rule allows it."""
    _approve(
        server, (which, selection), "patch", answer, {"properties": _read_pairs(set_, "--set")}
    )


@app.command()
@with_options
def progress(
    server: ServerOptions,
    answer: AnswerOptions,
    selection: SelectionOptions,
    which: AnyWhich = None,
    extend: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            callback=duration,
            help="How much longer the hook waits from now, such as 30m. Default: the timeout of "
            "the rule.",
        ),
    ] = "",
) -> None:
    """Report progress and extend the deadline."""
    _answer(server, (which, selection), "progress", answer, {"extend": extend} if extend else {})


@app.command()
@with_options
def reject(
    server: ServerOptions,
    answer: AnswerOptions,
    selection: SelectionOptions,
    which: AnyWhich = None,
    ignore_for: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            callback=duration,
            help="At a drift hook: the same as ignore --for.",
        ),
    ] = "",
) -> None:
    """Reject: fail the operation. At a drift hook: leave the resource as it is."""
    more = {"data": {"ignore": {"for": ignore_for}}} if ignore_for else {}
    _answer(server, (which, selection), "reject", answer, more)


def _approve(
    server: ServerOptions,
    which: tuple[str | None, SelectionOptions],
    decision: str,
    answer: ApprovalOptions,
    more: Mapping[str, Json],
) -> None:
    data = read_answer_data(answer.data, answer.data_file)
    _answer(server, which, decision, answer, {**data, **more})


def _answer(
    server: ServerOptions,
    which: tuple[str | None, SelectionOptions],
    decision: str,
    answer: AnswerOptions,
    more: Mapping[str, Json],
) -> None:
    """Answer one hook, or all that the options select."""
    name, selection = which
    if (name is None) == (not selection.filters):
        stop("name one hook, or select several with --stack, --at or --point", ExitCode.USAGE)
    body = {"decision": decision, "reason": answer.reason, "digest": answer.digest, **more}
    if name is not None:
        _print_hook(server, _call(server, name, "POST", "signal", body))
        return
    if answer.digest:
        stop("--digest is of one hook; several are answered as they are listed", ExitCode.USAGE)
    _answer_all(server, selection, body)


def _answer_all(
    server: ServerOptions, selection: SelectionOptions, body: Mapping[str, Json]
) -> None:
    """List the hooks, ask once, and answer each. The exit code is 1 if an answer was refused."""
    filters = {"state": "waiting", **selection.filters}
    hooks = ask(server, lambda client: _read_hooks(client, filters))
    if not hooks:
        stop("no waiting hook matches; see `headgate hook list`", ExitCode.ERROR)
    if not selection.yes:
        rows = [output.hook_row(hook) for hook in hooks]
        standard_error().print(output.table(rows, output.HOOK_COLUMNS), markup=False)
    count = format_count(len(hooks), "hook")
    confirm(bulk_question(body["decision"], count), (), selection.yes)

    async def work(client: ApiClient) -> list[Json]:
        answered: list[Json] = []
        for hook in hooks:
            answered.append(await _signal(client, hook, body))
            client.continuation = (
                f"{len(answered)} of {format_count(len(hooks), 'answer')} were sent."
                " `headgate hook list` shows the hooks that still wait"
            )
        return answered

    answered = ask(server, work)
    rows = [{**output.hook_row(one), "error": one.get("error", "")} for one in answered]
    columns = {**output.HOOK_COLUMNS, "error": "ERROR"}
    print_result(answered, server.format, lambda: output.table(rows, columns))
    refused = sum("error" in one for one in answered)
    if refused:
        stop(f"{refused} of {format_count(len(hooks), 'answer')} were refused", ExitCode.ERROR)


def bulk_question(decision: str, count: str) -> str:
    """``Continue 2 hooks?``. count: of the hooks, with the noun. Pure."""
    match decision:
        case Decision.ADOPT:
            return f"Adopt the observed values of {count}?"
        case Decision.IGNORE:
            return f"Ignore the drift of {count} for a time?"
        case Decision.PROGRESS:
            return f"Report progress of {count}?"
        case Decision.REPAIR:
            return f"Repair the resources of {count}?"
        case _:
            return f"{decision.capitalize()} {count}?"


async def _read_hooks(
    client: ApiClient, filters: Mapping[str, str | None], limit: int | None = None
) -> list[Json]:
    """filters: query parameters; None: not sent. The stack may be a prefix of an ID."""
    sent = {**filters, "stack": await select_stack(client, filters.get("stack"))}
    query = {name: value for name, value in sent.items() if value is not None}
    query["limit"] = str(PAGE_SIZE)
    return await read_pages(client, url_path("hooks"), "hooks", query, limit=limit)


async def _read_hooks_of_all(
    client: ApiClient, filters: Mapping[str, str | None], limit: int | None = None
) -> list[Json]:
    """Hooks of all projects. Warns about cells whose hooks the list lacks."""
    query = {name: value for name, value in filters.items() if value is not None}
    query |= {"global_tenant": "true", "limit": str(min(limit or PAGE_SIZE, PAGE_SIZE))}
    hooks: list[Json] = []
    warnings: dict[str, Json] = {}
    async with aclosing(client.pages(url_path("hooks"), query)) as pages:
        async for page in pages:
            hooks += page["hooks"]
            warnings |= {one["message"]: one for one in page.get("warnings", ())}
            if limit is not None and len(hooks) >= limit:
                break
    from hub.cli.commands.sources import warning_text

    for one in warnings.values():
        warn(one, warning_text(one))
    return hooks[:limit]


async def _signal(client: ApiClient, hook: Json, body: Mapping[str, Json]) -> Json:
    """The hook after the answer, or as it was listed with an `error`."""
    path = url_path("hooks", hook["id"], "signal")
    try:
        return await client.call("POST", path, body={**body, "digest": hook["digest"]})
    except RequestError as error:
        if not error.status:  # the server is unreachable
            raise
        return hook | {"error": str(error)}


def _call(server: ServerOptions, which: str, method: str, path: str, body: Json = None) -> Json:
    async def work(client: ApiClient) -> Json:
        hook = await find(client, which)
        return await client.call(method, url_path("hooks", hook["id"], path), body=body)

    return ask(server, work)


def _print_hook(server: ServerOptions, hook: Json) -> None:
    print_result(hook, server.format, lambda: output.fields(output.hook_row(hook), FIELDS))


def read_answer_data(pairs: list[str], file: Path | None) -> dict[str, Json]:
    """``{"data": ...}`` from --data or --data-file; empty without both. Ends the command if the
    data cannot be read."""
    if pairs and file is not None:
        stop("use either --data or --data-file", ExitCode.USAGE)
    if file is not None:
        # Imported here, because YAML takes long to load, and most commands do not read it.
        from hub.cli.inputs.documents import read_data

        try:
            return {"data": read_data(file)}
        except InputError as error:
            stop(str(error), ExitCode.ERROR)
    return {"data": _read_pairs(pairs, "--data")} if pairs else {}


def _read_pairs(pairs: list[str], option: str) -> dict[str, Json]:
    try:
        return yaml_values(pairs, option)
    except InputError as error:
        stop(str(error), ExitCode.USAGE)


async def find(client: ApiClient, which: str) -> Json:
    """A hook by its ID or a unique prefix of it, or a waiting hook by its place."""
    hook_id = which if _is_id(which) else None
    if is_prefix(which):
        hook_id = await find_id(client, "hook", which)
    if hook_id is not None:
        return await client.call("GET", url_path("hooks", hook_id))
    waiting = await list_waiting_hooks(client)
    if not any(matches(hook, which) for hook in waiting):
        past = await _find_past(client, which)
        if past is not None:
            raise RequestError(404, no_longer_waits(past))
    return select_hook(waiting, which)


async def _find_past(client: ApiClient, which: str) -> Json | None:
    """The newest hook at a place where none waits."""
    stack, separator, place = which.partition(":")
    if not separator:
        return None
    resource, _, point = place.rpartition(":")
    # Without a second colon, it is a resource or a point of the whole stack.
    either = ({"path": place}, {"point": place})
    filters = ({"path": resource, "point": point},) if resource else either
    try:
        hooks = [
            hook for one in filters for hook in await _read_hooks(client, {"stack": stack, **one})
        ]
    except RequestError as error:
        if not error.status:  # the server is unreachable
            raise
        return None
    found = [hook for hook in hooks if matches(hook, which)]
    return max(found, key=lambda hook: hook["opened_at"], default=None)


def no_longer_waits(hook: Json) -> str:
    """``web:db:pre-create no longer waits: ann answered with continue``, and what to do. Pure."""
    short = hook["id"][: tables.SHORT_ID]
    what = f"it is {hook['state']}"
    if hook["state"] == "answered":
        what = f"{hook['decided_by']} answered with {hook['decision']}"
    return (
        f"{output.hook_path(hook)} no longer waits: {what}. `headgate hook show {short}` shows it,"
        " `headgate hook list` lists the hooks that wait"
    )


def _is_id(which: str) -> bool:
    try:
        return str(UUID(which)) == which.lower()
    except ValueError:
        return False


def select_hook(hooks: Sequence[Json], which: str) -> Json:
    """The one hook that the argument selects. Raises RequestError and InputError. Pure."""
    found = [hook for hook in hooks if matches(hook, which)]
    if len(found) == 1:
        return found[0]
    if not found:
        near = nearest(which, [name for hook in hooks for name in _names(hook)])
        raise RequestError(
            404,
            f'no waiting hook matches "{which}"{f". {near}" if near else ";"} `headgate hook list`'
            " lists them. Name a hook that no longer waits by its ID, or the first 4 or more"
            " characters of it; `headgate hook list --state all` lists these, too",
        )
    names = ", ".join(output.hook_path(hook) for hook in found[:5])
    raise InputError(f'"{which}" matches {len(found)} waiting hooks: {names}; be more specific')


def matches(hook: Json, which: str) -> bool:
    """which: STACK:RESOURCE, STACK:RESOURCE:POINT, or STACK:POINT for the whole stack."""
    return which in _names(hook)


def _names(hook: Mapping[str, Json]) -> list[str]:
    """The arguments that select a waiting hook by its place, the shortest first."""
    of_resource = [f"{hook['root_stack_name']}:{hook['path']}"] if hook["path"] else []
    return [*of_resource, output.hook_path(hook)]
