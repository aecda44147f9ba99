"""Probes whether the database of a cell responds, on a connection of its own: a pool whose
connections are all in use is not taken for a cell that is away."""

from engine.bounded_wait import wait_for_result
from engine.errors import Unavailable
from engine.store.connection import STARTUP, Connection
from engine.store.database_errors import FAILURES, unavailable
from engine.store.server_connector import ServerConnector

#: Seconds between two probes, and that the database has to respond.
PROBE_INTERVAL, PROBE_TIMEOUT = 2.0, 2.0
#: Failed probes in a row that make a cell unavailable.
ATTEMPTS = 2
IS_REPLICA = "select pg_is_in_recovery()"


class CellProbe:
    def __init__(self, connector: ServerConnector) -> None:
        self._connector = connector
        self._connection: Connection | None = None

    async def check(self) -> Unavailable | None:
        """Why the database does not respond; None: it does."""
        error: Unavailable | None = None
        for _ in range(ATTEMPTS):
            try:
                await wait_for_result(self._ask(), PROBE_TIMEOUT)
                return None
            except TimeoutError:
                error = _no_response(f"it does not respond within {PROBE_TIMEOUT:.0f} s")
            except FAILURES as raised:
                error = unavailable(raised)
            except Unavailable as raised:
                error = raised
            self.close()
        return error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _ask(self) -> None:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connector.open_bare(server_settings=STARTUP)
        if await self._connection.fetchval(IS_REPLICA):
            raise _no_response("its server accepts no writes")


def _no_response(reason: str) -> Unavailable:
    return Unavailable(
        f"the database cannot be used now: {reason}",
        place="[database]",
        remedy="Try again; check that PostgreSQL runs and can be reached",
    )
