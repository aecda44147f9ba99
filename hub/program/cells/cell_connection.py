"""Connects a cell, and serves it as long as its database responds; again whenever it returns."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from uuid import uuid4

from engine.bounded_wait import wait_at_most
from engine.cells import CellPlacement
from engine.store.database import Database
from engine.store.projects import cells as store
from engine.store.schema.upgrade import migrate
from engine.store.server_check import check_pooler_url, check_replicas, check_servers
from engine.store.server_connector import ServerConnector
from engine.tracing import Tracer
from hub.api.cells import Cell
from hub.auth.oidc_client import OidcClient
from hub.auth.passwords import AT_ONCE, PasswordHasher
from hub.http.template_urls import TemplateFetcher
from hub.program.authenticator import open_authenticator
from hub.program.cell_services import make_cell
from hub.program.cells.cell_states import CellState, CellStates
from hub.program.cells.moving_readers import MovingReaders
from hub.program.cells.periodic_step import RETRY_INTERVAL
from hub.program.cells.probe import PROBE_INTERVAL, CellProbe
from hub.program.cells.project_moves import ProjectMoves
from hub.program.cells.sessions import CellSessions
from hub.program.cells.token_sharing import TokenSharing
from hub.program.database_opening import open_registered, open_replicas
from hub.program.loops import Loops, make_process
from hub.program.process_slot import ProcessSlot
from hub.program.wiring import make_keyring, make_request_limits, make_sessions
from hub.settings.settings import Settings

ROLES = frozenset({"api"})


class CellConnector:
    """Connects cells. Limits, passwords and fetched templates are those of the process, not of a
    cell. oidc: None: no user signs in with OpenID Connect."""

    def __init__(
        self,
        settings: Settings,
        slot: ProcessSlot,
        tracer: Tracer,
        stop: asyncio.Event,
        oidc: OidcClient | None,
        cells: CellStates,
        moves: ProjectMoves,
        tokens: TokenSharing,
    ) -> None:
        self._slot, self._tracer, self._stop, self._oidc = slot, tracer, stop, oidc
        self._cells, self._moves, self._tokens = cells, moves, tokens
        self._placement: CellPlacement = settings.cells.placement
        self.limits = make_request_limits(settings, slot)
        self._keyring = make_keyring(settings)
        self._process = make_process(ROLES, self._keyring)
        self._hasher = PasswordHasher(at_once=slot.share(AT_ONCE))
        self._fetcher = TemplateFetcher(settings.template_urls)

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
        database, loops = await self._open(stack, state)
        cell = self._make_cell(state, database, loops)
        async with database.connection() as conn:
            await self._moves.read_moves(state.name, conn)
        stopped, returned = asyncio.Event(), partial(self._tokens.complete, cell)
        async with asyncio.TaskGroup() as group:
            tasks = await loops.start(group, stack, self._process, stopped)
            error: Exception | None = None
            try:
                await returned()
            except Exception as failed:  # tried again when the cell is probed
                error = failed
            state.sessions = make_sessions(state.settings, database)
            state.loops = loops
            state.readers = MovingReaders(cell, loops, self._keyring)
            stack.push_async_callback(state.readers.close)
            state.record(error)
            state.services = cell
            state.tried.set()
            probing = asyncio.create_task(_probe(state, database.connector, returned))
            try:
                await wait_for_first(self._stop, stopped)
            finally:
                probing.cancel()
                state.disconnect()
                stopped.set()
                loops.wake()
                await loops.drain(tasks)

    async def _open(self, stack: AsyncExitStack, state: CellState) -> tuple[Database, Loops]:
        """The database of a cell, migrated, and the loops of its services, which do not run yet.
        Raises HeadgateError."""
        settings, process = state.settings, self._process
        url = settings.database.url.get_secret_value()
        pooler_url = settings.database.pooler_url.get_secret_value()
        read_url = settings.database.read_url.get_secret_value()
        await check_servers(url, time.time)
        await check_pooler_url(url, pooler_url)
        await check_replicas(url, read_url)
        await migrate(url, version=process.program.version)
        size = settings.database.pool
        identify = partial(
            store.identify_cell, name=state.name, new_id=uuid4(), placement=self._placement
        )
        database, token_keys = await open_registered(
            url, size, self._keyring, process, identify=identify, pooler_url=pooler_url
        )
        stack.push_async_callback(database.close)
        replica = await open_replicas(stack, read_url, size, self._keyring)
        authenticator = await stack.enter_async_context(
            open_authenticator(
                settings.auth,
                database,
                self._hasher,
                self._keyring,
                lambda: self._cells.other_databases(state.name),
                self._tokens.count_change,
            )
        )
        loops = Loops(
            settings, database, token_keys, self._keyring, authenticator, tracer=self._tracer,
            slot=self._slot, replica=replica,
        )  # fmt: skip
        await loops.enter(stack)
        return database, loops

    def _make_cell(self, state: CellState, database: Database, loops: Loops) -> Cell:
        sessions = CellSessions(
            state.name, state.settings, database, self._cells.sessions, self._cells.away
        )
        return make_cell(
            state.name,
            state.settings,
            loops,
            self._hasher,
            self.limits,
            sessions,
            self._fetcher,
            self._oidc,
        )


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


async def wait_for_first(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waiting = [asyncio.create_task(one.wait()) for one in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
