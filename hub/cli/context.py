"""Requests, results and errors of all commands."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from engine.errors import Finding, HeadgateError, Invalid, Unavailable
from headgate.connection import Query
from headgate.errors import RequestError, UnreachableError
from hub.cli.connection.client import ApiClient, call_stack
from hub.cli.connection.connections import ChosenConnection, ResolvedConnection
from hub.cli.connection.saved_contexts import ContextError
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs.files import InputError
from hub.cli.messages import note, stop
from hub.cli.options import ConnectionOptions, OfflineOptions
from hub.cli.printing.consoles import standard_error, standard_output
from hub.cli.printing.formats import JSON, FormatError, FormatKind, ResultFormat, format_document
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
        text = error_text(error, terminal=standard_error().is_terminal, more=more)
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
#: Remedies of the API -> those of the command line, which name its options.
REMEDIES = {
    "See `ask` of the hook for the required data.": "`headgate hook show` shows the data that the"
    " hook rule requires. Add --data KEY=VALUE for each.",
    "Give it a value, or a default in the template.": "Give it a value with -P NAME=VALUE, or a"
    " default in the template.",
}
#: The place of a breakpoint in a request. `--break-at db` sends one for each operation.
_BREAKPOINT = re.compile(r"^(hooks\.add|breakpoints)\[\d+\]")
_ROUTE = re.compile(rf"GET \.\.\./({'|'.join(COMMANDS_OF_ROUTES)})(?![\w/])")


def error_text(error: RequestError, *, terminal: bool, more: str = "") -> str:
    """The message of a failed request, with commands and options in place of the requests and
    fields that its remedy names; on a terminal with the URL of the page about its type. more:
    sentences after it."""
    text = _ROUTE.sub(lambda route: f"`headgate {COMMANDS_OF_ROUTES[route[1]]}`", str(error))
    for remedy, of_command_line in REMEDIES.items():
        text = text.replace(remedy, of_command_line)
    text = _with_sentences("\n".join(_without_repetitions(text.split("\n"))), more)
    return f"{text}\nSee {error.help}" if terminal and error.help else text


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
