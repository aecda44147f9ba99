"""The cell that serves a request: its database, with the services and access checks of it.

A server with one database has one cell. With [cells], hub/program/cells connects several.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Generic, Protocol, TypeVar

from aiohttp import web

from engine.bounded_wait import wait_for_result
from engine.errors import Conflict, HeadgateError, NotFound, Unavailable
from hub.api.app_context import CONTEXT, AppContext
from hub.api.cell_search import CellSearch, find_in_cells
from hub.api.costly_requests import COSTLY, CostlyRequests
from hub.api.routes import Handler
from hub.api.stack_changes import CHANGES, make_queue
from hub.auth.gatekeeper import UNAUTHORIZED, Gatekeeper
from hub.auth.sessions import Sessions
from hub.auth.throttle import TurnQueue

R = TypeVar("R", bound=web.StreamResponse)
S = TypeVar("S")
T = TypeVar("T")

PLACE = "[cells] databases"
#: Seconds that a list of all projects waits for a cell.
LIST_TIMEOUT = 5.0
#: A read is repeated if its project moves meanwhile. A move changes the place twice; the others are
#: for a move that is put back, and begins again.
READ_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Admission:
    gatekeeper: Gatekeeper
    sessions: Sessions


#: The access checks of the cell of the request.
ADMISSION: web.RequestKey[Admission] = web.RequestKey("admission", Admission)


@dataclass(frozen=True, slots=True)
class Cell:
    """name: "" if the server has one database."""

    name: str
    context: AppContext
    admission: Admission
    costly: CostlyRequests
    changes: TurnQueue = field(default_factory=make_queue)

    def enter(self, request: web.Request) -> None:
        """Let this cell serve the request."""
        request[CONTEXT], request[ADMISSION] = self.context, self.admission
        request[COSTLY], request[CHANGES] = self.costly, self.changes


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """Where a project is read. version: differs as soon as it can be elsewhere."""

    cell: Cell
    version: object


@dataclass(frozen=True, slots=True)
class ReadPlaces:
    """Where all projects are read, each in one of the places. version: see `ReadPlace`; of each
    cell. away: the names of the cells that have more projects, which cannot be read now."""

    cells: Sequence[Cell]
    version: Mapping[str, object]
    away: Sequence[str]


class Cells(Protocol):
    async def find(self, project: str) -> Cell:
        """The cell that changes a project. Raises NotFound if it can be in none, and Unavailable if
        its cell is away, or if no cell has it because it moves."""
        ...

    async def locate(self, project: str) -> ReadPlace:
        """Where to read a project, also while it moves. Raises as `find`."""
        ...

    async def is_current(self, project: str, place: ReadPlace) -> bool:
        """Whether what was read in a place since `locate` is complete: the project was there all
        the time. Raises as `find`."""
        ...

    async def locate_all(self) -> ReadPlaces:
        """Where to read all projects. Cells that are away are named."""
        ...

    async def are_current(self, places: ReadPlaces, away: Sequence[str]) -> bool:
        """Whether what was read since `locate_all` has each project once. away: cells of which
        nothing was read."""
        ...

    async def add_project(self, cell: Cell, project: str) -> None:
        """Record that a project is in the cell, before the first change of it. Raises
        Unavailable."""
        ...

    async def share_tokens(self) -> None:
        """Bring the tokens that are valid in every project, and their revocations, to all cells
        that respond. The others get them before they serve requests again."""
        ...

    def reachable(self) -> Sequence[Cell]: ...

    def away(self) -> Sequence[str]:
        """The names of the cells that do not respond."""
        ...

    def moving(self) -> Sequence[str]:
        """The projects that are being moved to another cell."""
        ...

    def is_leaving(self, cell: str, project: str) -> bool:
        """Whether the project moves, or has moved, from the cell of this name to another one. All
        processes notice a move before the project leaves its cell."""
        ...


class OneDatabase:
    """The cells of a server with one database."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    async def find(self, project: str) -> Cell:
        return self._cell

    async def locate(self, project: str) -> ReadPlace:
        return ReadPlace(self._cell, None)

    async def is_current(self, project: str, place: ReadPlace) -> bool:
        return True

    async def locate_all(self) -> ReadPlaces:
        return ReadPlaces(self.reachable(), {}, ())

    async def are_current(self, places: ReadPlaces, away: Sequence[str]) -> bool:
        return True

    async def add_project(self, cell: Cell, project: str) -> None:
        """Every project is in it."""

    async def share_tokens(self) -> None:
        """They are in it."""

    def reachable(self) -> Sequence[Cell]:
        return (self._cell,)

    def away(self) -> Sequence[str]:
        return ()

    def moving(self) -> Sequence[str]:
        return ()

    def is_leaving(self, cell: str, project: str) -> bool:
        return False


CELLS: web.AppKey[Cells] = web.AppKey("cells")


def has_cells(request: web.Request) -> bool:
    """Whether the server has more than its only database."""
    return not isinstance(request.app[CELLS], OneDatabase)


def unavailable(names: Sequence[str]) -> Unavailable:
    """names: of the cells that are away."""
    what = f'the cell "{names[0]}" is' if len(names) == 1 else f"the cells {', '.join(names)} are"
    return Unavailable(
        f"{what} not available",
        place=PLACE,
        remedy="Send the request again after the time in Retry-After; the log of the server has the"
        " reason.",
        code="CellUnavailable",
    )


def no_cell(project: str, place: str) -> NotFound:
    return NotFound(
        f'the project "{project}" is in no cell of this server',
        place=place,
        remedy="Ask the operator to add the project to `projects` of a cell in"
        " [[cells.databases]].",
        code="ProjectInNoCell",
    )


def refuse_moving(project: str) -> Unavailable:
    """project: "": it is not known whether the request is of one that moves."""
    what = f'the project "{project}"' if project else "a project"
    return Unavailable(
        f"{what} is being moved to another cell",
        place=PLACE,
        remedy="Send the request again after the time in Retry-After.",
        code="ProjectMoving",
    )


def refuse_two_cells(project: str, cells: Sequence[str]) -> Conflict:
    return Conflict(
        f'the project "{project}" is in the cells {" and ".join(cells)}, because a database has'
        " lost a move; it is not changed",
        place=PLACE,
        remedy="Ask the operator to delete the older rows with `headgate admin move-project"
        " --discard`",
        code="ProjectInTwoCells",
    )


@contextmanager
def naming_cell(name: str) -> Iterator[None]:
    """Name the cell in errors of its database. name: "" if the server has one database."""
    try:
        yield
    except Unavailable as error:
        if not name or type(error) is not Unavailable or error.finding.place != "[database]":
            raise
        raise unavailable([name]) from error


def first_reachable(cells: Cells) -> Cell:
    """Any cell, for a request that concerns no project. Raises Unavailable."""
    reachable = cells.reachable()
    if not reachable:
        raise unavailable(cells.away())
    return reachable[0]


def in_first_cell(
    handler: Callable[[web.Request], Awaitable[R]],
) -> Callable[[web.Request], Awaitable[R]]:
    """Decorate a handler of a URL without a project that any cell can serve. Raises Unavailable if
    all are away."""

    @wraps(handler)
    async def handle(request: web.Request) -> R:
        first_reachable(request.app[CELLS]).enter(request)
        return await handler(request)

    return handle


def in_any_cell(
    read: Callable[[web.Request], S],
    authenticate: Callable[[S, AppContext], Awaitable[T]],
    handler: Callable[[web.Request, T], Awaitable[web.StreamResponse]],
) -> Handler:
    """The handler of a URL without a project, which has a token of one of the cells: the cell that
    accepts the token serves the request.

    read: returns the token; raises HeadgateError if it is missing or malformed, before a cell is
    asked. authenticate: raises HeadgateError with the code Unauthorized if a cell does not accept
    the token. All cells are asked at once. handler: gets its result. Raises Unavailable if no cell
    accepts the token, and a cell is away or a project moves.
    """

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        cells, token = request.app[CELLS], read(request)
        is_moving = bool(cells.moving())
        search, refusals = await _find_accepting(token, authenticate, cells.reachable())
        if search.found is None:
            if refusals and not (search.away or cells.away()):
                if not is_moving:
                    await cells.locate_all()  # reads the moves again, if that was too long ago
                raise refuse_moving("") if is_moving or cells.moving() else refusals[0]
            raise unavailable([*cells.away(), *search.away])
        cell, accepted = search.found
        cell.enter(request)
        with naming_cell(cell.name):
            return await handler(request, accepted)

    return handle


def read_in_any_cell(
    read: Callable[[web.Request], S],
    authenticate: Callable[[S, AppContext], Awaitable[T]],
    handler: Callable[[web.Request, T], Awaitable[web.StreamResponse]],
) -> Handler:
    """As `in_any_cell`, for a request that changes nothing: it is also served while its project
    moves to another cell."""

    async def serve(
        request: web.Request, token: S, places: ReadPlaces, silent: list[str]
    ) -> web.StreamResponse:
        search, refusals = await _find_accepting(token, authenticate, places.cells)
        silent += search.away
        if search.found is None:
            if away := {*places.away, *search.away}:
                raise unavailable(sorted(away))
            raise refusals[0]
        cell, accepted = search.found
        cell.enter(request)
        with naming_cell(cell.name):
            return await handler(request, accepted)

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        cells, token = request.app[CELLS], read(request)
        for _ in range(READ_ATTEMPTS):
            places, silent = await cells.locate_all(), list[str]()
            try:
                response = await serve(request, token, places, silent)
            except Exception:
                # The rows of a project that has moved are deleted.
                if await cells.are_current(places, silent):
                    raise
                continue
            if await cells.are_current(places, silent):
                return response
        raise refuse_moving("")

    return handle


async def _find_accepting(
    token: S, authenticate: Callable[[S, AppContext], Awaitable[T]], places: Sequence[Cell]
) -> tuple[CellSearch[tuple[Cell, T]], Sequence[HeadgateError]]:
    """The place that accepts a token, and the refusals of the others. Raises other
    errors of `authenticate`."""
    refusals: list[HeadgateError] = []

    async def ask(name: str) -> tuple[Cell, T] | None:
        for place in places:
            if place.name != name:
                continue
            try:
                return place, await authenticate(token, place.context)
            except HeadgateError as error:
                if error.code != UNAUTHORIZED:
                    raise
                refusals.append(error)
        return None

    asked = {one.name: partial(ask, one.name) for one in places}
    return await find_in_cells(asked), refusals


@dataclass(frozen=True, slots=True)
class CellAnswers(Generic[T]):
    """What the places returned, and the names of the cells of which something is missing."""

    results: Sequence[T]
    away: Sequence[str]


async def read_all(
    places: ReadPlaces, read: Callable[[AppContext], Awaitable[T]]
) -> CellAnswers[T]:
    """Read in all places at once. Cells that do not answer in time are away. If there is only one
    database, raises the errors of `read`."""

    async def of_cell(cell: Cell) -> T | None:
        if not cell.name:
            return await read(cell.context)
        try:
            return await wait_for_result(read(cell.context), LIST_TIMEOUT)
        except (Unavailable, TimeoutError):
            return None

    answers = await asyncio.gather(*map(of_cell, places.cells))
    silent = {cell.name for cell, one in zip(places.cells, answers, strict=True) if one is None}
    return CellAnswers([one for one in answers if one is not None], sorted({*places.away, *silent}))
