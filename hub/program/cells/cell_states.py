"""The cells of the settings, and which of them respond now."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_for_result
from engine.errors import Conflict, HeadgateError, Unavailable
from engine.store.database import Database
from engine.store.server_check import PLACE as URL_PLACE
from engine.store.server_check import POOLER_PLACE, REPLICA_PLACE
from hub.api.cells import PLACE, Cell, unavailable
from hub.auth.sessions import Sessions
from hub.program.cells.moving_readers import MovingReaders
from hub.program.loops import Loops
from hub.settings.cells import CellDatabase
from hub.settings.settings import Settings

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")

#: Seconds to read what a cell has stored.
READ_TIMEOUT = 2.0
#: The settings that errors of a server with one database name, and those of a cell.
_SETTINGS: Final = {
    URL_PLACE: "url",
    "[database]": "url",
    POOLER_PLACE: "pooler_url",
    REPLICA_PLACE: "read_url",
}


@dataclass(slots=True)
class CellState:
    """One cell. settings: of its services. services: None: it is not connected. tried: set after
    the first attempt to connect. error: of the last attempt, or of the last probe. logged: code of
    the last error in the log; "": it was available."""

    database: CellDatabase
    settings: Settings
    services: Cell | None = None
    loops: Loops | None = None
    sessions: Sessions | None = None
    readers: MovingReaders | None = None
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    error: HeadgateError | None = None
    logged: str | None = None

    @property
    def name(self) -> str:
        return self.database.name

    @property
    def available(self) -> Cell | None:
        """The services, if the database responds."""
        return self.services if self.error is None else None

    def record(self, error: Exception | None) -> None:
        """Record the result of an attempt to connect or of a probe, and log changes."""
        self.error = None if error is None else _in_cell(error, self.name)
        code = "" if self.error is None else self.error.code
        if code == self.logged:
            return
        self.logged = code
        if self.error is None:
            log.info("cell.available", cell=self.name)
        else:
            is_expected = isinstance(error, HeadgateError)
            log.warning(
                "cell.unavailable",
                cell=self.name,
                reason=str(self.error),
                exc_info=None if is_expected else error,
            )

    def disconnect(self) -> None:
        """Forget the services, which have ended."""
        self.services = self.loops = self.sessions = self.readers = None


def _in_cell(error: Exception, name: str) -> HeadgateError:
    """Why a cell is away. Errors of settings have their place in [cells]."""
    if not isinstance(error, HeadgateError):
        return Unavailable("this is a fault of the server", place=f'{PLACE} "{name}"')
    if error.finding.place not in _SETTINGS or type(error) not in (Conflict, Unavailable):
        return error
    place = f'{PLACE} "{name}" {_SETTINGS[error.finding.place]}'
    return type(error)(
        error.finding.reason, place=place, remedy=error.finding.remedy, code=error.code
    )


async def read_in_time(read: Callable[[], Awaitable[T]]) -> T | None:
    """What `read` reads from a cell; None if the cell does not respond in time."""
    try:
        return await wait_for_result(read(), READ_TIMEOUT)
    except (Unavailable, TimeoutError):
        return None


class CellStates:
    """states: of all cells of the settings, by name."""

    def __init__(self, settings: Settings) -> None:
        self.states: Mapping[str, CellState] = {
            one.name: CellState(one, settings.of_cell(one)) for one in settings.cells.databases
        }

    def reachable(self) -> Sequence[Cell]:
        return [one.available for one in self.states.values() if one.available is not None]

    def away(self) -> Sequence[str]:
        """The names of the cells that do not respond."""
        return [one.name for one in self.states.values() if one.available is None]

    def serve(self, name: str) -> Cell:
        """Raises Unavailable if the cell does not respond, or is in no setting."""
        state = self.states.get(name)
        if state is None or state.available is None:
            raise unavailable([name])
        return state.available

    def readers(self, name: str) -> MovingReaders | None:
        """The readers of the projects that move from a cell; None: it is not connected."""
        return self.states[name].readers

    def other_databases(self, name: str) -> Sequence[Database]:
        """The databases of the other cells that respond."""
        return [one.context.database for one in self.reachable() if one.name != name]

    def sessions(self) -> Mapping[str, Sessions]:
        """The sessions in each cell that responds."""
        states = [one for one in self.states.values() if one.available is not None]
        return {one.name: one.sessions for one in states if one.sessions is not None}
