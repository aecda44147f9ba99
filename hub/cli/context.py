"""Requests, results and errors of all commands."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from engine.errors import Finding, HeadgateError, Invalid, Unavailable
from headgate.connection import Query
from headgate.errors import RequestError, UnreachableError
from hub.cli import continuing_commands
from hub.cli.connection.client import ApiClient, call_stack
from hub.cli.connection.connections import ChosenConnection, ResolvedConnection
from hub.cli.connection.saved_contexts import ContextError
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs.files import InputError
from hub.cli.messages import note, stop
from hub.cli.options import ConnectionOptions, OfflineOptions
from hub.cli.printing.consoles import standard_error, standard_output
from hub.cli.printing.formats import (
    JSON,
    FormatError,
    FormatKind,
    ResultFormat,
    find_values,
    format_document,
)
from hub.cli.printing.pager import show_text
from hub.cli.printing.renderables import styled_text
from hub.cli.signals import EndedBySignal, is_broken_pipe, run_until_signal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hub.settings.settings import Settings

Result = TypeVar("Result")
#: The message of an interrupted command that can be repeated at once.
INTERRUPTED = "interrupted. Run the command again: it continues with the rest"
Json = Any


def ask(server: ConnectionOptions, work: Callable[[ApiClient], Awaitable[Result]]) -> Result:
    """Run `work` with a client. An error is printed and ends the command with exit code 1."""
    try:
        connection = chosen_connection(server).resolve()
    except ContextError as error:
        stop(str(error), ExitCode.USAGE)
    return ask_with(connection, work)


def chosen_connection(server: ConnectionOptions) -> ChosenConnection:
    return ChosenConnection(server.context, server.url, server.project, server.user)


def resolved_project(server: ConnectionOptions) -> str:
    """The project of a command that has connected."""
    return chosen_connection(server).resolve().project


def ask_with(
    connection: ResolvedConnection,
    work: Callable[[ApiClient], Awaitable[Result]],
    *,
    interrupted: str = "",
) -> Result:
    """See `ask`. interrupted: the message after Ctrl-C and SIGTERM, instead of that of the
    client."""
    client = ApiClient(connection.url, connection.project, connection.credentials)

    async def run() -> Result:
        async with client:
            return await work(client)

    try:
        return run_until_signal(run)
    except RequestError as error:
        more = client.addition_to(error)
        is_terminal = standard_error().is_terminal
        text = error_text(error, terminal=is_terminal, more=more, stack=client.found_stack)
        stop(text, ExitCode.ERROR, request_error(error, more))
    except InputError as error:
        stop(str(error), ExitCode.ERROR, input_error(error))
    except EndedBySignal as end:
        stop(interrupted or client.interruption, end.code)


def ask_stack(
    server: ConnectionOptions,
    name: str,
    method: str,
    *parts: str,
    body: Json = None,
    query: Query | None = None,
) -> Json:
    """Send a request to a path below a stack; see `ask`."""
    return ask(
        server, lambda client: call_stack(client, name, method, *parts, body=body, query=query)
    )


def run_offline(
    options: OfflineOptions,
    work: Callable[["Settings"], Awaitable[Result]],
    *,
    of_cells: bool = False,
    interrupted: str = "interrupted",
) -> Result:
    """Run `work` with the settings of a server. An error is printed and ends the command with exit
    code 1. of_cells: whether the command works with settings of several cells. interrupted: the
    message after Ctrl-C and SIGTERM."""
    # Imported here, because it takes long, and most commands do not need it.
    from hub.settings.settings import load_settings

    async def run() -> Result:
        settings = load_settings(options.config, {"database.data_dir": options.data_dir})
        if settings.cells.databases and not of_cells:
            raise Unavailable(
                "these settings name several databases, and the command works with one",
                place="[cells] databases",
                remedy="Use the settings of an engine of the cell",
            )
        return await work(settings)

    try:
        return run_until_signal(run)
    except HeadgateError as error:
        stop(str(error), ExitCode.ERROR, findings_error(error))
    except OSError as error:
        if is_broken_pipe(error):
            raise
        stop(str(error), ExitCode.ERROR)
    except EndedBySignal as end:
        stop(interrupted, end.code)


#: Requests that remedies of the API name -> the command that sends it.
COMMANDS_OF_ROUTES = {
    "deliveries": "subscription deliveries SUBSCRIPTION",
    "drift": "stack drift STACK",
    "events": "events STACK",
    "graph": "graph STACK",
    "hooks": "hook list",
    "resource_types": "type list",
    "resources": "resource list STACK",
    "snapshots": "stack snapshot list STACK",
    "stacks": "stack list",
    "subscriptions": "subscription list",
    "tokens": "token list",
    "versions": "stack history STACK",
}
_SIGN_IN = ApiClient.credential_remedy
#: Remedies of the API for requests without a valid credential, with that of the command line.
_CREDENTIAL_REMEDIES = {
    "Send a token as X-Auth-Token or `Authorization: Bearer`, or a name and a password by HTTP"
    f" basic; an admin creates them with `headgate token create`. {_SIGN_IN}": f"{_SIGN_IN} An"
    " admin creates tokens with `headgate token create`.",
    "Send a Keystone token as X-Auth-Token; `openstack token issue` prints one."
    f" {_SIGN_IN}": "Sign in with `headgate login`, or set HEADGATE_TOKEN, with a Keystone token;"
    " `openstack token issue` prints one.",
    f"Ask an admin for a new one: `headgate token create`. {_SIGN_IN}": f"{_SIGN_IN} An admin"
    " creates one with `headgate token create`.",
}
#: Remedies of the API -> those of the command line, which name its options and commands. STACK is
#: the stack that the command has found.
REMEDIES = {
    **continuing_commands.REMEDIES,
    "Stop it, or cancel it without rollback.": "`headgate stack stop STACK` stops it, and"
    " `headgate stack cancel STACK --no-rollback` ends it as FAILED.",
    "Stop it: a delete cannot be cancelled.": "A delete cannot be cancelled. `headgate stack stop"
    " STACK` stops it.",
    "See `ask` of the hook for the required data.": "`headgate hook show` shows the data that the"
    " hook rule requires. Add --data KEY=VALUE for each.",
    'To answer a waiting hook, send its point: {"unset_hook": "pre-create"}.': "To answer a waiting"
    " hook: `headgate hook continue STACK:RESOURCE`.",
    **_CREDENTIAL_REMEDIES,
    "Give it a value, or a default in the template.": "Give it a value with -P NAME=VALUE, or a"
    " default in the template.",
}
#: The place of a breakpoint in a request. `--break-at db` sends one for each operation.
_BREAKPOINT = re.compile(r"^(hooks\.add|breakpoints)\[\d+\]")
_ROUTE = re.compile(rf"GET \.\.\./({'|'.join(COMMANDS_OF_ROUTES)})(?![\w/])")


def error_text(error: RequestError, *, terminal: bool, more: str = "", stack: str = "STACK") -> str:
    """The message of a failed request, with commands and options in place of the requests and
    fields that its remedy names; on a terminal with the URL of the page about its type. more:
    sentences after it. stack: the name of the stack in these commands."""

    def command_of(route: re.Match[str]) -> str:
        return _for_stack(f"`headgate {COMMANDS_OF_ROUTES[route[1]]}`", stack)

    text = _ROUTE.sub(command_of, str(error))
    for remedy, of_command_line in REMEDIES.items():
        text = text.replace(remedy, _for_stack(of_command_line, stack))
    text = _with_sentences("\n".join(_without_repetitions(text.split("\n"))), more)
    return f"{text}\nSee {error.help}" if terminal and error.help else text


def _for_stack(text: str, stack: str) -> str:
    return re.sub(r"\bSTACK\b", lambda _: stack, text)


def _with_sentences(text: str, more: str) -> str:
    return f"{text.rstrip('.')}. {more}" if more else text


def _without_repetitions(lines: Iterable[str]) -> Iterator[str]:
    """Each sentence about breakpoints once."""
    shown = set()
    for line in lines:
        sentence = _BREAKPOINT.sub("", line)
        if sentence == line or sentence not in shown:
            yield line
        shown.add(sentence)


def request_error(error: RequestError, more: str = "") -> dict[str, Json]:
    """The keys of an error for programs: those of the response, and its status, title and ID. more:
    sentences after its message."""
    document: dict[str, Json] = {"message": str(error), **error.document}
    document["message"] = _with_sentences(str(document["message"]), more)
    if isinstance(error, UnreachableError):
        document |= {"type": "ServerUnreachable", "title": "Server Unreachable"}
    if error.status in set(HTTPStatus):
        title = HTTPStatus(error.status).phrase
        kind = error.code or title.replace(" ", "")
        document |= {"type": kind, "title": title, "status": error.status}
    if error.request_id:
        document["request_id"] = error.request_id
    if error.findings:
        document["findings"] = [*error.findings]
    return document


def input_error(error: InputError) -> dict[str, Json]:
    return {} if error.finding is None else finding_error([error.finding])


def findings_error(error: HeadgateError) -> dict[str, Json]:
    """Of an error of the server's program."""
    return finding_error(error.findings if isinstance(error, Invalid) else [error.finding])


def finding_error(findings: Sequence[Finding]) -> dict[str, Json]:
    first, keys = findings[0], ("place", "reason", "remedy", "file", "line", "column", "quote")
    documents = [{key: getattr(one, key) or None for key in keys} for one in findings]
    return {
        "type": first.code,
        "message": first.reason,
        "place": first.place,
        "remedy": first.remedy,
        "findings": documents,
    }


def print_result(
    document: Json, result_format: ResultFormat, render: Callable[[], "RenderableType"]
) -> None:
    """Print a result. render: it for people."""
    if result_format.is_document:
        print_document(document, result_format)
    else:
        print_renderable(render(), wide=result_format.kind == FormatKind.WIDE)


def print_removal(object_id: str, what: str, result_format: ResultFormat) -> None:
    """Print that an object is gone. what: ``deleted`` or ``revoked``."""
    document = {"id": object_id, what: True}
    print_result(document, result_format, lambda: styled_text(f"{object_id} {what}"))


def print_rows(
    rows: Sequence[Json],
    result_format: ResultFormat,
    render: Callable[[], "RenderableType"],
    none: str,
) -> None:
    """Print a list. none: what standard error says of an empty one, for people."""
    print_result(rows, result_format, render)
    if not rows and not result_format.is_document:
        note(none)


def print_document(document: Json, result_format: ResultFormat = JSON) -> None:
    """Print a result for programs."""
    try:
        text = format_document(document, result_format)
    except FormatError as error:
        stop(str(error), ExitCode.USAGE)
    if text:
        typer.echo(text)
    elif document and result_format.kind == FormatKind.JSONPATH:
        expression = result_format.expression
        if not find_values(document, expression):
            note(unmatched_text(document, expression))


def unmatched_text(document: Json, expression: str) -> str:
    """What standard error says if a JSONPath matches nothing. Pure."""
    text = f'nothing matches "{expression}"'
    if not isinstance(document, list):
        return f"{text}; -o json shows the result"
    keys = document[0] if isinstance(document[0], dict) else {}
    key = ".id" if "id" in keys else ""
    return f"{text}. The result is a list; name what each item has: {{[*]{key}}}"


def print_renderable(result: "RenderableType", *, wide: bool = False) -> None:
    """Print a result for people. On a terminal, a long one is shown in a pager. wide: do not
    shorten lines.

    A line that is still longer than the terminal is not broken, so that it can be copied.
    """
    console = standard_output(wide=wide)
    if not console.is_terminal:
        console.print(result, markup=False, soft_wrap=True)
        return
    with console.capture() as captured:
        console.print(result, markup=False, soft_wrap=True)
    show_text(captured.get(), lines=console.height)
