"""headgate admin: move-project."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hub.cli.confirmation import confirm
from hub.cli.context import INTERRUPTED, print_result, run_offline
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import report_progress, stop
from hub.cli.options import OfflineOptions, Yes, seconds, with_options
from hub.cli.printing.renderables import styled_text

if TYPE_CHECKING:
    from hub.settings.settings import Settings

Json = Any
app = typer.Typer()


@app.command()
@with_options
def move_project(
    offline: OfflineOptions,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="ID of the project.")],
    to: Annotated[str, typer.Option("--to", metavar="CELL", help="The cell to move to.")] = "",
    undo: Annotated[
        bool,
        typer.Option("--undo", help="End a move that has not arrived: the project stays."),
    ] = False,
    discard: Annotated[
        str,
        typer.Option(
            metavar="CELL",
            help="Delete the project in this cell, because another one has it, too.",
        ),
    ] = "",
    wait: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long to wait for operations under way."),
    ] = "60s",
    yes: Yes = False,
) -> None:
    """Move a project to another cell, or continue an interrupted move.

    Use the settings of an API process that serves the cells.
    """
    if discard and (to or undo):
        stop("use --discard without --to and --undo", ExitCode.USAGE)
    if discard:
        _discard(offline, project, discard, yes)
        return
    if not to and not undo:
        stop("name the cell with --to CELL, or use --undo", ExitCode.USAGE)
    limit = seconds(wait)

    async def work(settings: "Settings") -> Json:
        from hub.cli.commands.project_move import move_project

        move = await move_project(
            settings, project, to, undo=undo, wait=limit, report=report_progress
        )
        cell = move.source if undo else move.target
        return {"project": project, "from": move.source, "to": move.target, "cell": cell}

    result = run_offline(offline, work, of_cells=True, interrupted=INTERRUPTED)
    text = f"{project} is in the cell {result['cell']}"
    print_result(result, offline.format, lambda: styled_text(text))


def _discard(offline: OfflineOptions, project: str, cell: str, yes: bool) -> None:
    async def plan(settings: "Settings") -> Json:
        from hub.cli.commands.project_discard import plan_discard

        return await plan_discard(settings, project, cell)

    async def work(settings: "Settings") -> Json:
        from hub.cli.commands.project_discard import discard_project

        move = await discard_project(settings, project, cell, report=report_progress)
        return {"project": project, "from": move.source, "to": move.target, "cell": move.target}

    found = run_offline(offline, plan, of_cells=True, interrupted=INTERRUPTED)
    confirm(f"Delete the rows of the project {project} in the cell {cell}?", found.facts, yes)
    result = run_offline(offline, work, of_cells=True, interrupted=INTERRUPTED)
    text = f"{project} is in the cell {result['cell']}"
    print_result(result, offline.format, lambda: styled_text(text))
