"""Options and arguments that several commands share."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from math import inf
from pathlib import Path
from typing import Annotated, Any, get_type_hints
from urllib.parse import urlsplit

import typer

from engine.hooks.durations import parse_duration
from headgate.connection import PROJECT, URL
from hub.cli.completion import complete_contexts, complete_formats, complete_stacks
from hub.cli.messages import FOR_PROGRAMS, use_json
from hub.cli.printing.formats import ACCEPTED, JSON, TABLE, FormatError, ResultFormat, read_format


class OptionGroup:
    """Options that several commands share, as a dataclass; see `with_options`."""

    @property
    def messages_as_json(self) -> bool:
        """Whether programs read the messages of the command."""
        return False


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command that is an `OptionGroup` by the options of the group.

    They come after the parameters of the command, those of its first group last.
    """
    parameters = signature(command, eval_str=True).parameters
    groups = {name: one.annotation for name, one in parameters.items() if _is_group(one)}
    own = [one for name, one in parameters.items() if name not in groups]
    options = [option for group in reversed(groups.values()) for option in _options(group)]

    @wraps(command)
    def with_groups(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        use_json(any(values[name].messages_as_json for name in groups))
        command(**values)

    keywords = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in (*own, *options)]
    with_groups.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    return with_groups


def _is_group(parameter: Parameter) -> bool:
    kind = parameter.annotation
    return isinstance(kind, type) and issubclass(kind, OptionGroup)


def _options(group: type[OptionGroup]) -> list[Parameter]:
    annotations = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            one.name,
            Parameter.KEYWORD_ONLY,
            default=one.default if one.default_factory is MISSING else one.default_factory(),
            annotation=annotations[one.name],
        )
        for one in fields(group)  # type: ignore[arg-type] # each group is a dataclass
    ]


def http_url(text: str) -> str:
    """Check the URL of a server. Raises typer's usage error."""
    try:
        url = urlsplit(text)
        valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        valid = valid and not url.query and not url.fragment
    except ValueError:
        valid = False
    if not valid:
        raise typer.BadParameter(f'"{text}" is not a valid URL; write http://HOST:PORT')
    return text


def printable(text: str) -> str:
    """Check that a name has no control characters. Raises typer's usage error."""
    if not text.isprintable():
        raise typer.BadParameter("the name contains control characters; remove them")
    return text


def seconds(text: str) -> float:
    """Read ``90s``, ``30m``, ``2h`` or ``1d``. Raises typer's usage error."""
    duration = parse_duration(text)
    if duration is None:
        raise typer.BadParameter(f'"{text}" is not a duration; write 90s, 30m or 2h')
    return duration.total_seconds()


def wait_seconds(text: str) -> float:
    """As `seconds`; also a number of seconds from 1. Raises typer's usage error."""
    try:
        number = float(text)
    except ValueError:
        return seconds(text)
    if not 1 <= number < inf:
        raise typer.BadParameter(f'"{text}" is not a time from 1 second; write 90s, 30m or 2h')
    return number


def duration(text: str | None) -> str | None:
    """Check an optional duration that the server reads. Raises typer's usage error."""
    if text:
        seconds(text)
    return text


AsJson = Annotated[bool, typer.Option("--json", help="The same as -o json.")]


def result_format(text: str | ResultFormat) -> ResultFormat:
    """Read -o. Raises typer's usage error."""
    try:
        return read_format(text)
    except FormatError as error:
        raise typer.BadParameter(str(error)) from error


Format = Annotated[
    ResultFormat | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT",
        parser=result_format,
        autocompletion=complete_formats,
        help=f"Output format: {ACCEPTED}. Default: table.",
    ),
]


@dataclass(frozen=True)
class PrintOptions(OptionGroup):
    """How a result is printed."""

    output: Format = None
    as_json: AsJson = False

    @property
    def messages_as_json(self) -> bool:
        return self.format.kind in FOR_PROGRAMS

    def __post_init__(self) -> None:
        """Raises typer's usage error."""
        if self.as_json and self.output not in (None, JSON):
            raise typer.BadParameter("use either --json or --output")

    @property
    def format(self) -> ResultFormat:
        return JSON if self.as_json else self.output or TABLE


@dataclass(frozen=True, slots=True)
class ConnectionOptions(OptionGroup):
    context: Annotated[
        str,
        typer.Option(
            "--context",
            envvar="HEADGATE_CONTEXT",
            help="Saved context, instead of the current one; see `headgate login`.",
            metavar="NAME",
            autocompletion=complete_contexts,
        ),
    ] = ""
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            envvar="HEADGATE_URL",
            help=f"URL of the server. Default: {URL}.",
            parser=http_url,
            metavar="URL",
        ),
    ] = None
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            envvar="HEADGATE_PROJECT",
            help=f"The project. Default: {PROJECT}.",
            metavar="NAME",
        ),
    ] = None
    user: Annotated[
        str,
        typer.Option(
            "--user",
            envvar="HEADGATE_USER",
            help="Your user name, for the audit log.",
            parser=printable,
            metavar="NAME",
        ),
    ] = ""


@dataclass(frozen=True)
class ServerOptions(PrintOptions, ConnectionOptions):
    """The options of commands that call the API and print its response."""


def option_names() -> frozenset[str]:
    """The options of all commands that call the API, such as ``--url`` and ``-o``."""
    options = [option for one in _options(ServerOptions) for option in one.annotation.__metadata__]
    # `typer.Option` has the first name as its default.
    return frozenset(name for one in options for name in (one.default, *one.param_decls))


@dataclass(frozen=True, slots=True)
class JsonServerOptions(ConnectionOptions):
    """The options of commands that call the API, and whose -o has another meaning."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False

    @property
    def messages_as_json(self) -> bool:
        return self.as_json


@dataclass(frozen=True, slots=True)
class WaitOptions(OptionGroup):
    """The options of commands that start an action."""

    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait", help="Wait until the action ends; the exit code is its result."
        ),
    ] = False
    until_waiting: Annotated[
        bool,
        typer.Option(
            "--until-waiting",
            help="Wait until the action ends or only hooks that wait for an answer are left.",
        ),
    ] = False
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            metavar="TIME",
            parser=seconds,
            help="How long to wait, such as 90s, 30m or 2h.",
        ),
    ] = "1h"  # type: ignore[assignment] # typer parses it

    @property
    def any(self) -> bool:
        return self.wait or self.until_waiting


@dataclass(frozen=True)
class OfflineOptions(PrintOptions):
    """The options of commands that work on the database without a server."""

    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The server's settings file (TOML).")
    ] = None
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory of the embedded database.")
    ] = None


STACK_HELP = "Name of the stack, its ID, or a unique prefix of its ID."
Name = Annotated[
    str, typer.Argument(metavar="STACK", help=STACK_HELP, autocompletion=complete_stacks)
]
NestedDepth = Annotated[
    int,
    typer.Option("--nested-depth", min=0, help="Include nested stacks, down to this level."),
]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the new stack.")]

Template = Annotated[Path, typer.Option("--template", "-t", help="Template file (HOT or CFN).")]
OtherTemplate = Annotated[
    Path | None, typer.Option("--template", "-t", help="Template file (HOT or CFN).")
]  # fmt: skip
Environments = Annotated[
    list[Path], typer.Option("--environment", "-e", help="Environment file; repeatable.")
]
Parameters = Annotated[
    list[str],
    typer.Option("--parameter", "-P", metavar="KEY=VALUE", help="Parameter value; repeatable."),
]
ParameterFiles = Annotated[
    list[str],
    typer.Option(metavar="KEY=PATH", help="Parameter value from a file; repeatable."),
]
Tags = Annotated[
    list[str],
    typer.Option(
        "--tag",
        metavar="TAG",
        help="Tag; repeatable. With neither --tag nor --existing, all tags are removed.",
    ),
]
NewTags = Annotated[list[str], typer.Option("--tag", metavar="TAG", help="Tag; repeatable.")]
Minutes = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="MINUTES",
        help="Timeout of the action, in minutes of working time. Default: none.",
    ),
]
Rollback = Annotated[
    bool | None,
    typer.Option(
        "--rollback/--no-rollback",
        help="Roll back automatically if the action fails. Default: as before.",
    ),
]
NewRollback = Annotated[
    bool | None,
    typer.Option(
        "--rollback/--no-rollback",
        help="Roll back automatically if the action fails. Default: no.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings are errors.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the plan without applying it.")
]  # fmt: skip
PlanDigest = Annotated[
    str,
    typer.Option("--plan", metavar="DIGEST",
                 help="Apply only if the plan still has this digest, from --dry-run."),
]  # fmt: skip

Existing = Annotated[
    bool, typer.Option("--existing", help="Keep the stored template, environment and parameters.")
]
ClearParameters = Annotated[
    list[str], typer.Option(metavar="KEY", help="Reset a parameter to its default; repeatable.")
]
Only = Annotated[
    list[str],
    typer.Option("--only", metavar="GLOB", help="Change only these resources; repeatable."),
]
Except = Annotated[
    list[str],
    typer.Option("--except", metavar="GLOB", help="Do not change these resources; repeatable."),
]
Moved = Annotated[
    list[str],
    typer.Option("--moved", metavar="[STACK:]FROM=TO",
                 help="Rename a resource, or move one from another stack; repeatable."),
]  # fmt: skip
#: The forms of a breakpoint.
BREAKPOINT = "RESOURCE:POINT, RESOURCE (before any operation on it), or a point of the whole stack"
Clear = Annotated[
    list[str],
    typer.Option("--clear-hook", metavar="RESOURCE:POINT",
                 help="Skip a breakpoint in this change, or '*' for all; repeatable."),
]  # fmt: skip
Add = Annotated[
    list[str],
    typer.Option("--break-at", metavar="BREAKPOINT",
                 help=f"Add a breakpoint for this change: {BREAKPOINT}; repeatable."),
]  # fmt: skip
#: The names that these options had before. Help does not list them.
FormerClear = Annotated[
    list[str], typer.Option("--clear", hidden=True, metavar="RESOURCE:POINT")
]  # fmt: skip
FormerAdd = Annotated[
    list[str], typer.Option("--add-hook", "--add", hidden=True, metavar="BREAKPOINT")
]  # fmt: skip
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the output to a new file with mode 0600."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, metavar="N", help="Maximum number. Default: all."),
]
NewestLimit = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="Only the newest. Default: all.")
]


def newest(found: list[Any], limit: int | None) -> list[Any]:
    """The last items of a list with the oldest first."""
    return found if limit is None else found[-limit:]
