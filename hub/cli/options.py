"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Name = Annotated[str, typer.Argument(metavar="STACK", help="Name or ID of the stack.")]
NestedDepth = Annotated[
    int,
    typer.Option("--nested-depth", min=0, help="Include nested stacks down to this many levels."),
]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the new stack.")]

Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The server's settings file (TOML).")
]
DataDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory of the embedded database.")
]

Template = Annotated[Path, typer.Option("--template", "-t", help="Template file (HOT or CFN).")]
OtherTemplate = Annotated[
    Path | None, typer.Option("--template", "-t", help="Template file (HOT or CFN).")
]  # fmt: skip
Environments = Annotated[
    list[Path], typer.Option("--environment", "-e", help="Environment file; repeatable.")
]
Parameters = Annotated[
    list[str], typer.Option("--parameter", "-P", metavar="KEY=VALUE", help="May repeat.")
]
ParameterFiles = Annotated[
    list[str],
    typer.Option(metavar="KEY=PATH", help="Parameter value from a file; repeatable."),
]
Tags = Annotated[list[str], typer.Option("--tag", help="Tag; repeatable.")]
Minutes = Annotated[
    int | None, typer.Option(min=1, help="Timeout of the action, in minutes of working time.")
]
Rollback = Annotated[
    bool | None,
    typer.Option("--rollback/--no-rollback", help="Roll back automatically if the action fails."),
]
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
Clear = Annotated[
    list[str],
    typer.Option("--clear-hook", "--clear", metavar="RESOURCE:POINT",
                 help="Skip a breakpoint in this change, or '*' for all; repeatable."),
]  # fmt: skip
Add = Annotated[
    list[str],
    typer.Option("--break-at", "--add-hook", "--add", metavar="RESOURCE:POINT",
                 help="Add a breakpoint for this change; without a point, before any operation "
                      "on the resource; repeatable."),
]  # fmt: skip

Wait = Annotated[
    bool,
    typer.Option(
        "--wait/--no-wait", help="Wait until the action ends; the exit code is its result."
    ),
]
UntilWaiting = Annotated[
    bool,
    typer.Option(
        "--until-waiting",
        help="Wait until the action ends or only hooks that wait for an answer are left.",
    ),
]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="TIME", help="How long to wait, such as 90s, 30m or 2h.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the output to a new file with mode 0600."
    ),
]
