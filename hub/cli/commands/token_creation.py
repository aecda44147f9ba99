"""headgate admin create-token: in the database, or in the cell of the project, or in all cells."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from engine.cells import possible_cells
from engine.errors import Conflict
from engine.store.access import tokens
from engine.store.access.token_copies import on_connection, share_tokens
from engine.store.access.tokens import EVERYWHERE, NewToken, TokenRecord
from engine.store.connection import Connection
from engine.store.maintenance.project_moves import MOVING, read_state
from engine.store.projects.cells import add_project, read_cell
from hub.api.cells import no_cell, refuse_moving
from hub.checks.offline_database import open_offline
from hub.cli.commands.project_move import AwayCells, connect_cells, refuse_away
from hub.program.wiring import make_keyring
from hub.settings.settings import Settings


async def create_token(settings: Settings, new: NewToken) -> TokenRecord:
    """Raises Conflict if the name has a password, or the database is the cell of other projects,
    and Unavailable."""
    if settings.cells.databases:
        return await _create_in_cells(settings, new)
    async with open_offline(settings.database) as conn:
        await _check_cell(conn, new.project)
        return await tokens.create(conn, new)


async def _check_cell(conn: Connection, project: str) -> None:
    """Raises Conflict if the database is a cell, and the project is in another one."""
    record = await read_cell(conn)
    if record is None or project == EVERYWHERE:
        return
    state = await read_state(conn, project)
    if state is None or state.left:
        raise Conflict(
            f'the project "{project}" is not in this database, the cell "{record.name}"',
            place="--project",
            remedy="Use the settings of an API process with [cells], which find the cell of the"
            " project",
            code="OtherCell",
        )


async def _create_in_cells(settings: Settings, new: NewToken) -> TokenRecord:
    async with AsyncExitStack() as stack:
        cells, away = await connect_cells(stack, settings, make_keyring(settings))
        if not cells:
            raise refuse_away(away, [*away])
        if new.project == EVERYWHERE:
            record = await tokens.create(next(iter(cells.values())), new)
            await share_tokens({name: on_connection(conn) for name, conn in cells.items()})
            return record
        name = await _find_cell(cells, away, new.project)
        async with cells[name].transaction():
            await add_project(cells[name], new.project, settings.cells.revision)
            return await tokens.create(cells[name], new)


async def _find_cell(cells: Mapping[str, Connection], away: AwayCells, project: str) -> str:
    """The cell that has a project or gets it. Raises Unavailable if it moves, or if a cell that is
    away can have it, and NotFound."""
    states = {name: await read_state(conn, project) for name, conn in cells.items()}
    if any(one is not None and one.state in MOVING for one in states.values()):
        raise refuse_moving(project)
    for name, one in states.items():
        if one is not None and one.state is None:
            return name
    if away:
        raise refuse_away(away, [*away])
    records = [await read_cell(conn) for conn in cells.values()]
    newest = max(filter(None, records), key=lambda record: record.agreed, default=None)
    if newest is None or not newest.agreed:
        raise Conflict(
            "the cells have not agreed to a revision of [cells] yet",
            place="[cells] revision",
            remedy="Start a process with the role api and these settings first",
            code="CellsNotAgreed",
        )
    possible = possible_cells(newest.history, project)
    if not possible:
        raise no_cell(project, "--project")
    return possible[0]
