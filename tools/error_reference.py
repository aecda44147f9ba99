"""Writes docs/reference/errors.md from the list of error types."""

from collections.abc import Iterator

from hub.api.error_middleware import status_of
from hub.api.error_pages import example_text
from hub.error_types.catalog import GROUPS
from hub.error_types.error_type import ErrorType, ErrorTypeGroup

#: The server in the examples: the default address.
SERVER_URL = "http://127.0.0.1:8004"
HEAD = """# Errors

`make reference` writes this page from the list of error types (`hub/error_types`).

Every error of the HTTP API has a `type`. Each section below describes one type: what it means, what
to do, and an example. `error.help` in a response is the URL of the same text on the server that you
use, for example `http://127.0.0.1:8004/errors/StackExists`; `/errors` lists all types. On a
terminal, the command line prints this URL below the message.

[HTTP API](http-api.md#errors) describes the format. `error.findings` lists each error with its
place, reason and remedy; read the remedy first, because it refers to your request.
`error.warnings` lists the [warnings](http-api.md#warnings) about a template that was refused.

Programs should compare `type`, never the text of a message.
"""


def errors_page() -> str:
    return "\n".join([HEAD, *(part for group in GROUPS for part in _group(group))])


def _group(group: ErrorTypeGroup) -> Iterator[str]:
    yield f"## {group.title}\n"
    if group.introduction:
        yield f"{group.introduction}\n"
    for one in group.types:
        yield _section(one, group)


def _section(kind: ErrorType, group: ErrorTypeGroup) -> str:
    language, status = ("text", "") if group.at_start else ("json", _status(kind))
    example = example_text(kind, group, SERVER_URL)
    parts = [
        f"### {kind.name}",
        f"{status}{kind.meaning}",
        f"*What to do:* {kind.remedy}",
        f"```{language}\n{example}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _status(kind: ErrorType) -> str:
    return f"Status {status_of(kind.example)}. "
