"""Serves several cells in one process: one set of services for each, which is connected whenever
its database is available.

A cell that is away makes only its own projects unavailable. The process ends at start if the
settings contradict what the cells have stored.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from uuid import uuid4

import structlog
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from structlog.typing import FilteringBoundLogger

from channels.webhook.client import WebhookChannel
from engine.bounded_wait import wait_at_most, wait_for_result
from engine.cells import CellPlacement, merge_histories, possible_cells
from engine.errors import Conflict, HeadgateError, Unavailable
from engine.loop_guard import Supervisor
from engine.store.access.token_copies import InCell, share_tokens
from engine.store.access.tokens import MODE
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.maintenance import project_moves as moves
from engine.store.maintenance.project_moves import MOVING, MoveRecord
from engine.store.projects import cells as store
from engine.store.projects.cells import CellRecord
from engine.store.schema.upgrade import migrate
from engine.store.server_check import PLACE as URL_PLACE
from engine.store.server_check import REPLICA_PLACE, check_replicas, check_servers
from engine.store.server_connector import ServerConnector
from engine.tracing import Tracer
from engine.words import MoveState
from hub.api.app_context import ServerContext
from hub.api.application import make_application
from hub.api.cell_search import find_in_cells
from hub.api.cells import (
    PLACE,
    Cell,
    ReadPlace,
    ReadPlaces,
    naming_cell,
    no_cell,
    refuse_moving,
    unavailable,
)
from hub.auth.oidc_client import OidcClient
from hub.auth.passwords import AT_ONCE, PasswordHasher
from hub.auth.sessions import Sessions
from hub.http.listener import monitoring_application, serve_api, serve_monitoring
from hub.http.template_urls import TemplateFetcher
from hub.metrics import Metrics
from hub.metrics_exchange import MetricsExchange, merge_labelled, serve_own_metrics
from hub.program.authenticator import make_oidc_client, open_authenticator
from hub.program.cell_probe import PROBE_INTERVAL, CellProbe
from hub.program.cell_services import make_cell
from hub.program.cell_sessions import CellSessions
from hub.program.database_opening import open_registered, open_replicas
from hub.program.loops import Loops, make_process
from hub.program.moving_readers import MovingReaders
from hub.program.process_slot import ProcessSlot
from hub.program.slack import make_slack_answers
from hub.program.tracing import tracing
from hub.program.wiring import (
    make_keyring,
    make_request_limits,
    make_sessions,
    webhook_settings,
)
from hub.settings.cells import CellDatabase
from hub.settings.settings import Settings

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")

ROLES = frozenset({"api"})
#: Seconds between two attempts to reach a cell, and to agree about a new revision.
RETRY_INTERVAL = 3.0
#: Seconds in which every process notices that a revision was announced.
NOTICE_TIME = 2 * RETRY_INTERVAL
#: Seconds after which the moves of a cell are read again before a response. A project leaves its
#: cell later than this after its move was announced (hub/cli/commands/project_move.py).
MAX_AGE = 8.0
#: Seconds to read what a cell has stored.
READ_TIMEOUT = 2.0
#: Seconds in which a cell that returns waits for the tokens of the other cells. One of them that
#: does not respond is known to be away earlier than this (hub/program/cell_probe.py).
TOKENS_TIMEOUT = 8.0
#: Seconds between two attempts to read them.
TOKENS_INTERVAL = 0.1
#: Seconds that the start waits for cells.
START_TIMEOUT = 15.0
#: Errors of cells that end the process at its start: the settings are wrong.
WRONG_SETTINGS = frozenset({
    "ApiWithoutCells", "CellMissing", "DifferentClusters", "NotItsReplica", "OtherCell",
    "OtherPlacement", "ProjectsOfOtherCells", "ReplicaNotPrimary",
})  # fmt: skip


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


def _versions(states: Mapping[str, MoveRecord]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, one.version) for name, one in states.items()))


class ServedCells:
    """The cells of this process, by the settings."""

    def __init__(
        self,
        settings: Settings,
        slot: ProcessSlot,
        tracer: Tracer,
        stop: asyncio.Event,
        oidc: OidcClient | None = None,
    ) -> None:
        self._settings = settings
        self._oidc = oidc
        self._slot = slot
        self._tracer = tracer
        self._stop = stop
        self.limits = make_request_limits(settings, slot)
        self._keyring = make_keyring(settings)
        self._process = make_process(ROLES, self._keyring)
        self._hasher = PasswordHasher(at_once=slot.share(AT_ONCE))
        self._fetcher = TemplateFetcher(settings.template_urls)
        self.states = {
            one.name: CellState(one, settings.of_cell(one)) for one in settings.cells.databases
        }
        self._placement = settings.cells.placement
        self._history: Sequence[CellPlacement] = ()
        self._agreed = False
        #: A later revision that another process has announced; 0: there is none.
        self._later = 0
        self._announced_at: float | None = None
        #: The cells of projects that are recorded there.
        self._owners: dict[str, str] = {}
        #: Projects that move or have moved: their states, by cell and project.
        self._moves: dict[str, dict[str, MoveRecord]] = {}
        #: When they were read, by cell.
        self._noted_at: dict[str, float] = {}
        #: How often tokens have changed, by this process or another one, or a cell has become
        #: available, whose tokens others can lack.
        self._token_changes = 0

    # What the API asks for; see hub/api/cells.py.

    async def find(self, project: str) -> Cell:
        if states := self._states_of(project):
            return await self._find_moving(project, states)
        if (owner := self._owners.get(project)) is not None:
            return self._serve(owner)
        if self._later:
            await self._read_history()
        if not self._history:
            raise self._not_agreed()
        possible = possible_cells(self._history, project)
        if not possible:
            raise no_cell(project, "path")
        if len(possible) > 1:
            search = await find_in_cells(
                {one: partial(self._has, one, project) for one in possible}
            )
            if search.found is not None:
                self._owners[project] = search.found.name
                return search.found
            if search.away:
                raise unavailable(search.away)
        return self._serve(possible[0])

    async def locate(self, project: str) -> ReadPlace:
        if not (noted := self._states_of(project)):
            return ReadPlace(await self.find(project), ())
        states = await self._current_states(project, noted)
        version = _versions(states)
        if (source := self._moving_from(states)) is None:
            return ReadPlace(self._choose(project, states), version)
        return ReadPlace(await self._reader_of(*source), version)

    async def is_current(self, project: str, place: ReadPlace) -> bool:
        await self._refresh(place.cell.name)
        states = await self._current_states(project, self._states_of(project))
        return place.version == _versions(states)

    async def locate_all(self) -> ReadPlaces:
        reachable, moves = self.reachable(), dict[str, Mapping[str, MoveRecord]]()
        for cell, noted in zip(reachable, await self._note_all(reachable), strict=True):
            if noted is not None:
                moves[cell.name] = noted
        left: list[tuple[str, MoveRecord]] = []
        for name, states in moves.items():
            for project, one in states.items():
                if one.state is MoveState.TAKEN and one.filled:
                    known = {other: of[project] for other, of in moves.items() if project in of}
                    if one.moving_to in moves and self._moving_from(known) == (name, one):
                        left.append((name, one))
        readers = await asyncio.gather(*(self._reader_in_time(*one) for one in left))
        unread = {name for (name, _), one in zip(left, readers, strict=True) if one is None}
        return ReadPlaces(
            [*(one for one in reachable if one.name in moves), *filter(None, readers)],
            {name: _versions(states) for name, states in moves.items()},
            [name for name in self.states if name not in moves or name in unread],
        )

    async def are_current(self, places: ReadPlaces, away: Sequence[str]) -> bool:
        cells = [one for one in self.reachable() if one.name in {*places.version} - {*away}]
        noted = await self._note_all(cells)
        return all(
            states is not None and _versions(states) == places.version[cell.name]
            for cell, states in zip(cells, noted, strict=True)
        )

    async def _note_all(self, cells: Sequence[Cell]) -> Sequence[Mapping[str, MoveRecord] | None]:
        """The projects that move or have moved, of each of the cells: the current ones if any
        project moves. None: the cell does not respond in time."""
        is_moving = bool(self.moving())

        async def note(cell: Cell) -> Mapping[str, MoveRecord] | None:
            try:
                await wait_for_result(self._refresh(cell.name, always=is_moving), READ_TIMEOUT)
            except (Unavailable, TimeoutError):
                return None
            return self._moves[cell.name]

        return await asyncio.gather(*map(note, cells))

    def _moving_from(self, states: Mapping[str, MoveRecord]) -> tuple[str, MoveRecord] | None:
        """The cell that a project has left, where it is read until it is in the other one. None:
        there is none, or the other one is away, and can have changed the project by now."""
        for name, one in states.items():
            target = states.get(one.moving_to)
            arrived = target is not None and target.state is None
            is_away = one.moving_to not in self.states or one.moving_to in self.away()
            if one.state is MoveState.TAKEN and one.schema and not (arrived or is_away):
                return name, one
        return None

    async def _reader_of(self, name: str, record: MoveRecord) -> Cell:
        """Where to read a project that has left a cell. Raises Unavailable."""
        cell, readers = self._serve(name), self.states[name].readers
        if not record.filled:  # the rows are still in their tables
            return cell
        if readers is None:
            raise unavailable([name])
        with naming_cell(name):
            return await readers.cell_of(record.schema)

    async def _reader_in_time(self, name: str, record: MoveRecord) -> Cell | None:
        """As `_reader_of`; None: the cell accepts no connection in time."""
        try:
            return await wait_for_result(self._reader_of(name, record), READ_TIMEOUT)
        except (Unavailable, TimeoutError):
            return None

    async def _refresh(self, name: str, *, always: bool = False) -> None:
        """Read the moves of a cell if they were read too long ago: a project can have left it
        since. Raises Unavailable."""
        now = asyncio.get_running_loop().time()
        if always or now - self._noted_at.get(name, -MAX_AGE) >= MAX_AGE:
            async with self._serve(name).context.database.connection() as conn:
                await self._note_moves(name, conn)

    async def _has(self, name: str, project: str) -> Cell | None:
        """The cell, if the project is recorded in it. Raises Unavailable."""
        cell = self._serve(name)
        async with cell.context.database.connection() as conn:
            return cell if await store.has_project(conn, project) else None

    def _states_of(self, project: str) -> dict[str, MoveRecord]:
        """By cell, as they were read last; empty: the project has never been moved."""
        read = self._moves.items()
        return {name: states[project] for name, states in read if project in states}

    async def _find_moving(self, project: str, states: Mapping[str, MoveRecord]) -> Cell:
        """Raises Unavailable if no cell can serve it now."""
        return self._choose(project, await self._current_states(project, states))

    def _choose(self, project: str, states: Mapping[str, MoveRecord]) -> Cell:
        """Raises as `_find_moving`."""
        for state in (None, MoveState.ANNOUNCED):
            for name, one in states.items():
                if one.state is state:
                    return self._serve(name)
        targets = {one.moving_to for one in states.values() if one.state is MoveState.MOVED}
        if away := [name for name in targets - {*states} if name in self.away()]:
            raise unavailable(away)
        raise refuse_moving(project)

    async def _current_states(
        self, project: str, states: Mapping[str, MoveRecord]
    ) -> Mapping[str, MoveRecord]:
        """The states, read again if the project moves, or has arrived where it was not read."""
        settled = any(one.state is None for one in states.values())
        if any(one.state in MOVING for one in states.values()) or (states and not settled):
            return await self._read_states(project, states)
        return states

    async def _read_states(
        self, project: str, states: Mapping[str, MoveRecord]
    ) -> dict[str, MoveRecord]:
        """The current states, in the cells of the move that are available."""
        names = [*states, *(one.moving_to for one in states.values())]
        found: dict[str, MoveRecord] = {}
        for name in names:
            if name in found or name not in self.states:
                continue
            if (cell := self.states[name].available) is None:
                continue
            async with cell.context.database.connection() as conn:
                state = await moves.read_state(conn, project)
            if state is not None:
                found[name] = state
                if state.moving_to not in names:
                    names.append(state.moving_to)
        return found

    def moving(self) -> Sequence[str]:
        return [
            project
            for states in self._moves.values()
            for project, one in states.items()
            if one.state in MOVING
        ]

    def is_leaving(self, cell: str, project: str) -> bool:
        state = self._moves.get(cell, {}).get(project)
        return state is not None and state.state is not None

    async def _note_moves(self, name: str, conn: Connection) -> None:
        """Read the projects that move from a cell, have moved from it, or to it."""
        now = asyncio.get_running_loop().time()
        self._moves[name] = await moves.list_moves(conn)
        self._noted_at[name] = now
        if (readers := self.states[name].readers) is not None:
            taken = (one for one in self._moves[name].values() if one.state is MoveState.TAKEN)
            readers.keep({one.schema for one in taken})
        for project in self._moves[name]:
            self._owners.pop(project, None)

    async def share_tokens(self) -> None:
        """A cell that does not respond is away from now on, so that it serves no request with the
        former tokens."""
        self._count_change()
        cells = self.reachable()
        for name in await self._share_tokens(*cells):
            self.states[name].record(unavailable([name]))
        for cell in cells:
            cell.admission.gatekeeper.authenticator.forget()

    def _count_change(self) -> None:
        """A comparison of tokens that is under way may lack this change."""
        self._token_changes += 1

    async def _share_tokens(self, *cells: Cell) -> Sequence[str]:
        """Bring the tokens that are valid in every project to all these cells; the names of those
        that did not respond."""
        if self._settings.auth.mode != MODE:
            return ()
        return await share_tokens({one.name: _work_in(one) for one in cells})

    async def _complete_tokens(self, cell: Cell) -> None:
        """Bring a cell that was away the tokens of the others, and what happened to them, also what
        changes meanwhile. Make it available without waiting for anything after this. An available
        cell that does not respond is asked again, for a limited time. Raises Unavailable."""
        now = asyncio.get_running_loop().time
        end = now() + TOKENS_TIMEOUT
        while True:
            changes = self._token_changes
            failed = await self._share_tokens(*self.reachable(), cell)
            if cell.name in failed:
                raise unavailable([cell.name])
            is_complete = changes == self._token_changes and not failed
            if is_complete or now() >= end or self._stop.is_set():
                break
            if failed:
                await wait_at_most(self._stop, TOKENS_INTERVAL)
        if not (is_complete or self._stop.is_set()):
            log.warning("cell.tokens_incomplete", cell=cell.name, not_read=[*failed])
        self._count_change()
        # Its notifications may have been lost.
        cell.admission.gatekeeper.authenticator.forget()

    async def add_project(self, cell: Cell, project: str) -> None:
        if states := self._states_of(project):
            current = await self._current_states(project, states)
            if (state := current.get(cell.name)) is None or state.state is not None:
                raise refuse_moving(project)
            return
        if project in self._owners:
            return
        async with cell.context.database.connection() as conn:
            if not await store.has_project(conn, project):
                if self._later:
                    raise store.refuse_outdated(self._placement.revision, self._later)
                if not self._agreed:
                    raise self._not_agreed()
                await store.add_project(conn, project, self._placement.revision)
        self._owners[project] = cell.name

    def reachable(self) -> Sequence[Cell]:
        return [one.available for one in self.states.values() if one.available is not None]

    def away(self) -> Sequence[str]:
        return [one.name for one in self.states.values() if one.available is None]

    def _serve(self, name: str) -> Cell:
        state = self.states.get(name)
        if state is None or state.available is None:
            raise unavailable([name])
        return state.available

    def _not_agreed(self) -> Unavailable:
        away = self.away()
        return Unavailable(
            f"the cells have not agreed to revision {self._placement.revision} of [cells] yet, and"
            " until then no project is added"
            + (f"; not available: {', '.join(away)}" if away else ""),
            place="[cells] revision",
            remedy="Send the request again after the time in Retry-After; the log of the server has"
            " the reason.",
            code="CellsNotAgreed",
        )

    # Connections.

    async def keep_connected(self, state: CellState) -> None:
        """Connect a cell until the process stops, again whenever its services end."""
        while not self._stop.is_set():
            try:
                async with AsyncExitStack() as stack:
                    await self._serve_until_stopped(stack, state)
            except Exception as error:
                state.record(error)
            state.tried.set()
            await wait_at_most(self._stop, RETRY_INTERVAL)

    async def _serve_until_stopped(self, stack: AsyncExitStack, state: CellState) -> None:
        """Raises HeadgateError if the cell cannot be connected."""
        settings, process = state.settings, self._process
        url = settings.database.url.get_secret_value()
        read_url = settings.database.read_url.get_secret_value()
        await check_servers(url, time.time)
        await check_replicas(url, read_url)
        await migrate(url, version=process.program.version)
        size = settings.database.pool
        identify = partial(
            store.identify_cell, name=state.name, new_id=uuid4(), placement=self._placement
        )
        database, token_keys = await open_registered(
            url, size, self._keyring, process, identify=identify
        )
        stack.push_async_callback(database.close)
        replica = await open_replicas(stack, read_url, size, self._keyring)
        authenticator = await stack.enter_async_context(
            open_authenticator(
                settings.auth,
                database,
                self._hasher,
                self._keyring,
                lambda: self._others(state.name),
                self._count_change,
            )
        )
        loops = Loops(
            settings, database, token_keys, self._keyring, authenticator, tracer=self._tracer,
            slot=self._slot, replica=replica,
        )  # fmt: skip
        await loops.enter(stack)
        sessions = CellSessions(state.name, settings, database, self._sessions, self.away)
        cell = make_cell(
            state.name,
            settings,
            loops,
            self._hasher,
            self.limits,
            sessions,
            self._fetcher,
            self._oidc,
        )
        async with database.connection() as conn:
            await self._note_moves(state.name, conn)
        stopped, returned = asyncio.Event(), partial(self._complete_tokens, cell)
        async with asyncio.TaskGroup() as group:
            tasks = await loops.start(group, stack, process, stopped)
            error: Exception | None = None
            try:
                await returned()
            except Exception as failed:  # tried again when the cell is probed
                error = failed
            state.sessions = make_sessions(settings, database)
            state.loops = loops
            state.readers = MovingReaders(cell, loops, self._keyring)
            stack.push_async_callback(state.readers.close)
            state.record(error)
            state.services = cell
            state.tried.set()
            probing = asyncio.create_task(_probe(state, database.connector, returned))
            try:
                await _first_of(self._stop, stopped)
            finally:
                probing.cancel()
                state.services = state.loops = state.sessions = state.readers = None
                stopped.set()
                loops.wake()
                await loops.drain(tasks)

    def _others(self, name: str) -> Sequence[Database]:
        """The databases of the other cells that respond."""
        return [one.context.database for one in self.reachable() if one.name != name]

    def _sessions(self) -> dict[str, Sessions]:
        states = [one for one in self.states.values() if one.available is not None]
        return {one.name: one.sessions for one in states if one.sessions is not None}

    # Revisions of the placement.

    async def keep_agreed(self) -> None:
        """Bring the placement of the settings to all cells, as soon as they are connected, and
        notice later revisions."""
        await self._repeat(self.agree, "cells.not_agreed")

    async def keep_tokens_shared(self) -> None:
        """Bring the tokens that are valid in every project to all cells: also those that another
        process or command has created or revoked."""

        async def share() -> None:
            await self._share_tokens(*self.reachable())

        await self._repeat(share, "cells.tokens_not_shared")

    async def _repeat(self, step: Callable[[], Awaitable[None]], failed: str) -> None:
        """Repeat a step until the process stops. failed: the event in the log."""
        logged = ""
        while not self._stop.is_set():
            try:
                await step()
                logged = ""
            except Exception as error:
                is_expected = isinstance(error, HeadgateError)
                if str(error) != logged:
                    logged = str(error)
                    log.warning(failed, reason=logged, exc_info=None if is_expected else error)
            await wait_at_most(self._stop, RETRY_INTERVAL)

    async def agree(self) -> None:
        """Take the next step to the placement of the settings, if there is one. Raises Unavailable,
        and Conflict if the settings contradict what the cells have stored."""
        records, own = await self._read_history(), self._placement
        if not records:
            return
        announced = max(one.announced for one in records.values())
        if announced > own.revision:
            self._later, self._agreed = announced, False
            raise Conflict(
                f"this process has an earlier revision of [cells] than the cells: {own.revision}",
                place="[cells] revision",
                remedy="Restart it with the current settings; until then, it adds no projects",
                code="OutdatedPlacement",
            )
        agreed = max(one.agreed for one in records.values())
        history = merge_histories([*(one.history for one in records.values()), [own]])
        if agreed < own.revision and len(records) < len(self.states):
            return
        behind = [name for name, one in records.items() if one.agreed < own.revision]
        for name in behind:
            async with self._serve(name).context.database.connection() as conn:
                await store.announce(conn, own.revision)
        if 0 < agreed < own.revision and not self._was_noticed():
            return
        for name in behind:
            async with self._serve(name).context.database.connection() as conn:
                await store.agree(conn, history)
        records = await self._read_history()
        self._agreed = any(one.agreed == own.revision for one in records.values())

    def _was_noticed(self) -> bool:
        """Whether processes with an earlier revision know by now that they are outdated, and read
        from the cells where a project can be."""
        now = asyncio.get_running_loop().time()
        if self._announced_at is None:
            self._announced_at = now
        return now - self._announced_at >= NOTICE_TIME

    async def _read_history(self) -> dict[str, CellRecord]:
        """The records of the cells that are connected and answer. The newest history applies."""

        async def read(cell: Cell) -> CellRecord | None:
            async with cell.context.database.connection() as conn:
                await self._note_moves(cell.name, conn)
                return await store.read_cell(conn)

        async def read_in_time(cell: Cell) -> CellRecord | None:
            try:
                return await wait_for_result(read(cell), READ_TIMEOUT)
            except (Unavailable, TimeoutError):
                return None

        cells = self.reachable()
        found = await asyncio.gather(*map(read_in_time, cells))
        records = {
            cell.name: one for cell, one in zip(cells, found, strict=True) if one is not None
        }
        newest = max(records.values(), key=lambda one: one.agreed, default=None)
        if newest is not None and newest.agreed:
            self._history = newest.history
        return records

    async def ready(self) -> list[str]:
        """The reasons why this process serves no cell; empty if it serves one."""
        reasons: list[str] = []
        for state in self.states.values():
            if state.available is not None:
                return []
            reasons.append(f"{state.name}: {state.error or 'not connected yet'}")
        return reasons


class CellsMetrics(Metrics):
    """The metrics of a process that serves cells. Those of the services of a cell have the label
    `cell`."""

    def __init__(self, cells: ServedCells, exchange: MetricsExchange) -> None:
        super().__init__(None, None, exchange)
        self._cells = cells

    def render_own(self) -> bytes:
        up = CollectorRegistry()
        gauge = Gauge("headgate_cell_up", "1 if the cell is available", ("cell",), registry=up)
        texts: dict[str, bytes] = {}
        for state in self._cells.states.values():
            gauge.labels(state.name).set(state.available is not None)
            if state.loops is not None:
                texts[state.name] = state.loops.metrics.render_own()
        own = super().render_own() + generate_latest(up)
        return merge_labelled(texts, "cell", own)


async def _probe(
    state: CellState, connector: ServerConnector, returned: Callable[[], Awaitable[None]]
) -> None:
    """Keep the state of a connected cell, until the task is cancelled. returned: called when the
    cell responds again, before it serves requests."""
    probe = CellProbe(connector)
    try:
        while True:
            await asyncio.sleep(PROBE_INTERVAL)
            error: Exception | None = await probe.check()
            if error is None and state.error is not None:
                try:
                    await returned()
                except Exception as failed:
                    error = failed
            state.record(error)
    finally:
        probe.close()


def _work_in(cell: Cell) -> InCell:
    async def work_in_cell(work: Callable[[Connection], Awaitable[T]]) -> T | None:
        async def do_work() -> T:
            async with cell.context.database.connection() as conn:
                return await work(conn)

        try:
            return await wait_for_result(do_work(), READ_TIMEOUT)
        except (Unavailable, TimeoutError):
            return None

    return work_in_cell


def _in_cell(error: Exception, name: str) -> HeadgateError:
    """Why a cell is away. Errors of settings have their place in [cells]."""
    if not isinstance(error, HeadgateError):
        return Unavailable("this is a fault of the server", place=f'{PLACE} "{name}"')
    settings = {URL_PLACE: "url", "[database]": "url", REPLICA_PLACE: "read_url"}
    if error.finding.place not in settings or type(error) not in (Conflict, Unavailable):
        return error
    place = f'{PLACE} "{name}" {settings[error.finding.place]}'
    return type(error)(
        error.finding.reason, place=place, remedy=error.finding.remedy, code=error.code
    )


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(one.wait()) for one in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()


@asynccontextmanager
async def running_cells(
    settings: Settings,
    stop: asyncio.Event,
    *,
    slot: ProcessSlot = ProcessSlot(),  # noqa: B008  frozen
) -> AsyncIterator[str]:
    """A context manager: the URL of the API of all cells. It waits a limited time for the cells.

    Raises Conflict if the settings contradict what the cells have stored, and Unavailable.
    """
    async with AsyncExitStack() as stack:
        tracer = await stack.enter_async_context(tracing(settings.tracing))
        if (oidc := make_oidc_client(settings.auth)) is not None:
            await stack.enter_async_context(oidc)
        cells = ServedCells(settings, slot, tracer, stop, oidc)
        metrics = CellsMetrics(cells, MetricsExchange(slot.directory, slot.number, slot.count))
        tasks = {
            name: asyncio.create_task(cells.keep_connected(state), name=f"cell {name}")
            for name, state in cells.states.items()
        }
        stack.push_async_callback(_end, cells, stop, tasks)
        await _check_start(cells, stop)
        agreeing = asyncio.create_task(cells.keep_agreed(), name="cells")
        stack.callback(agreeing.cancel)
        sharing = asyncio.create_task(cells.keep_tokens_shared(), name="tokens of cells")
        stack.callback(sharing.cancel)
        if slot.directory is not None:
            exchange = serve_own_metrics(metrics, slot.directory, slot.number)
            await stack.enter_async_context(exchange)
        if address := settings.metrics.address:
            monitoring = monitoring_application(metrics, cells.ready)
            await stack.enter_async_context(serve_monitoring(monitoring, address, slot.metrics))
        http = await stack.enter_async_context(
            WebhookChannel(webhook_settings(settings.channels.webhook))
        )
        supervisor = Supervisor(
            new_id=lambda: secrets.token_hex(6), failed=metrics.record_internal_error
        )
        if (slack := make_slack_answers(settings, cells, http, supervisor)) is not None:
            await stack.enter_async_context(slack)
        server = ServerContext(settings, metrics, tracer, cells.ready, secrets.token_bytes, slack)
        application = make_application(server, cells, cells.limits)
        async with serve_api(settings.server, application, slot.api) as url:
            yield url


async def _end(
    cells: ServedCells, stop: asyncio.Event, tasks: Mapping[str, asyncio.Task[None]]
) -> None:
    stop.set()
    for name, state in cells.states.items():
        if state.services is None:  # it is connecting, which can take long
            tasks[name].cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)


async def _check_start(cells: ServedCells, stop: asyncio.Event) -> None:
    """Wait for the first attempts to connect. Raises Conflict if the settings are wrong."""
    with suppress(TimeoutError):
        async with asyncio.timeout(START_TIMEOUT):
            for state in cells.states.values():
                await _first_of(state.tried, stop)
    for state in cells.states.values():
        if state.error is not None and state.error.code in WRONG_SETTINGS:
            raise state.error
    try:
        await cells.agree()
    except HeadgateError as error:
        if error.code in WRONG_SETTINGS:
            raise
