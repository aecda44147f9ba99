"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Name = Annotated[str, typer.Argument(metavar="STACK", help="Name or id of the stack.")]
NestedDepth = Annotated[
    int, typer.Option("--nested-depth", min=0, help="Of stacks inside, too, so many levels down.")
]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the new stack.")]

Config = Annotated[Path | None, typer.Option(metavar="FILE", help="The server's TOML file.")]
DataDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where the embedded database lives.")
]

Template = Annotated[Path, typer.Option("--template", "-t", help="A template, in HOT or CFN.")]
OtherTemplate = Annotated[
    Path | None, typer.Option("--template", "-t", help="A template, in HOT or CFN.")
]  # fmt: skip
Environments = Annotated[
    list[Path], typer.Option("--environment", "-e", help="An environment; may repeat.")
]
Parameters = Annotated[
    list[str], typer.Option("--parameter", "-P", metavar="KEY=VALUE", help="May repeat.")
]
ParameterFiles = Annotated[
    list[str],
    typer.Option(metavar="KEY=PATH", help="A parameter's value from a file; may repeat."),
]
Tags = Annotated[list[str], typer.Option("--tag", help="A tag; may repeat.")]
Minutes = Annotated[int | None, typer.Option(min=1, help="Minutes the action may work.")]
Rollback = Annotated[
    bool | None,
    typer.Option("--rollback/--no-rollback", help="Whether a failure is undone by itself."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would happen, and do nothing.")
]  # fmt: skip
PlanDigest = Annotated[
    str,
    typer.Option("--plan", metavar="DIGEST",
                 help="Only if the plan is still the one of this digest, from --dry-run."),
]  # fmt: skip

Existing = Annotated[bool, typer.Option("--existing", help="Start from what the stack is.")]
ClearParameters = Annotated[
    list[str], typer.Option(metavar="KEY", help="Back to its default; may repeat.")
]
Only = Annotated[
    list[str],
    typer.Option("--only", metavar="GLOB", help="Change these resources alone; may repeat."),
]
Except = Annotated[
    list[str],
    typer.Option("--except", metavar="GLOB", help="Leave these resources alone; may repeat."),
]
Moved = Annotated[
    list[str],
    typer.Option("--moved", metavar="[STACK:]FROM=TO",
                 help="A resource has another name, or comes from another stack; may repeat."),
]  # fmt: skip
Clear = Annotated[
    list[str],
    typer.Option("--clear-hook", "--clear", metavar="RESOURCE:POINT",
                 help="Leave out a breakpoint this time; '*': all; may repeat."),
]  # fmt: skip
Add = Annotated[
    list[str],
    typer.Option("--break-at", "--add-hook", "--add", metavar="RESOURCE:POINT",
                 help="Break here, too, this time; without a point: before anything is done to "
                      "it; may repeat."),
]  # fmt: skip

Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait for the end; the exit code tells it.")
]
UntilWaiting = Annotated[
    bool, typer.Option("--until-waiting", help="Wait for the end, or until only hooks are left.")
]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="TIME", help="How long to wait: 90s, 30m, 2h.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write it there, for its owner alone."),
]
