"""Messages on standard error: text, or with `-o json` and `-o yaml` a JSON object on each line.

The key of the object says what it is: `error`, `warning`, `progress` or `note`.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from enum import StrEnum
from itertools import pairwise
from typing import Any, NoReturn

import typer

from hub.cli.exit_codes import ExitCode

Json = Any
_AS_JSON = ContextVar("as_json", default=False)


class MessageKind(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    PROGRESS = "progress"
    NOTE = "note"


#: The type and the title of an error that has no other.
ERRORS: Mapping[ExitCode, tuple[str, str]] = {
    ExitCode.ERROR: ("CommandFailed", "Command Failed"),
    ExitCode.USAGE: ("InvalidUsage", "Invalid Usage"),
    ExitCode.FAILED: ("ActionFailed", "Action Failed"),
    ExitCode.TIMED_OUT: ("TimeoutExpired", "Timeout Expired"),
    ExitCode.INTERRUPTED: ("Interrupted", "Interrupted"),
    ExitCode.TERMINATED: ("Terminated", "Terminated"),
}
#: The values of -o with which messages are JSON.
FOR_PROGRAMS = ("json", "yaml")


def use_json(as_json: bool) -> None:
    """Print the messages of this command as JSON, or as text."""
    _AS_JSON.set(as_json)


def is_json() -> bool:
    return _AS_JSON.get()


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether a command line that is not parsed yet, or cannot be, asks for JSON."""
    spellings = {f"{option}{word}" for option in ("-o", "--output=") for word in FOR_PROGRAMS}
    return (
        "--json" in words
        or not spellings.isdisjoint(words)
        or any(
            one in ("-o", "--output") and other in FOR_PROGRAMS for one, other in pairwise(words)
        )
    )


def stop(message: str, code: ExitCode, error: Mapping[str, Json] | None = None) -> NoReturn:
    """Print an error and end the command. error: see `complain`."""
    complain(message, code, error)
    raise typer.Exit(code)


def complain(
    message: str, code: ExitCode = ExitCode.ERROR, error: Mapping[str, Json] | None = None
) -> None:
    """Print an error. error: its keys for programs, in place of those that the code has."""
    kind, title = ERRORS[code]
    document = {"type": kind, "title": title, "message": message, **(error or {})}
    _print(MessageKind.ERROR, document, f"headgate: {message}")


def warn(document: Mapping[str, Json], text: str) -> None:
    """Print a warning. document: for programs."""
    _print(MessageKind.WARNING, document, text)


def report_progress(message: str) -> None:
    _print(MessageKind.PROGRESS, {"message": message}, f"headgate: {message}")


def note(message: str) -> None:
    """Print what is neither an error nor a warning about the request."""
    _print(MessageKind.NOTE, {"message": message}, f"headgate: {message}")


def _print(kind: MessageKind, document: Mapping[str, Json], text: str) -> None:
    """Without line breaks at the width of the terminal."""
    if is_json():
        print(json.dumps({kind: document}), file=sys.stderr, flush=True)
        return
    from hub.cli.printing.consoles import standard_error

    standard_error().print(text, markup=False, soft_wrap=True)
