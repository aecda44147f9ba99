"""Checks of doctor: projects in two cells, and moves between cells that have not ended."""

from collections import Counter
from collections.abc import Sequence

from engine.errors import HeadgateError
from engine.store.maintenance.project_moves import (
    MOVING,
    UnfinishedMove,
    list_projects,
    list_unfinished,
    move_command,
)
from engine.store.schema.upgrade import read_pending
from hub.checks.database import CheckResult, CheckState, ok_result
from hub.checks.offline_database import connect
from hub.settings.settings import Settings


async def check_moves(settings: Settings) -> list[CheckResult]:
    """Whether a project is in two of the cells that respond, or its move is not finished."""
    found: list[CheckResult] = []
    unread: list[str] = []
    cells: dict[str, Sequence[str]] = {}
    for cell in settings.cells.databases:
        try:
            async with connect(cell.url.get_secret_value()) as conn:
                if await read_pending(conn):
                    unread.append(cell.name)
                    continue
                cells[cell.name] = await list_projects(conn)
                found += [describe_move(one, cell.name) for one in await list_unfinished(conn)]
        except HeadgateError:
            unread.append(cell.name)
    twice = Counter(project for of_cell in cells.values() for project in of_cell)
    for project, count in sorted(twice.items()):
        if count > 1:
            names = [name for name, of_cell in cells.items() if project in of_cell]
            reason = f'the project "{project}" is in the cells {" and ".join(names)}'
            remedy = (
                f"See what each has with `{move_command(project, names[0])}`,"
                " then delete the older rows with --discard CELL"
            )
            found.append(CheckResult("moves", CheckState.ERROR, reason, remedy))
    if unread:
        reason = f"not checked, because their databases cannot be read: {', '.join(unread)}"
        remedy = "See the checks of these cells, and run doctor again"
        found.append(CheckResult("moves", CheckState.WARNING, reason, remedy))
    if found:
        return found
    return [ok_result("moves", "no project is in two cells, and no move is unfinished")]


def describe_move(move: UnfinishedMove, cell: str) -> CheckResult:
    """cell: the name of the one that knows of the move."""
    since = "" if move.since is None else f" since {move.since:%Y-%m-%d %H:%M:%S} UTC"
    if move.state is None:
        reason = f'the cell "{cell}" has rows of a move of the project "{move.project}"'
        target = cell
    else:
        reason = (
            f'the move of the project "{move.project}" from "{cell}" to "{move.moving_to}" is not'
            f" finished: {move.state}{since}"
        )
        target = move.moving_to
    remedy = f"Finish it with `{move_command(move.project, target)}`"
    if move.state in MOVING:
        remedy += ", or end it with --undo"
    return CheckResult("moves", CheckState.WARNING, reason, remedy)
